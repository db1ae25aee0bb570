"""Task words live: from raw rows on a broker to an application, and every way through a small world."""

import asyncio
import itertools
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import eyestream
from eyestream.core.charge import EPSILON_UNITS, Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanisms import build
from eyestream.core.release.stream import StreamRelease
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.errors import ConfigError, ShardError
from eyestream.rim.config import PrivacySettings, load
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from eyestream_fleet.directory import create_shard, held_outbox, opened_shard
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.noise import FixedNoise
from eyestream_lab.words.view import posterior
from tests.lab.words.people import NAMES, RATE_HZ, SESSIONS, TASKS, N, calibration, people
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.pages import body_of, code_of
from tests.rigs.sidecar import NO_BROKER, at_work, settings_for

Array = NDArray[np.float64]
EPSILON = 9.0
EXAMPLE = Path(__file__).parents[3] / "examples" / "tasks" / "tasks.py"
SETTINGS = DeviceSettings("hmd-1", "features", 1, NAMES, RATE_HZ, N, 1.0, 60.0, 16, apart=0)


def stream_of() -> StreamRelease:
    return StreamRelease(SETTINGS, build(calibration(), EPSILON, noise=FixedNoise(0)), iter(range(1, 1000)).__next__)


class Life:
    """A stream whose ledger grants what it is asked, but for the chunks in `refused`; it keeps what comes out."""

    def __init__(self, refused: frozenset[int] = frozenset()) -> None:
        self.stream, self.requests, self.refused = stream_of(), list[Request](), refused
        self.released: list[tuple[int, int]] = []  # by number of the session, and word
        self._session = 0

    def session(self, rows: Array, wearer: int = 0) -> None:
        self._session += 1
        outcome = self.stream.feed(RawRows(self._session, 0, rows, end=True, wearer=wearer), float(self._session))
        while True:
            for payload in outcome.payloads:
                self.released.append((self._session, int(decode_private(payload).values.argmax())))
            if not outcome.requests:
                return
            answers: list[Granted | Withheld] = []
            for request in outcome.requests:
                withheld = len(self.requests) in self.refused
                self.requests.append(request)
                answers.append(Withheld(request, "day") if withheld else Granted(request))
            outcome = self.stream.answer(answers)


def rows_of(level: float, chunks: int = 2, seed: int = 0) -> Array:
    """Rows about a level, in every feature."""
    rng = np.random.default_rng(seed)
    return level + rng.integers(-4, 5, (chunks * N, len(NAMES))).astype(np.float64)


def test_the_first_session_of_every_wearer_and_pseudonym_is_withheld_and_free() -> None:
    life = Life()
    wearers = [1, 1, 2, 1, 0, 2, 1, 2, 2]  # sessions of a pseudonym: 3
    for number, wearer in enumerate(wearers):
        life.session(rows_of(0.0, seed=number), wearer)
    withheld = [True, False, True, False, True, False, True, False, True]
    assert [request.unreleased for request in life.requests] == [w for w in withheld for _ in range(2)]
    assert sorted({session for session, _ in life.released}) == [i + 1 for i, w in enumerate(withheld) if not w]
    assert life.stream.counters.withheld["baseline"] == 2 * sum(withheld)


@pytest.mark.parametrize("fault", ["history of nobody", "history counts its own session", "pseudonym goes on"])
def test_control_planted_faults_are_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from eyestream_lab.words.history import History, OverHistory

    calibration()  # without the fault, also where this test is the first to ask for it
    if fault == "history of nobody":
        monkeypatch.setattr(OverHistory, "off", lambda self, chunk: chunk)
    elif fault == "history counts its own session":
        plain = OverHistory.off

        def own(self: OverHistory, chunk: Array) -> Array:
            plain(self, chunk)
            return self.after().off(chunk)

        monkeypatch.setattr(OverHistory, "off", own)
    else:
        monkeypatch.setattr(History, "withholds", property(lambda self: False))
    with pytest.raises((AssertionError, RuntimeError)):
        test_every_way_through_a_small_world_keeps_to_the_bounds()


def test_every_way_through_a_small_world_keeps_to_the_bounds() -> None:
    """All worlds of five sessions, each of one of two contents, brute force through the live path without noise.

    The words of a session are a function of its own rows and of those of the earlier sessions of its pseudonym: they
    differ between two worlds only where those differ. And they do depend on them, so nothing else is tested here.
    """
    contents = [rows_of(0.0, 1, seed=1), rows_of(30.0, 1, seed=2)]
    words: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {}
    for world in itertools.product((0, 1), repeat=5):
        life = Life()
        for one in world:
            life.session(contents[one])
        assert sum(0 if request.unreleased else 1 for request in life.requests) == 3
        words[world] = tuple(life.released)
    assert {tuple(session for session, _ in said) for said in words.values()} == {(2, 3, 5)}
    own = {2: (0, 1), 3: (0, 1, 2), 5: (3, 4)}  # what each released session may depend on: its pseudonym so far
    for place, session in enumerate((2, 3, 5)):
        found: dict[tuple[int, ...], set[int]] = {}
        for world, said in words.items():
            found.setdefault(tuple(world[i] for i in own[session]), set()).add(said[place][1])
        assert all(len(each) == 1 for each in found.values()), "a word depends on what is none of its business"
        assert len(set().union(*found.values())) > 1, "a word depends on nothing"
        alike = {found[(0,) * len(own[session])].pop(), found[(1,) * len(own[session])].pop()}
        assert len(alike) == 1, "a constant level of a pseudonym is seen"


