"""Kaleido live: its slots by the clock, what is charged, and what is said of it."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyestream.cli.main import main
from eyestream.core.mechanisms import build
from eyestream.errors import CalibrationError, ConfigError
from eyestream.gaze.live import LiveFrontEnd
from eyestream.gaze.samples import Samples
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.plan import load
from eyestream_lab.kaleido import Kaleido, KaleidoSession, Settings
from eyestream_lab.kaleido.mechanism import PARTS
from eyestream_lab.kaleido_live.mechanism import KaleidoClaim, KaleidoCore, LiveKaleido
from eyestream_lab.kaleido_live.places import place_rows
from eyestream_lab.kaleido_live.tables import calibration_of, settings_of
from eyestream_lab.testing.noise import SeededNoise
from tests.lab.kaleido.test_kaleido import AnyNoise

EPSILON = 360.5
CALIBRATION = calibrations.load("kaleido-r2")
SETTINGS = settings_of(CALIBRATION)
W = SETTINGS.w


def slot(x: np.ndarray, y: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The row of a slot, (3 w, 1)."""
    return np.concatenate((x, y, seen))[:, None]


def spend(mechanism: LiveKaleido, released: np.ndarray) -> Fraction:
    """The largest of any w consecutive samples of (4, m), tests included, exactly."""
    core = mechanism.core
    assert isinstance(core, KaleidoCore)
    test, own = core.kaleido.test_epsilon, Fraction(core.kaleido.epsilon)
    each = np.stack([released[2] != 0, np.rint(released[3] * PARTS)]).astype(np.int64)
    running = np.cumsum(np.pad(each, ((0, 0), (W, 0))), axis=1)
    windows = set(zip(*(running[:, W:] - running[:, :-W]).tolist(), strict=True))
    return max(test * tests + own * parts / PARTS for tests, parts in windows)


