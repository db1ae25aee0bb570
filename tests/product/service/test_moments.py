"""What leaves by the clock, and what runs between a chunk and the messages beside it: the order of effects.

Nothing here measures time: the loop's clock is simulated, and goes on when something sleeps or works.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.release.doubt import RowDoubts
from eyestream.errors import ConfigError, LinkError
from eyestream.rim.files import calibrations
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.mqtt import reconnecting
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.moments import DISK_S, GRID_S, LEAD_S, QUIET_S, Moments
from eyestream.rim.sidecar.operator_log import OperatorLog
from eyestream.rim.sidecar.pipeline import RowArrival
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sources.gaze import DeliverGaze, GazeFeeder
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows
from eyestream.wire.topics import private_topic
from eyestream_lab.testing.clocks import simulated
from tests.rigs.sidecar import NO_BROKER, opened, settings_for

KEYS = [StreamKey(device, "features") for device in ("a", "b")]


def let_pass(seconds: float) -> None:
    """Work or sleep: the clock of the simulated loop goes on, and the loop does not turn."""
    asyncio.get_running_loop()._passing.now_ns += round(1e9 * seconds)  # type: ignore[attr-defined]


def now() -> float:
    return asyncio.get_running_loop().time()


def moment_of(due: float, ready: float) -> float:
    """When something leaves that was due at `due` and became ready at `ready`."""

    async def wait() -> float:
        moments, left = Moments(lambda: None, let_pass), []
        let_pass(ready)
        moments.hold(KEYS[0], due, lambda: left.append(now()))
        await asyncio.sleep(1.0)
        return float(left[0])

    return simulated(wait())


@pytest.mark.parametrize("due", [1.0, 1.0004, 1.0033, 1.00999])
def test_a_moment_follows_from_what_was_due_and_not_from_when_it_was_ready(due: float) -> None:
    moments = {moment_of(due, due + work) for work in (0.0, 0.0005, 0.002, 0.006, 0.0099)}
    assert len(moments) == 1
    [moment] = moments
    assert LEAD_S - 1e-6 <= moment - due < LEAD_S + GRID_S
    assert moment / GRID_S == pytest.approx(round(moment / GRID_S))


def test_what_is_late_leaves_at_the_next_moment_of_the_grid() -> None:
    assert moment_of(1.0, 1.0123) == pytest.approx(1.02)


@pytest.mark.parametrize("work", [0.0045, 0.0049, 0.0051, 0.006, 0.0072, 0.0149, 0.0333])
def test_work_that_outlasts_the_quiet_puts_a_moment_off_by_whole_steps_of_the_grid(work: float) -> None:
    async def life() -> list[tuple[int, float]]:
        left: list[tuple[int, float]] = []
        moments = Moments(lambda: None, let_pass)
        loop = asyncio.get_running_loop()
        for number, at in enumerate((1.0, 1.0051)):  # the second one is of the next moment
            loop.call_at(at, moments.hold, KEYS[0], at, lambda number=number: left.append((number, now())))
        loop.call_at(1.0051, let_pass, work)  # 4.9 ms before the first moment
        await asyncio.sleep(2.0)
        return left

    left = simulated(life())
    assert [number for number, _ in left] == [0, 1]
    for (number, at), planned in zip(left, (1.01, 1.02), strict=True):
        assert at >= planned - 1e-6
        assert at / GRID_S == pytest.approx(round(at / GRID_S), abs=1e-4), number
        assert at < max(planned, 1.0051 + work + GRID_S) + 1e-6


def test_nothing_is_read_in_the_quiet_before_a_moment_and_nothing_is_lost() -> None:
    async def life() -> list[tuple[str, float]]:
        seen: list[tuple[str, float]] = []

        def row() -> None:
            seen.append(("row", round(now(), 6)))
            let_pass(0.0005)

        moments = Moments(lambda: seen.append(("over", round(now(), 6))), let_pass)
        for before in (QUIET_S + 0.001, QUIET_S - 0.001, 0.001, 0.0001):
            asyncio.get_running_loop().call_at(1.01 - before, row)
        asyncio.get_running_loop().call_at(1.0, moments.hold, KEYS[0], 1.0, lambda: seen.append(("chunk", now())))
        await asyncio.sleep(2.0)
        return seen

    seen = simulated(life())
    assert [word for word, _ in seen] == ["row", "chunk", "over", "row", "row", "row"]
    assert seen[1][1] == pytest.approx(1.01, abs=1e-8)


def test_devices_share_moments_and_leave_in_the_order_of_their_streams() -> None:
    async def life(*ready: tuple[StreamKey, float]) -> list[tuple[StreamKey, float]]:
        left: list[tuple[StreamKey, float]] = []
        moments = Moments(lambda: None, let_pass)
        for key, at in ready:
            asyncio.get_running_loop().call_at(at, moments.hold, key, 1.0, lambda key=key: left.append((key, now())))
        await asyncio.sleep(2.0)
        return left

    a, b = KEYS
    first, second = (simulated(life((a, at), (b, 1.002))) for at in (1.001, 1.003))
    assert first == second
    assert [key for key, _ in first] == [a, b]


def test_what_is_held_of_a_stream_keeps_its_order_and_the_end_lets_go_of_it() -> None:
    async def life() -> list[int]:
        left: list[int] = []
        moments = Moments(lambda: None, let_pass)
        let_pass(1.0005)
        moments.hold(KEYS[0], None, lambda: left.append(1))
        moments.hold(KEYS[0], 0.9, lambda: left.append(2))
        assert len(moments) == 2
        moments.leave_all()
        assert len(moments) == 0
        await asyncio.sleep(1.0)
        return left

    assert simulated(life()) == [1, 2]


class Told:
    """A private link that takes everything at once, and what else happened, in order."""

    resumed = False

    def __init__(self) -> None:
        self.events: list[tuple[str, float]] = []

    def note(self, event: str) -> None:
        self.events.append((event, round(now(), 6)))

    async def state(self, statements: list[tuple[str, bytes]]) -> dict[str, str]:
        for topic, payload in statements:
            self.send(topic, payload, lambda: None)
        return {}

    def send(self, topic: str, payload: bytes, acknowledged: Callable[[], None], *more: object, **_: Any) -> None:
        device, leaf = topic.split("/")[2::2]
        self.note(f"{leaf} {device}")
        asyncio.get_running_loop().call_soon(acknowledged)

    @property
    def words(self) -> list[str]:
        return [event for event, _ in self.events]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for the disk does so at once, and what sleeps lets the simulated clock go on."""

    async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    monkeypatch.setattr(Moments.__init__, "__defaults__", (let_pass,))