def test_a_session_counts_whatever_the_ledger_withholds() -> None:
    """The count is public: sessions that the budget withholds are sessions too, and their rows are in no history."""
    life = Life(refused=frozenset({1}))
    for number in range(4):
        life.session(rows_of(0.0, 1, seed=number), 5)
    assert [request.unreleased for request in life.requests] == [True, False, False, True]
    assert [session for session, _ in life.released] == [3]


def test_forgetting_begins_new_pseudonyms_at_once() -> None:
    life = Life()
    for number in range(2):
        life.session(rows_of(0.0, seed=number), 3)
    assert len(life.released) == 2
    held = life.stream._last[3].taken_off  # type: ignore[attr-defined]
    life.stream.forget()
    assert np.isnan(held._history.first).all()  # type: ignore[union-attr]
    life.session(rows_of(0.0, seed=3), 3)
    assert len(life.released) == 2
    life.session(rows_of(0.0, seed=4), 3)
    assert len(life.released) == 4


def test_forgetting_one_wearer_leaves_the_others_theirs() -> None:
    life = Life()
    for wearer in (3, 4, 3, 4):
        life.session(rows_of(0.0, seed=wearer), wearer)
    assert len(life.released) == 4
    held = life.stream._last[3].taken_off  # type: ignore[attr-defined]
    life.stream.forget(3)
    assert np.isnan(held._history.first).all()  # type: ignore[union-attr]
    life.session(rows_of(0.0, seed=5), 4)
    assert len(life.released) == 6, "the one who was not forgotten goes on"
    life.session(rows_of(0.0, seed=6), 3)
    assert len(life.released) == 6, "the other one begins a pseudonym"
    life.session(rows_of(0.0, seed=7), 3)
    assert len(life.released) == 8


def test_more_wearers_than_are_remembered_are_never_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyestream.core.release.order.MOST_WEARERS", 2)
    monkeypatch.setattr("eyestream.core.release.stream.MOST_WEARERS", 2)
    life = Life()
    for wearer in (1, 2, 3, 3, 3, 1, 2):
        life.session(rows_of(0.0, 1), wearer)
    assert [session for session, _ in life.released] == [6, 7]


def config_of(folder: Path, privacy: str) -> Path:
    calibrations.save(calibration(), folder / "words.npz")
    path = folder / "sidecar.toml"
    path.write_text(
        f'[private]\nurl = "{NO_BROKER}"\n[[device]]\nid = "hmd-1"\n[[stream]]\nwindow_s = 30\n'
        f"[stream.privacy]\n{privacy}"
    )
    return path


def test_a_purpose_of_tasks_takes_its_price_a_minute(tmp_path: Path) -> None:
    path = config_of(tmp_path, 'purpose = "tasks"\ncalibration = "./words.npz"\nepsilon_per_minute = 18\n')
    plan = resolved(load(path)).streams["features"]
    assert plan.mechanism.epsilon == pytest.approx(18 * N / RATE_HZ / 60)
    assert (plan.meta.names, plan.meta.n, plan.meta.rate_hz) == (TASKS, 1, RATE_HZ / N)
    assert plan.meta.units == ("probability",) * 3
    assert "\npurpose: tasks: which task a wearer does" in plan.meta.guarantee
    assert plan.device("hmd-1").apart == 61
    assert "of every 3 sessions of a wearer the first is withheld" in plan.lasting


