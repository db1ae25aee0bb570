"""Who wears a device, from the tracker's message to the ledger; and that applications are told nothing of it."""

import logging
from pathlib import Path

import msgspec
import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request
from eyestream.core.wearers import MOST_WEARERS
from eyestream.errors import ConfigError
from eyestream.ops.metrics import PLANNED, health
from eyestream.rim.config import Settings, WearerBudgetSettings, load
from eyestream.rim.ledger.identity import ledger_name, wearer_number
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import LedgerReading, read_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.sdk.publisher import Publisher
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw
from eyestream.wire.status import Budget, decode_budget, decode_status
from eyestream.wire.topics import budget_topic, status_topic
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import as_said, rows_of_a_stranger
from tests.rigs.rig import Rig
from tests.rigs.sidecar import at_work, settings_for
from tests.rigs.spy import Spy, spying

ANNA, BEN = 2**32 - 1, 7
DAY = 20_000
N = 32


def number_of(reading: LedgerReading, device: str, wearer: int) -> int:
    """Under which number the ledger has the wearer whom a message names so."""
    return wearer_number(ledger_name(reading.header.ledger_id), device, str(wearer))


def with_wearers(settings: Settings, **ceilings: float) -> Settings:
    budget = msgspec.structs.replace(settings.budget, wearer=WearerBudgetSettings(**ceilings))
    return msgspec.structs.replace(settings, budget=budget)


async def send_sessions(
    url: str, device: str, names: tuple[str, ...], spy: Spy, sessions: list[tuple[int, int]]
) -> None:
    """Sessions of (wearer, chunks that come of four), each chunk sent when the one before has come."""
    rows, come = rows_of_a_stranger(4 * N, len(names)), len(spy.chunks(device))
    async with Publisher(url, device, names, 2.0, wearer=sessions[0][0]) as publisher:
        for number, (wearer, released) in enumerate(sessions):
            if number:
                await publisher.end_session(wearer=wearer)
            for index in range(4):
                await publisher.send(rows[index * N : (index + 1) * N])
                come += index < released
                await until(lambda come=come: len(spy.chunks(device)) == come)


def published(spy: Spy) -> list[tuple[str, bytes]]:
    """What is not a tracker's."""
    return [(topic, payload) for topic, payload, _ in spy.messages if not topic.endswith("/raw")]