def test_slots_of_a_session_are_the_samples_of_one() -> None:
    """Slot by slot, through snapshots, and as one session of Kaleido: the same under one noise."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.0, 15.0, (2, 6 * W))
    seen = (rng.random(6 * W) > 0.1).astype(float)
    live = LiveKaleido(CALIBRATION, EPSILON, noise=SeededNoise(7))
    assert isinstance(live.core, KaleidoCore)
    offline = Kaleido(live.core.kaleido.epsilon, SETTINGS, noise=SeededNoise(7)).session()
    session, found = live.session(), []
    for part in np.split(np.arange(6 * W), 6):
        found.append(session.release(slot(x[part], y[part], seen[part])))
        session = live.session(session.snapshot())
    steps = offline.release(x, y, seen > 0)
    expected = np.array([(step.x_deg, step.y_deg, step.tested, step.parts / PARTS) for step in steps]).T
    np.testing.assert_array_equal(np.concatenate(found, axis=1), expected)
    assert expected[3].sum() > 0


def sent(rng: np.random.Generator, jumps: list[float], burst: int) -> Samples:
    """Gaze far from wherever it was, on a clock that jumps at random places, in bursts of one time."""
    t = np.cumsum(np.full(400, 0.01) + np.where(rng.random(400) < 0.05, rng.choice(jumps, 400), 0.0))
    t = np.repeat(t, burst) + np.tile(np.arange(burst) * 1e-4, 400)
    x = np.where(np.arange(len(t)) % 2, 25.0, -25.0)
    return Samples.of(t, x, -x / 2)


@pytest.mark.parametrize("rate_hz", [30.0, 120.0, 1000.0])
@given(
    st.integers(0, 2**20), st.lists(st.sampled_from([-3.0, -0.5, 0.0, 0.3, 2.0]), min_size=1), st.sampled_from([1, 3])
)
def test_no_clock_and_no_burst_makes_a_window_spend_more(
    rate_hz: float, seed: int, jumps: list[float], burst: int
) -> None:
    """Through the front end of live gaze and the mechanism, with any noise: every slot has w samples."""
    rng = np.random.default_rng(seed)
    live = LiveFrontEnd(load_profile("degrees").at_rate(rate_hz), entry=place_rows(CALIBRATION))
    mechanism = LiveKaleido(CALIBRATION, EPSILON, noise=AnyNoise([2**30, -(2**30), 2**12]))
    samples, rows = sent(rng, jumps, burst), []
    arrived = np.maximum.accumulate(samples.t + 5.0)
    for begin in range(0, len(samples), 97):
        live.take(samples[begin : begin + 97], arrived[begin : begin + 97])
        rows += live.due(float(arrived[min(begin + 96, len(samples) - 1)]))
    rows += live.finish(float(arrived[-1]) + 2.0)
    sessions: dict[int, list[np.ndarray]] = {}
    for made in rows:
        sessions.setdefault(made.session, []).extend(made.values)
    for values in sessions.values():
        session = mechanism.session()
        released = np.concatenate([session.release(value[:, None]) for value in values], axis=1)
        assert released.shape == (4, W * len(values))
        assert spend(mechanism, released) <= Fraction(mechanism.core.kaleido.epsilon)  # type: ignore[attr-defined]


def test_the_shipped_calibration_is_the_published_settings() -> None:
    made = calibration_of(Settings(), 100.0)
    assert settings_of(CALIBRATION) == Settings()
    assert (CALIBRATION.names, CALIBRATION.rate_hz, CALIBRATION.front_end) == (made.names, 2.0, made.front_end)
    for bound in ("lo", "hi", "fill"):
        np.testing.assert_array_equal(getattr(CALIBRATION, bound), getattr(made, bound))
    with pytest.raises(CalibrationError, match="expected a calibration of kaleido, not one of tile"):
        settings_of(calibrations.load("everyday-tile"))


def test_the_ledger_is_charged_the_worst_case_and_both_figures_are_said() -> None:
    mechanism = build(CALIBRATION, EPSILON)
    assert isinstance(mechanism.core, KaleidoCore)
    kaleido = mechanism.core.kaleido
    assert kaleido.worst.epsilon <= Fraction(mechanism.epsilon) == mechanism.loss.epsilon
    assert float(kaleido.worst.epsilon) == pytest.approx(EPSILON, rel=1e-12)
    assert kaleido.epsilon == pytest.approx(10.0, abs=0.01)
    claim = mechanism.claim
    assert isinstance(claim, KaleidoClaim)
    assert "360.5-differential privacy (pure) for the gaze of one slot of 0.5 s" in claim.statement
    assert "epsilon 10 for any 50 consecutive samples, each moved by at most 2 degrees" in claim.statement
    assert "beyond that are covered by the first figure alone" in claim.statement
    told = claim.facts()
    assert told["small_movements"] == {"epsilon": kaleido.epsilon, "w": 50, "r_deg": 2.0, "charged": False}
    for wrong in (0.1, 1e6):
        with pytest.raises(ConfigError, match=r"kaleido: epsilon of a slot: expected 0\.36\d* to 3\.60\de\+04"):
            build(CALIBRATION, wrong)


@pytest.mark.parametrize("state", ["start", "old"])
def test_a_slot_costs_its_epsilon_from_any_state(state: str) -> None:
    """Also where an older snapshot was put back: what the slot itself spends has the ceiling of a window."""
    mechanism = LiveKaleido(CALIBRATION, EPSILON, noise=AnyNoise([2**30, -(2**30)]))
    x = np.where(np.arange(W) % 2, 25.0, -25.0)
    session = mechanism.session()
    kept = session.snapshot()
    for _ in range(3):
        if state == "old":
            session = mechanism.session(kept)
        released = session.release(slot(x, x / 2, np.ones(W)))
        assert spend(mechanism, released) <= Fraction(mechanism.core.kaleido.epsilon)  # type: ignore[attr-defined]


class ForgetsBetweenSlots(KaleidoSession):
    """The window of spends begins again with each slot."""

    def resume(self, state: np.ndarray) -> None:
        state = state.copy()
        state[4:] = 0
        state[3] = self.mechanism.settings.skip
        super().resume(state)


def test_a_window_that_begins_again_with_each_slot_overspends(monkeypatch: pytest.MonkeyPatch) -> None:
    """In windows that lie in two slots: what the second figure says."""

    def largest() -> Fraction:
        mechanism = LiveKaleido(CALIBRATION, EPSILON, noise=AnyNoise([2**30, -(2**30)]))
        session, late = mechanism.session(), np.where(np.arange(W) % 2, 25.0, -25.0)
        still = np.concatenate((np.zeros(W - 5), late[:5]))
        rows = [slot(one, one / 2, np.ones(W)) for one in (still, late, late)]
        own = mechanism.core.kaleido.epsilon  # type: ignore[attr-defined]
        return spend(mechanism, np.concatenate([session.release(row) for row in rows], axis=1)) / Fraction(own)

    assert largest() <= 1
    monkeypatch.setattr("eyestream_lab.kaleido_live.mechanism.KaleidoSession", ForgetsBetweenSlots)
    assert largest() > 1


def test_a_new_configuration_is_whole_and_says_both_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "s"), "--mechanism", "kaleido"])
    assert "lasts          a session 1 h 00 min, a day 2 h 00 min of releases" in capsys.readouterr().out
    path = tmp_path / "s" / "sidecar.toml"
    stream = load(path).streams["gaze"]
    assert (stream.mechanism.name, stream.meta.n, stream.meta.rate_hz) == ("kaleido", W, 100.0)
    main(["guarantee", "--config", str(path), "--json"])
    told = json.loads(capsys.readouterr().out)["gaze"]
    assert told["promise"]["small_movements"]["epsilon"] == pytest.approx(10.0, abs=0.01)
    assert told["loss"]["epsilon"] == pytest.approx(EPSILON)
    main(["guarantee", "--config", str(path)])
    assert "each moved by at most 2 degrees" in " ".join(capsys.readouterr().out.split())