@pytest.mark.parametrize(
    ("privacy", "said"),
    [
        ('purpose = "tasks"\nepsilon_per_minute = 18\n', "calibration: missing beside purpose 'tasks'"),
        ('purpose = "tasks"\ncalibration = "./words.npz"\n', "(4.5 is usual for words of tasks)"),
        ('purpose = "tasks"\ncalibration = "./words.npz"\n', "epsilon_per_minute: missing beside purpose"),
        (
            'purpose = "tasks"\ncalibration = "./words.npz"\nepsilon_per_minute = 18\nepsilon = 4\n',
            "purpose: it stands for calibration and epsilon; take out epsilon",
        ),
        (
            'purpose = "tasks"\ncalibration = "everyday-klt-32"\nepsilon_per_minute = 18\n',
            "calibration: expected one of tasks, which eyestream calibrate --labels makes, not one of klt",
        ),
        (
            'calibration = "./words.npz"\nepsilon = 4\ncorrelation = "everyday"\n',
            "correlation: leave it out for a calibration with a pseudonym's history",
        ),
    ],
)
def test_what_cannot_be_meant_is_said(privacy: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        assert resolved(load(config_of(tmp_path, privacy))).streams["features"].guarantee


async def test_from_raw_rows_to_an_application(mosquitto: Mosquitto, tmp_path: Path) -> None:
    calibrations.save(calibration(), tmp_path / "words.npz")
    privacy = PrivacySettings(str(tmp_path / "words.npz"), EPSILON, purpose="tasks", epsilon_per_minute=270.0)
    settings = settings_for(
        mosquitto.url, tmp_path, raw_url=mosquitto.url, names=NAMES, rate_hz=RATE_HZ, window_s=1.0, privacy=privacy
    )
    own = people(1, 9)[0][:SESSIONS]
    with assemble(resolved(settings), lambda: 20_000) as made:
        async with (
            at_work(made.sidecar),
            subscribe(mosquitto.url, "hmd-1") as chunks,
            Publisher(mosquitto.url, "hmd-1", NAMES, RATE_HZ, wearer=7) as publisher,
        ):
            await until(lambda: made.sidecar.raw_stands and made.sidecar.private_stands)
            for one in own:
                assert await publisher.send(one.rows.features)
                await publisher.end_session(wearer=7)
            released = sum(len(one.rows.features) // N for one in own[1:])
            found = [await anext(chunks) for _ in range(released)]
        assert chunks.meta is not None
        assert chunks.meta.names == TASKS
    assert all(chunk.values.shape == (3, 1) and chunk.values.sum() == pytest.approx(1.0) for chunk in found)
    assert {chunk.view.word for chunk in found} <= set(TASKS)
    assert len({chunk.session for chunk in found}) == SESSIONS - 1
    assert found[1].t[0] == N / RATE_HZ
    spent = read_ledger(settings.sidecar.ledger).odometers["hmd-1"]
    assert spent.epsilon == released * 9 * EPSILON_UNITS
    odds = posterior(found, {"browse": 1.0, "play": 1.0, "read": 1.0})
    assert sum(odds.values()) == pytest.approx(1.0)
    assert odds == pytest.approx(posterior(found))


async def test_the_example_and_the_page_print_words_and_what_they_say_together(
    mosquitto: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(EXAMPLE))
    page = body_of(code_of("docs/tasks.md").replace("mqtt://localhost", mosquitto.url), {"eyestream": eyestream})
    calibrations.save(calibration(), tmp_path / "words.npz")
    settings = settings_for(
        mosquitto.url,
        tmp_path,
        raw_url=mosquitto.url,
        names=NAMES,
        rate_hz=RATE_HZ,
        window_s=1.0,
        privacy=PrivacySettings(str(tmp_path / "words.npz"), EPSILON),
    )
    said = ""
    with assemble(resolved(settings), lambda: 20_000) as made:
        async with at_work(made.sidecar), Publisher(mosquitto.url, "hmd-1", NAMES, RATE_HZ) as publisher:
            await until(lambda: made.sidecar.raw_stands and made.sidecar.private_stands)
            beside = asyncio.create_task(page)
            watching = asyncio.create_task(example["watch"](mosquitto.url, "hmd-1", "features", 2))
            sessions = itertools.cycle(people(1, 9)[0])
            async with asyncio.timeout(20):
                while not (watching.done() and re.search(r"(?m)^(browse|play|read) \{'", said)):
                    assert await publisher.send(next(sessions).rows.features)
                    await publisher.end_session()
                    await asyncio.sleep(0.2)
                    said += capsys.readouterr().out
            beside.cancel()
    lines = [line for line in said.splitlines() if "session: " in line]
    assert len(lines) == 2
    assert all(line.split()[2] in TASKS for line in lines)
    assert re.search(r"(?m)^\{'browse': .*, 'play': .*, 'read': ", said)


def test_what_was_asked_for_before_forgetting_is_not_released() -> None:
    """The ledger's answer comes after histories were forgotten: the chunk is spent, and nothing leaves of it."""
    life = Life()
    life.session(rows_of(0.0, 1, seed=1), 3)
    outcome = life.stream.feed(RawRows(7, 0, rows_of(0.0, 1, seed=2), end=True, wearer=3), 7.0)
    assert [request.unreleased for request in outcome.requests] == [False]
    life.stream.forget()
    assert life.stream.answer([Granted(request) for request in outcome.requests]).payloads == []
    life._session = 8
    for number in range(4):
        life.session(rows_of(0.0, 1, seed=number), 3)
    assert [session for session, _ in life.released] == [10, 11]
    assert life.stream.counters.dropped == {}


def test_a_shard_keeps_no_history(tmp_path: Path) -> None:
    create_shard(tmp_path, 0, 1, created=0)
    streams = [(SETTINGS, build(calibration(), EPSILON))]
    with (
        pytest.raises(ShardError, match="hmd-1/features: a shard keeps no history of wearers"),
        held_outbox(tmp_path, 0, 1) as outbox,
        opened_shard(tmp_path, outbox, streams, ceilings=Ceilings(), today=lambda: 1),
    ):
        raise AssertionError("it was let in")