async def linked(sidecar: Sidecar) -> tuple[Told, "asyncio.Task[None]"]:
    """The private link, after all that is said at its beginning."""
    link = Told()
    serving = asyncio.create_task(sidecar._sender.serve(link))  # type: ignore[arg-type]
    await asyncio.sleep(0.1)
    link.events.clear()
    return link, serving


def rows(count: int, seq: int, due: float | None = None) -> RawRows:
    return RawRows(1, seq, np.zeros((count, 52)), due=due)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("withheld", [False, True])
def test_between_a_chunk_and_what_is_said_beside_it_no_row_is_looked_at(tmp_path: Path, withheld: bool) -> None:
    """`on_row`: chunk, `status` and `budget` are with the link before the next message of a batch is read."""

    async def life() -> list[str]:
        settings = settings_for(NO_BROKER, tmp_path, devices=("a", "b"), window_epsilon=4.8)
        with opened(settings) as sidecar:
            talk = OperatorLog(resolved(settings), sidecar.pipeline, sidecar.left)
            link, serving = await linked(sidecar)
            begun = 63 if withheld else 31  # one chunk of two is let through
            await sidecar.pipeline.run_turn([RowArrival(key, rows(begun, 0), 1.0) for key in KEYS], 1.0)
            await asyncio.sleep(0.1)
            talk.look(1.5)
            link.events.clear()
            feed, look_at = sidecar.pipeline.feed, talk._look_at_rows
            sidecar.pipeline.feed = lambda arrival: (link.note("row"), feed(arrival))[1]  # type: ignore[method-assign]
            talk._look_at_rows = lambda *one: (link.note("look"), look_at(*one))[1]  # type: ignore[method-assign]
            await sidecar.pipeline.run_turn([RowArrival(key, rows(1, begun), 1.0) for key in KEYS], 1.0)
            await asyncio.sleep(0.0)
            talk.look(2.0)
            serving.cancel()
            return link.words

    words = simulated(life())
    if withheld:
        assert words == ["row", "status a", "row", "status b"]
    else:
        said = ["row", "private a", "budget a", "odometer a", "row", "private b", "budget b", "odometer b"]
        assert words == [*said, "look", "look"]