async def test_nothing_that_is_published_tells_one_wearer_from_another(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """One device names nobody, one always the same, one somebody else in each session: the same bytes but for noise."""
    devices = {"hmd-1": (0, 0, 0), "hmd-2": (ANNA, ANNA, ANNA), "hmd-3": (ANNA, BEN, 1)}
    settings = with_wearers(settings_for(mosquitto.url, tmp_path, devices=tuple(devices)), lifetime_epsilon=57.6)
    with assemble(resolved(settings), lambda: DAY) as made:
        async with spying(mosquitto.url) as spy:
            async with at_work(made.sidecar):
                await until(lambda: health(made.sidecar) == "ok")
                for device, wearers in devices.items():
                    sessions = [(wearer, 4) for wearer in wearers]
                    await send_sessions(mosquitto.url, device, settings.stream[0].names, spy, sessions)
                    await until(lambda device=device: len(spy.leaf("budget", device)) == 1 + 12)
            await until(lambda: all(spy.leaf("status", device)[-1]["state"] == "offline" for device in devices))
    told = []
    for device in devices:
        leaves = [(topic.rpartition("/")[2], payload) for topic, payload in published(spy) if f"/{device}/" in topic]
        said = [(leaf, as_said(leaf, payload)) for leaf, payload in leaves if leaf != "private"]
        chunks = [{**chunk, "session": 0, "values": len(chunk["values"])} for chunk in spy.leaf("private", device)]
        told.append(([leaf for leaf, _ in leaves], said, chunks))
    assert told[0] == told[1] == told[2]
    reading = read_ledger(settings.sidecar.ledger)
    spent = {device: odometer.wearers.keys() for device, odometer in reading.odometers.items()}
    numbers = {device: {number_of(reading, device, w) for w in set(named) - {0}} for device, named in devices.items()}
    assert spent == numbers, "control: the ledger does know"


async def test_a_wearer_whose_budget_is_spent_is_withheld_until_the_next_session(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Applications are told no more than that: neither which ceiling it was, nor what the wearer had spent."""
    caplog.set_level(logging.INFO)
    settings = with_wearers(settings_for(mosquitto.url, tmp_path), lifetime_epsilon=9.6)
    statuses, budgets = [], []
    with assemble(resolved(settings), lambda: DAY) as made:
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            await until(lambda: health(made.sidecar) == "ok")
            names = settings.stream[0].names
            await send_sessions(mosquitto.url, "hmd-1", names, spy, [(ANNA, 2)])
            await until(lambda: health(made.sidecar) == "wearer")
            assert "wearer" in PLANNED
            await send_sessions(mosquitto.url, "hmd-1", names, spy, [(BEN, 2)])
            await until(lambda: made.sidecar.pipeline.counters.withheld["wearer"] == 2 + 2)
            await send_sessions(mosquitto.url, "hmd-1", names, spy, [(ANNA, 0), (0, 4)])
            await until(lambda: health(made.sidecar) == "ok")
    for topic, payload in published(spy):
        if topic == status_topic("hmd-1"):
            statuses.append(decode_status(payload).reason)
        if topic == budget_topic("hmd-1"):
            budgets.append(decode_budget(payload))
    assert set(statuses) <= {"raw_link", "ready", "session", "stopped"}
    assert Budget(0, "session") in budgets
    assert all(budget == Budget(0, "session") or budget.chunks > 1000 for budget in budgets), "of the device"
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert "what the budget allows a wearer is spent; releases go on with a session of another wearer" in said
    assert str(ANNA) not in said
    assert not any(b"wearer" in payload for topic, payload in published(spy) if not topic.endswith("/meta"))


async def test_a_handle_that_changes_in_a_session_is_refused_and_told_to_the_operator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = np.zeros((2, 3), np.float32)
    with Rig(tmp_path) as rig:
        for seq, wearer in ((0, ANNA), (2, BEN), (2, ANNA)):
            await rig.take(rig.arrival(encode_raw(1, seq, rows, 7, wearer=wearer)))
        assert rig.counters.released == 1
        assert [request.wearer for request in rig.granted] == [ANNA]
        assert rig.device().counters.wearer == 2
        odometer = rig.ledger.odometer("d0")
        assert odometer is not None
        assert odometer.wearers.keys() == {ANNA}
    [line] = [record.getMessage() for record in caplog.records if "is refused" in record.getMessage()]
    assert "(wearer): its rows name another wearer than their session did" in line
    assert str(BEN) not in line


async def test_a_publisher_names_the_wearer_of_each_session(mosquitto: Mosquitto, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wearer: expected a number from 0 to 4294967295"):
        Publisher(mosquitto.url, "hmd-1", ["a"], 2.0, wearer=2**32)
    settings = settings_for(mosquitto.url, tmp_path)
    names = settings.stream[0].names
    with assemble(resolved(settings), lambda: DAY) as made:
        async with at_work(made.sidecar):
            await until(lambda: health(made.sidecar) == "ok")
            async with Publisher(mosquitto.url, "hmd-1", names, 2.0, wearer=ANNA) as publisher:
                with pytest.raises(ConfigError, match="wearer"):
                    await publisher.end_session(wearer=-1)
                for number, wearer in enumerate((ANNA, None, BEN, 0)):
                    if number:
                        await publisher.end_session(wearer=wearer)
                    await publisher.send(rows_of_a_stranger(N, len(names)))
                await until(lambda: made.sidecar.pipeline.counters.released == 4)
    reading = read_ledger(settings.sidecar.ledger)
    wearers = reading.odometers["hmd-1"].wearers
    assert {wearer: spent.epsilon for wearer, spent in wearers.items()} == {
        number_of(reading, "hmd-1", ANNA): 2 * Charge.of(4.8).epsilon,
        number_of(reading, "hmd-1", BEN): Charge.of(4.8).epsilon,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    main(["init", str(tmp_path / "sidecar")])
    return tmp_path / "sidecar" / "sidecar.toml"


def written(path: Path, *lines: str) -> Path:
    """The configuration with a table ``[budget.wearer]``."""
    text, other = path.read_text(), path.with_name("other.toml")
    other.write_text(text.replace("# [budget.wearer]\n", "\n".join(["[budget.wearer]", *lines, ""])))
    return other


def test_the_table_is_optional_and_its_ceilings_let_one_chunk_through(path: Path) -> None:
    plain = load(path)
    assert plain.budget.wearer is None
    assert resolved(plain).ceilings.wearer is None
    settings = load(written(path, "day_epsilon = 48.0", "lifetime_delta = 1e-3"))
    assert resolved(settings).ceilings.wearer == Ceilings.of(day=48.0, lifetime_delta=1e-3)
    low = load(written(path, "lifetime_epsilon = 4.7"))
    with pytest.raises(ConfigError, match=r"\[budget.wearer\] lifetime_epsilon: expected at least the epsilon of one"):
        resolved(low)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("session_epsilon = 48.0", r"\[budget.wearer\] session_epsilon: unknown key"),
        ("day_epsilon = -1.0", r"\[budget.wearer\] day_epsilon: expected a number above 0"),
        ('lifetime_mode = "fade"', r"\[budget.wearer\] lifetime_mode: unknown key"),
        ("day_delta = 2", r"\[budget.wearer\] day_delta: expected a number, 0 to 1"),
    ],
)
def test_what_no_wearer_can_have_is_one_line(path: Path, line: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(written(path, line))


def test_ceilings_of_a_wearer_are_lowered_without_a_restart_and_never_raised(path: Path) -> None:
    plain, some, less = load(path), *(load(written(path, f"day_epsilon = {day}")) for day in (48.0, 24.0))
    plain, some, less = (msgspec.structs.replace(one, sidecar=plain.sidecar) for one in (plain, some, less))
    for old, new in ((plain, some), (some, less)):
        assert resolved(old).lowered(new).ceilings.wearer == resolved(new).ceilings.wearer
    for old, new in ((less, some), (some, plain)):
        with pytest.raises(ConfigError, match=r"\[budget.wearer\] day_epsilon is higher"):
            resolved(old).lowered(new)
    with Ledger(plain.sidecar.ledger, ceilings=resolved(some).ceilings) as ledger:
        ledger.lower(resolved(less).ceilings)
        with pytest.raises(ValueError, match="no higher"):
            ledger.lower(resolved(plain).ceilings)


def test_the_guarantee_says_what_a_wearer_costs_and_what_that_rests_on(path: Path) -> None:
    plain, settings = load(path), load(written(path, "lifetime_epsilon = 20000.0", "day_delta = 0.5"))
    without, told = (resolved(one).streams["features"].guarantee for one in (plain, settings))
    assert "wearer" not in {topic for topic, _ in without.sentences()}
    words = dict(told.sentences())
    for text in (
        "the sum over the chunks of this device whose sessions name one wearer",
        "The handles are believed: a person under several handles has as many budgets",
        "only the ceilings of the device bound their sum",
        "Chunks without a handle count for no wearer",
        "The same handle on another device is another wearer",
        "can be seen: it tells that the person who wears the device has spent that much",
    ):
        assert text in words["wearer"]
    assert words["wearer, day"].endswith("; at most delta 0.5")
    assert words["wearer, lifetime"].endswith("since the ledger began; it does not fade; at most epsilon 20000")
    scopes = {scope["unit"]: scope for scope in told.claim()["scopes"]}  # type: ignore[attr-defined]
    assert scopes["wearer, lifetime"]["ceiling"] == 20000.0
    assert scopes["wearer, day"]["ceiling_delta"] == 0.5
    assert scopes["wearer"]["loss"] is scopes["wearer"]["ceiling"] is None


def test_the_ledger_decides_by_the_table(path: Path) -> None:
    settings = load(written(path, "day_epsilon = 9.6"))
    plan = resolved(settings)
    charge = plan.streams["features"].charges[0]
    key = StreamKey(settings.device[0].id, "features")
    asked = [
        Request(key, 1, 64 * i, 64 * i + 63, 64, charge, wearer) for i, wearer in enumerate((ANNA, ANNA, ANNA, BEN, 0))
    ]
    with Ledger(settings.sidecar.ledger, ceilings=plan.ceilings) as ledger:
        answers = [isinstance(answer, Granted) for answer in ledger.reserve(asked, DAY)]
    assert answers == [True, True, False, True, True]


def test_the_page_for_trackers_has_the_number_of_handles() -> None:
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert f"knows {MOST_WEARERS} handles of a device" in " ".join(page.split())
