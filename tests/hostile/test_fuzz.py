"""The quick form of tools/verification/fuzz.py: what was kept, and so many mutants of it with a fixed seed."""

from collections.abc import Sequence
from itertools import islice

import pytest

from eyestream.chunking.device import Device
from eyestream.chunking.session import Session
from eyestream.privacy.accountant import Account, Request
from eyestream.privacy.reservation import Granted
from eyestream.rim.ledger.ledger import Ledger
from eyestream.testing.hostile.corpus import payload, read
from eyestream.testing.hostile.lives import TARGETS, live, read_payload
from eyestream.testing.hostile.mutation import kept, mutants, seeds
from eyestream.wire import envelope, mqtt

MUTANTS = {"payload": 15_000, "life": 150, "release": 4_000, "packets": 8_000, "configuration": 500, "ledger": 500}


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_kept_still_holds(target: str) -> None:
    inputs = kept(target)
    assert len(inputs) > 5
    for data in inputs:
        TARGETS[target](data)


def test_finds_are_cases_of_the_corpus() -> None:
    finds = read("found")
    assert len(finds) > 0
    for case in finds:
        read_payload(payload(case))


@pytest.mark.parametrize("target", TARGETS)
def test_mutants_of_what_was_kept(target: str) -> None:
    done = 0
    for data in islice(mutants(seeds(target), seed=20_261_120), MUTANTS[target]):
        try:
            TARGETS[target](data)
        except Exception as error:
            error.add_note(f"input: {data.hex()}")
            raise
        done += 1
    assert done == MUTANTS[target]


def found(target: str) -> bool:
    """Whether the quick form notices that something is wrong."""
    try:
        for data in (*kept(target), *islice(mutants(seeds(target), seed=1), MUTANTS[target])):
            TARGETS[target](data)
    except Exception:
        return True
    return False


def test_control_a_decoder_that_does_not_ask_for_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "_VERSION_ONE", (b"",))
    assert found("payload")


def test_control_a_device_that_forgets_which_sessions_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "_is_over", lambda self, session: False)
    assert found("life")


def test_control_a_client_that_forgets_where_a_piece_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = mqtt.Decoder.feed
    monkeypatch.setattr(mqtt.Decoder, "feed", lambda self, data: feed(self, data[:100]))
    assert found("packets")


def test_control_a_device_that_forgets_what_fell_due_when_a_session_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "last_row", -1)
    assert found("life")


def test_control_a_session_that_counts_one_row_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Session._count_late
    monkeypatch.setattr(Session, "_count_late", lambda self, row, until, time: count(self, row + 1, until, time))
    assert found("life")


def test_control_a_ledger_that_forgets_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "mark", lambda *arguments: None)
    monkeypatch.setattr(Account, "obstacle", lambda *arguments: None)
    assert found("life")


def test_control_a_ledger_that_grants_without_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    def reserve(self: Ledger, requests: Sequence[Request], day: int) -> list[Granted]:
        return [Granted(request) for request in requests]

    monkeypatch.setattr(Ledger, "reserve", reserve)
    assert found("life")


def test_an_empty_life_is_one() -> None:
    assert live(b"") >= 2  # whatever was ordered, at its end it releases chunks