@pytest.mark.usefixtures("served")
def test_on_clock_a_chunk_and_its_budget_leave_at_the_moment_whatever_the_release_takes(tmp_path: Path) -> None:
    def left(work: float, last_row: float) -> list[tuple[str, float]]:
        async def life() -> list[tuple[str, float]]:
            settings = settings_for(NO_BROKER, folder, devices=("a",), release="on_clock")
            with opened(settings) as sidecar:
                link, serving = await linked(sidecar)
                stream = sidecar.pipeline._served[KEYS[0]].stream
                payload = stream._payload
                stream._payload = lambda *one: (let_pass(work), payload(*one))[1]  # type: ignore[method-assign]
                working = asyncio.create_task(sidecar.worker.run())
                loop = asyncio.get_running_loop()
                loop.call_at(1.0, sidecar.worker.receive_rows, KEYS[0], rows(1, 0))
                loop.call_at(last_row, sidecar.worker.receive_rows, KEYS[0], rows(31, 1))
                await asyncio.sleep(20.0)
                serving.cancel()
                working.cancel()
                return link.events

        return simulated(life())

    seen = []
    for number, (work, last_row) in enumerate([(0.0001, 16.0), (0.008, 16.0), (0.0001, 16.4567)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen.append(left(work, last_row))
    assert seen[0] == seen[1] == seen[2]
    assert [word for word, _ in seen[0]] == ["private a", "budget a", "odometer a"]
    [at] = {at for _, at in seen[0]}
    due = 1.0 + 1.01 * 31 / 2.0 + 1.0
    assert LEAD_S - 1e-6 <= at - due < LEAD_S + GRID_S


class Tracker:
    """Sends 100 samples a second, and in the slot after the row's own as many times more as it is told to."""

    def __init__(self, times: int) -> None:
        self._times = times

    async def run(self, deliver: DeliverGaze) -> None:
        for number in range(6000):
            await asyncio.sleep(0.01)
            more = self._times if number > 4500 else 1
            deliver(GazeColumns(np.full(more, now()) + 1e-3 * np.arange(more), np.zeros((more, 2))))


@pytest.mark.usefixtures("served")
def test_what_a_tracker_sends_meanwhile_does_not_move_a_chunk_of_its_gaze(tmp_path: Path) -> None:
    """Rows of gaze are made by the clock, so their chunk has a moment too with `on_row`."""

    class Slow(GazeFeeder):
        def samples_of(self, records: GazeColumns) -> Any:
            let_pass(1e-5 * len(records.time))
            return super().samples_of(records)

    def left(times: int) -> list[tuple[str, float]]:
        async def life() -> list[tuple[str, float]]:
            settings = settings_for(NO_BROKER, folder, devices=("a",))
            with opened(settings) as sidecar:
                link, serving = await linked(sidecar)
                feeder = Slow(Tracker(times), load_profile("mqtt").at_rate(100.0))
                deliver = lambda made: sidecar.worker.receive_rows(KEYS[0], made)  # noqa: E731
                work = [sidecar.worker.run(), feeder.rows(deliver), feeder.run(feeder.take)]
                tasks = [asyncio.create_task(one) for one in work]
                await asyncio.sleep(52.0)
                for task in (serving, *tasks):
                    task.cancel()
                return link.events

        return simulated(life())

    seen = []
    for times in (0, 1, 8):
        folder = tmp_path / str(times)
        folder.mkdir()
        seen.append(left(times))
    assert seen[0] == seen[1] == seen[2]
    assert [word for word, _ in seen[0]] == ["private a", "budget a", "odometer a"]


@pytest.mark.usefixtures("served")
def test_where_one_row_is_a_chunk_neither_the_disk_nor_the_work_is_in_its_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is asked only when the chunk is due, and its answer comes when the disk has it."""

    async def slowly(function: Callable[..., Any], *arguments: Any) -> Any:
        await asyncio.sleep(disk_s)
        return function(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", slowly)
    due, seen = 1.0033, set()
    disk_s = 0.0

    def left(folder: Path, work: float) -> list[tuple[str, float]]:
        async def life() -> list[tuple[str, float]]:
            settings = settings_for(NO_BROKER, folder, devices=("a",))
            with opened(settings) as sidecar:
                link, serving = await linked(sidecar)
                served = sidecar.pipeline._served[KEYS[0]]
                served.disk_s = DISK_S  # as for a stream of slots
                working = asyncio.create_task(sidecar.worker.run())
                come = rows(32, 0, due=due)
                asyncio.get_running_loop().call_at(due + work, sidecar.worker.receive_rows, KEYS[0], come)
                await asyncio.sleep(3.0)
                serving.cancel()
                working.cancel()
                return link.events

        folder.mkdir()
        return simulated(life())

    for disk_s, work in ((0.0005, 0.0), (0.0064, 0.0004), (0.0399, 0.001)):
        seen.add(tuple(left(tmp_path / str(disk_s), work)))
    [events] = seen
    assert [word for word, _ in events] == ["private a", "budget a", "odometer a"]
    assert LEAD_S + DISK_S - 1e-6 <= events[0][1] - due < LEAD_S + DISK_S + GRID_S


class Counting(np.ndarray):
    """An array that counts what is computed of it."""

    calls: list[str]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        self.calls.append(f"{ufunc.__name__}.{method}")
        plain = [np.asarray(one) if isinstance(one, Counting) else one for one in inputs]
        made = getattr(ufunc, method)(*plain, **kwargs)
        if not isinstance(made, np.ndarray):
            return made
        counting = made.view(Counting)
        counting.calls = self.calls
        return counting

    def __array_finalize__(self, of: Any) -> None:
        self.calls = getattr(of, "calls", [])


def test_the_look_for_the_log_takes_the_same_work_whatever_it_finds() -> None:
    known = calibrations.load("everyday-klt-anchored-64")
    middle = (known.lo + known.hi)[:, None] / 2.0 + np.linspace(0.0, 1e-3, 64)
    worlds: dict[str, NDArray[np.float64]] = {
        "lost": np.full((52, 64), np.nan),
        "same": np.repeat(middle[:, :1], 64, axis=1),
        "noise": np.random.default_rng(1).normal(0.0, 1e6, (52, 64)),
        "fine": middle,
    }
    found, work = {}, set()
    for name, values in worlds.items():
        counting = values.view(Counting)
        counting.calls = []
        found[name] = RowDoubts(known).of(counting)
        work.add(tuple(counting.calls))
    assert found == {"lost": None, "same": "same", "noise": "order", "fine": None}
    assert len(work) == 1
    assert len(work.pop()) > 5


class Lost(Told):
    """A private link that can be lost; what is asked and heard before it serves is noted with the rest."""

    task: "asyncio.Task[None]"
    is_lost = False

    def lose(self) -> None:
        self.is_lost = True
        self.task.cancel()

    async def subscribe_all(self, *_: object) -> None:
        self.note("hears others")

    def send(self, topic: str, *more: Any, **said: Any) -> None:
        if self.is_lost:
            raise LinkError("the link is lost")
        super().send(topic, *more, **said)


def connecting(links: list[Lost], before: list[str]) -> Callable[..., Any]:
    """In the place of `connect`: appends its links to `links`, each with what happened `before` it."""

    @contextlib.asynccontextmanager
    async def connect(*_: object, **__: object) -> AsyncIterator[Lost]:
        link, task = Lost(), asyncio.current_task()
        assert task is not None
        link.task, link.events = task, [(word, 0.0) for word in before]
        links.append(link)
        try:
            yield link
        except asyncio.CancelledError:
            if not link.is_lost:
                raise
            task.uncancel()
            raise LinkError("the link is lost") from None

    return connect


@pytest.mark.parametrize("copied", [False, True])
def test_what_was_held_goes_to_no_new_link_before_it_is_known_whose_the_devices_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    """The process is stopped while a chunk waits for its moment, and its link is lost meanwhile."""
    links: list[Lost] = []
    order: list[str] = []
    monkeypatch.setattr(reconnecting, "connect", connecting(links, order))
    monkeypatch.setattr(Moments.__init__, "__defaults__", (let_pass,))

    async def life() -> None:
        asked, answer = 0, asyncio.Event()

        async def ask_around(*_: object, **__: object) -> None:
            nonlocal asked
            asked += 1
            if asked > 1:
                await answer.wait()
                if copied:
                    raise ConfigError("a copy is at work")
            order[:] = ["asks"]

        with opened(settings_for(NO_BROKER, tmp_path, devices=("a",))) as sidecar:
            monkeypatch.setattr(sidecar._owners, "ask_around", ask_around)
            private = asyncio.create_task(sidecar._private.run())
            await asyncio.sleep(1.0)
            order.clear()
            sidecar._moments.hold(KEYS[0], None, lambda: sidecar._publish(private_topic(*KEYS[0]), b"released"))
            links[0].lose()
            let_pass(3.0)
            await asyncio.sleep(20.0)
            assert (asked, len(links), len(sidecar._moments), sidecar.outbox.waits) == (2, 1, 0, True)
            answer.set()
            if copied:
                with pytest.raises(ConfigError, match="a copy is at work"):
                    await private
                return
            await asyncio.sleep(5.0)
            private.cancel()

    simulated(life())
    assert "private a" not in links[0].words
    if copied:
        assert len(links) == 1
    else:
        [_, second] = links
        assert second.words[:2] == ["asks", "hears others"]
        assert second.words.count("private a") == 1
