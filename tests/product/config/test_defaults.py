"""A minimal file is enough, what it leaves out has a value that the page of the configuration states, and no default
loosens what a file says."""

from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings
from eyestream.core.purposes import DAY_EPSILON, PURPOSES, SESSION_EPSILON, choose
from eyestream.errors import ConfigError
from eyestream.ops.new_configuration import default_epsilon
from eyestream.rim import config
from eyestream.rim.config.purposes import load_table
from eyestream.rim.config.tables import LOCAL_BROKER
from eyestream.rim.plan import load
from eyestream.rim.sidecar.assembly import assemble

DEVICE = '[[device]]\nid = "hmd-1"\n'
SOURCE = '[source]\nkind = "neon"\n[source.options]\nhost = "neon.local"\n'
PRICED = '[[stream]]\n[stream.privacy]\ncalibration = "everyday-klt-64"\nepsilon = 4.8\n'
MEANT = '[[stream]]\n[stream.privacy]\npurpose = "{}"\nepsilon_per_minute = 18\n'


def written(folder: Path, *parts: str) -> Path:
    path = folder / "sidecar.toml"
    path.write_text("".join(parts))
    return path


@pytest.mark.parametrize("stream", [PRICED, *map(MEANT.format, PURPOSES)])
def test_a_device_a_source_and_a_stream_are_enough(tmp_path: Path, stream: str) -> None:
    plan = load(written(tmp_path, DEVICE, SOURCE, stream))
    (planned,) = plan.streams.values()
    spec = planned.spec
    assert (spec.name, spec.schema, spec.rate_hz, spec.window_s) == ("features", 1, 2.0, 30.0)
    assert len(planned.spec.names) == 52
    (device, _) = plan.served["hmd-1", "features"]  # type: ignore[index]
    assert (device.grace_s, device.idle_s, device.release, device.jump_chunks) == (1.0, 60.0, "on_row", 16)
    assert plan.settings.sidecar.ledger == tmp_path / "ledger"
    assert plan.settings.private.url == "mqtt://localhost:1883"
    assert "epsilon" in planned.meta.guarantee
    assert plan.sources().keys() == plan.served.keys()


def test_ceilings_that_are_not_given(tmp_path: Path) -> None:
    plan = load(written(tmp_path, DEVICE, PRICED))
    assert plan.ceilings == Ceilings.of(2, 9.6, 1152.0, 2304.0)
    assert plan.streams["features"].lasting.startswith("a session 2 h 08 min, a day 4 h 16 min of releases")
    assert "withholds" not in plan.streams["features"].lasting


def test_the_shipped_configuration_is_the_answer_to_its_purpose() -> None:
    """Who changes the default epsilon learns here which other figures follow from it."""
    shipped = config.load(Path(__file__).parents[3] / "config" / "sidecar.toml")
    privacy, budget = shipped.stream[0].privacy, shipped.budget
    choice = choose(PURPOSES["unrecognised"], load_table()["rows"])
    assert (privacy.calibration, privacy.epsilon) == (choice.calibration, choice.epsilon)
    assert privacy.epsilon == default_epsilon()
    assert shipped.private.url == LOCAL_BROKER
    assert budget.window_epsilon == budget.window_chunks * default_epsilon()
    assert (budget.session_epsilon, budget.day_epsilon) == (SESSION_EPSILON, DAY_EPSILON)


@pytest.mark.parametrize("epsilon", [4.8, 0.1, 1 / 3, 1.1e-7, 97.123456789123])
def test_the_default_window_never_withholds_a_chunk(tmp_path: Path, epsilon: float) -> None:
    plan = load(written(tmp_path, DEVICE, PRICED.replace("4.8", repr(epsilon))))
    window = plan.ceilings.window
    assert window is not None
    assert window >= 2 * plan.streams["features"].charges[0].epsilon
    assert window <= 2 * plan.streams["features"].charges[0].epsilon + 10**4


def test_the_default_window_of_a_purpose_is_the_operators_own_figure(tmp_path: Path) -> None:
    """No newer version can raise it: it follows from `epsilon_per_minute` alone."""
    for purpose in PURPOSES:
        plan = load(written(tmp_path, DEVICE, MEANT.format(purpose)))
        assert plan.settings.budget.window_epsilon == 54.0


def test_a_default_loosens_no_ceiling_that_is_given(tmp_path: Path) -> None:
    given = "[budget]\nday_epsilon = 100.0\nwindow_epsilon = 5.0\n[budget.wearer]\nday_epsilon = 50.0\n"
    ceilings = load(written(tmp_path, DEVICE, PRICED, given)).ceilings
    assert ceilings.day == Ceilings.of(day=100.0).day
    assert ceilings.window == Ceilings.of(2, window=5.0).window
    assert ceilings.wearer == Ceilings.of(day=50.0)


def test_a_reload_takes_no_ceiling_away(tmp_path: Path) -> None:
    """A window that was given, and one that was not, are compared as they hold."""
    loose = load(written(tmp_path, DEVICE, PRICED))
    assert loose.lowered(config.load(tmp_path / "sidecar.toml")).ceilings == loose.ceilings
    tight = load(written(tmp_path, DEVICE, PRICED, "[budget]\nwindow_epsilon = 5.0\n"))
    assert loose.lowered(tight.settings).ceilings == tight.ceilings
    with pytest.raises(ConfigError, match=r"\[budget\] window_epsilon is higher"):
        tight.lowered(config.load(written(tmp_path, DEVICE, PRICED)))
    with pytest.raises(ConfigError, match=r"\[budget\] window_epsilon is higher"):
        loose.lowered(config.load(written(tmp_path, DEVICE, PRICED, "[budget]\nwindow_epsilon = 50.0\n")))


def test_a_pause_is_as_long_as_what_a_row_describes(tmp_path: Path) -> None:
    longer = PRICED.replace("[stream.privacy]", "memory_s = 45.0\n[stream.privacy]")
    ((device, _),) = load(written(tmp_path, DEVICE, longer)).served.values()
    assert device.idle_s == 75.0


def test_rows_that_no_front_end_makes_must_say_their_window(tmp_path: Path) -> None:
    other = PRICED.replace("[stream.privacy]", 'names = ["a"]\n[stream.privacy]')
    with pytest.raises(ConfigError, match=r"stream 'features': \[\[stream\]\] window_s: missing"):
        load(written(tmp_path, DEVICE, other))


def test_what_nothing_can_stand_for_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, "[sidecar]\n"))
    assert [line.split(": ", 1)[1] for line in str(caught.value).splitlines()] == [
        "[[stream]]: missing; expected a list of tables, at least 1",
        "[[device]]: missing; expected a list of tables, at least 1",
    ]


def test_a_minimal_sidecar_stands(tmp_path: Path) -> None:
    from eyestream.rim.ledger.reading import create_ledger

    plan = load(written(tmp_path, DEVICE, PRICED))
    create_ledger(plan.settings.sidecar.ledger, created=0)
    with assemble(plan, lambda: 20_000) as made:
        assert [tuple(key) for key in made.sidecar.pipeline.keys] == [("hmd-1", "features")]
