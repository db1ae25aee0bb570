"""A shard of several machines: it reads a log again from its last snapshot, and may be killed between any two steps.

The order of a shard: reserve in the ledger, release, put the bytes into the outbox, settle in the ledger, publish. What
it had reserved without bytes in the outbox has not left: the next life computes it, once, under the same reservation.
What lies in the outbox is sent again as it is.
"""

import dataclasses
import random
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pytest

from eyestream.chunking.chunks import RowSpan
from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.reservation import Granted, Request, RowMark, Withheld, WriteAheadPort
from eyestream.release.ports import Outbox
from eyestream.release.stream import Outcome, StreamRelease
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.streams import StreamKey
from eyestream.wire.messages import RawRows, decode_private
from tests.release.worlds import CHARGE, N, settings
from tests.rigs.calibrations import few_features

KEY = StreamKey("d", "features")
SETTINGS = settings(names=("a", "b", "c"))
CHUNKS = 40
Place = tuple[int, int]


class Killed(Exception):  # noqa: N818  no error: a shard ends so
    """The process is gone."""


def log() -> list[RawRows]:
    """Messages of two sessions, one to nine rows each, whole chunks in all."""
    luck, messages = random.Random(2), []
    for session in (1, 2):
        row, end = 0, CHUNKS * N // 2
        while row < end:
            rows = min(luck.randint(1, 9), end - row)
            messages.append(RawRows(session, row, np.full((rows, 3), 0.5), end=row + rows == end))
            row += rows
    return messages


class Disk:
    """What outlives a life beside the ledger: bytes that were released, and the last snapshot with its place."""

    def __init__(self) -> None:
        self.bytes: dict[Place, bytes] = {}
        self.acknowledged: set[Place] = set()
        self.saved: tuple[int, bytes] | None = None

    def put(self, key: StreamKey, span: RowSpan, payload: bytes) -> None:
        """As `Outbox` says."""
        self.bytes[span.session, span.last_row] = payload

    def get(self, key: StreamKey, span: RowSpan) -> bytes | None:
        """As `Outbox` says."""
        return self.bytes.get((span.session, span.last_row))


class Shard:
    """One life."""

    def __init__(self, ledger: WriteAheadPort, outbox: Outbox, disk: Disk, mechanism: Mechanism, luck: random.Random):
        self.ledger, self.outbox, self.disk, self.luck = ledger, outbox, disk, luck
        self.stream = StreamRelease(SETTINGS, mechanism, lambda: luck.getrandbits(63))
        self.open = {(request.session, request.last_row) for request in ledger.unsettled(KEY)}
        self.granted: deque[Request] = deque()
        self.computed_again = 0

    def live(self, messages: list[RawRows], published: dict[Place, list[bytes]]) -> None:
        """To the end of the log, or until it is killed."""
        self.published = published
        begin = 0
        self.send_again()
        if self.disk.saved is not None:
            begin, data = self.disk.saved
            self.carry_out(self.stream.restore(data))
        for offset in range(begin, len(messages)):
            self.carry_out(self.stream.feed(messages[offset], offset / 2))
            if self.luck.random() < 0.3:
                self.disk.saved = offset + 1, self.stream.snapshot()

    def send_again(self) -> None:
        """What lies in the outbox, as it is."""
        for place, payload in list(self.disk.bytes.items()):
            self.after_the_outbox(place, payload)

    def may_die(self) -> None:
        if self.luck.random() < 0.03:
            raise Killed

    def carry_out(self, outcome: Outcome) -> None:
        self.publish(outcome.payloads)
        for request in outcome.requests:
            self.may_die()
            answer = self.reserve(request)
            if isinstance(answer, Granted):
                self.granted.append(request)
            self.publish(self.stream.answer([answer]).payloads)

    def reserve(self, request: Request) -> Granted | Withheld:
        place = (request.session, request.last_row)
        if place in self.open and self.may_compute(request):
            self.computed_again += 1
            return Granted(request)
        (answer,) = self.ledger.reserve([dataclasses.replace(request, write_ahead=True)], 20_000)
        return dataclasses.replace(answer, request=request)

    def may_compute(self, request: Request) -> bool:
        """Whether nothing has left under a reservation of an earlier life."""
        span = RowSpan(request.session, 0, request.first_row, request.last_row)
        return self.outbox.get(KEY, span) is None

    def publish(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            request, index = self.granted.popleft(), decode_private(payload).chunk
            assert request.first_row == index * N
            self.may_die()
            self.outbox.put(KEY, RowSpan(request.session, index, request.first_row, request.last_row), payload)
            self.after_the_outbox((request.session, request.last_row), payload)

    def after_the_outbox(self, place: Place, payload: bytes) -> None:
        self.may_die()
        if self.luck.random() < 0.5:  # else its record was lost with the power: nobody waits for it
            self.ledger.settle(KEY, RowMark(*place), 0)
        self.may_die()
        if place not in self.disk.acknowledged:
            self.published[place].append(payload)
            self.may_die()
            self.disk.acknowledged.add(place)


class Recomputes(Shard):
    """The fault: what lies in the outbox is computed again."""

    def send_again(self) -> None:
        return

    def may_compute(self, request: Request) -> bool:
        return True


class Hasty(Shard):
    """The fault: published before the bytes are in the outbox."""

    def publish(self, payloads: list[bytes]) -> None:
        if payloads:
            request = self.granted[0]
            self.published[request.session, request.last_row].append(payloads[0])
        super().publish(payloads)


class Forgetful(Shard):
    """The fault: what an earlier life had reserved is taken for released."""

    def may_compute(self, request: Request) -> bool:
        return False


def lives(kind: type[Shard], folder: Path, seed: int) -> tuple[dict[Place, list[bytes]], int, list[Shard]]:
    """What was published for each chunk, what was charged, and all lives of a shard that is killed again and again."""
    create_ledger(path := folder / f"{kind.__name__}-{seed}", created=20_000 * 86_400)
    luck, disk, mechanism = random.Random(seed), Disk(), build(few_features(N, 3), CHARGE.epsilon / 10**12)
    published: dict[Place, list[bytes]] = defaultdict(list)
    past: list[Shard] = []
    while True:
        with Ledger(path, ceilings=Ceilings()) as ledger:
            past.append(kind(ledger, disk, disk, mechanism, luck))
            try:
                past[-1].live(log(), published)
            except Killed:
                continue
            odometer = ledger.odometer("d")
            assert odometer is not None
            return published, odometer.epsilon, past


def test_every_chunk_leaves_with_the_same_bytes_and_is_charged_once(tmp_path: Path) -> None:
    again = resent = 0
    for seed in range(8):
        published, charged, past = lives(Shard, tmp_path, seed)
        assert len(published) == CHUNKS
        assert all(len(set(payloads)) == 1 for payloads in published.values())
        assert charged == CHUNKS * Charge.of(0.5).epsilon
        again += sum(life.computed_again for life in past)
        resent += sum(len(payloads) - 1 for payloads in published.values())
    assert again >= 5, "kills between the reservation and the outbox"
    assert resent >= 5, "kills between the publication and its acknowledgement"


@pytest.mark.parametrize("kind", [Recomputes, Hasty, Forgetful])
def test_the_check_sees_a_shard_with_a_fault(kind: type[Shard], tmp_path: Path) -> None:
    """Negative controls: other bytes for one chunk, or a chunk that never comes."""
    seen = 0
    for seed in range(8):
        published, _, _ = lives(kind, tmp_path, seed)
        seen += len(published) < CHUNKS or any(len(set(payloads)) > 1 for payloads in published.values())
    assert seen >= 6
