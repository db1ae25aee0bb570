"""`eyestream privatize` under a lifetime's ceiling: what does not fit is refused, or epsilon fades as it does live."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, charges_of
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.kinds import Loss
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.reservation import Granted, Request
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey
from eyestream_lab import hindsight
from eyestream_lab.recordings import recording
from eyestream_lab.recordings.privatize import Booking, privatize
from eyestream_lab.recordings.recording import RecordingRelease
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate

FADE = ["--lifetime-epsilon", "38.4", "--lifetime-mode", "fade"]
"""At 4.8: four chunks of 4.8, four of 2.4, four of 1.2 and so on."""


@pytest.fixture(scope="module")
def person() -> np.ndarray:
    """(600, F) of one who does not exist."""
    return next(iter(simulate(load_statistics(), 1, 300.0, 1))).astype(np.float64)


@pytest.fixture
def folder(tmp_path: Path, person: np.ndarray) -> Path:
    """Five chunks of 32 rows, nine of 64, and a ledger."""
    for name, rows in (("short", 150), ("long", 570)):
        recordings.save(Recording(np.arange(rows) / 2.0, person[:rows], NAMES), tmp_path / f"{name}.npz")
    main(["budget", "--ledger", str(tmp_path / "L"), "--new"])
    return tmp_path


def run(folder: Path, name: str, calibration: str, *options: str, out: str = "out") -> dict[str, Any]:
    book = ["--ledger", str(folder / "L"), "--device", "p0", "--epsilon", "4.8", "--out", str(folder / out)]
    main(["privatize", str(folder / f"{name}.npz"), "--calibration", calibration, *book, *options])
    told: dict[str, Any] = json.loads((folder / out / f"{name}.npz.claim.json").read_text())
    return told


@pytest.fixture
def released_at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Epsilon of the mechanism that released each chunk."""
    found: list[float] = []
    real = Mechanism.release_turn

    def noted(self: Mechanism, *given: Any) -> Any:
        found.append(self.epsilon)
        return real(self, *given)

    monkeypatch.setattr(Mechanism, "release_turn", noted)
    return found


def test_each_chunk_costs_what_it_was_charged_and_is_released_at_that(
    folder: Path, released_at: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(folder, "short", "everyday-cfpa-32", *FADE)
    assert released_at == [4.8] * 4 + [2.4]
    assert first["epsilon_of_chunks"] == [
        {"first_row": 0, "chunks": 4, "epsilon": 4.8},
        {"first_row": 128, "chunks": 1, "epsilon": 2.4},
    ]
    second = run(folder, "short", "everyday-cfpa-32", *FADE, out="again")
    assert released_at[5:] == [2.4] * 3 + [1.2] * 2
    assert (first["epsilon"], second["epsilon"]) == (pytest.approx(21.6), pytest.approx(9.6))
    said = capsys.readouterr().out
    assert "epsilon 21.6 for the recording (4.8 for each of 4 chunks, then 2.4 for each of 1 chunk)" in said
    (odometer,) = read_ledger(folder / "L").odometers.values()
    assert odometer.epsilon == round((21.6 + 9.6) * 10**12)
    for out in ("out", "again"):
        assert np.isfinite(recordings.load(folder / out / "short.npz").features).all()


def test_what_was_reserved_is_what_is_released(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each recording is cut into chunks once, for its booking, and that is released; all are booked first."""
    steps: list[str] = []

    def note(name: str) -> None:
        real = getattr(RecordingRelease, name)
        monkeypatch.setattr(RecordingRelease, name, lambda *a, **b: (steps.append(name), real(*a, **b))[1])

    note("__init__")
    note("release")
    with Ledger(folder / "L", ceilings=Ceilings()) as ledger:
        loaded = [recordings.load(folder / f"{name}.npz") for name in ("short", "long")]
        made, key = calibrations.load("everyday-cfpa-32"), StreamKey("p0", "features")
        assert len(list(privatize(loaded, made, build(made, 4.8), Booking(ledger, key, 20_000)))) == 2
    assert steps == ["__init__", "__init__", "release", "release"]


def test_without_a_mode_the_price_stays(folder: Path, released_at: list[float]) -> None:
    told = run(folder, "short", "everyday-cfpa-32", "--lifetime-epsilon", "38.4")
    assert released_at == [4.8] * 5
    assert told["epsilon_of_chunks"] == [{"first_row": 0, "chunks": 5, "epsilon": 4.8}]


@pytest.mark.long
def test_a_baseline_outlives_a_level(folder: Path, person: np.ndarray, released_at: list[float]) -> None:
    """Of nine chunks two are the baseline: a constant that is added to all rows cancels on the second level too."""
    told = run(folder, "long", "everyday-klt-anchored-64", *FADE)
    assert released_at == [4.8] * 4 + [2.4] * 3
    assert [one["first_row"] for one in told["epsilon_of_chunks"]] == [128, 128 + 4 * 64]
    values = recordings.load(folder / "out" / "long.npz").features
    assert np.isnan(values[:128]).all()
    assert np.isfinite(values[128:]).all()
    assert told["claim"]["guess_factor"]["chunk"] > 1, "of the level where a chunk tells most"


def test_each_level_looks_back_on_its_own_releases(person: np.ndarray) -> None:
    """Other levels have another schedule: what is written of a level is what its own states say in hindsight."""
    mechanism, states = build(calibrations.load("everyday-klt-32"), 4.8), []
    one = _release(mechanism, person[:192])
    looked = hindsight.hindsight

    def noted(own: Mechanism, given: Any) -> Any:
        states.append((own.epsilon, len(given)))
        return looked(own, given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "hindsight", noted)
        rows = one.release(
            [Granted(request, level) for request, level in zip(one.requests, (0, 0, 1, 1, 1, 2), strict=True)]
        )
    assert states == [(4.8, 2), (2.4, 3), (1.2, 1)]
    assert np.isfinite(rows).all()


def test_a_release_above_its_charge_does_not_happen(person: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism that forgets to fade."""
    mechanism = build(calibrations.load("everyday-cfpa-32"), 4.8)
    one = _release(mechanism, person[:64])
    monkeypatch.setattr(type(mechanism), "faded", lambda self, level: self)
    with pytest.raises(RuntimeError, match="would cost more than its chunk was charged"):
        one.release([Granted(request, level) for level, request in enumerate(one.requests)])


def _release(mechanism: Mechanism, rows: np.ndarray) -> RecordingRelease:
    settings = DeviceSettings("p0", "features", 0, NAMES, 2.0, 32, 1.0, 1.0, jump_chunks=1)
    one = RecordingRelease(settings, mechanism, 0, rows, 8)
    assert one.requests[0].charges == charges_of(Loss("chunk", Fraction(4.8)), 8)
    return one


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lifetime-epsilon", "20"], "leaves p0 4 chunks, and the recordings have 5; nothing was spent"),
        (
            ["--lifetime-epsilon", "9.6", "--lifetime-mode", "fade", "--epsilon", "9.6"],
            "needs --lifetime-epsilon of at least two chunks, 19.2",
        ),
        (["--lifetime-mode", "fade"], "--lifetime-mode goes with --lifetime-epsilon"),
        (["--lifetime-epsilon", "0"], "expected a number above 0"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_spent(
    folder: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(folder, "short", "everyday-cfpa-32", *options)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert read_ledger(folder / "L").odometers == {}


def test_a_lifetime_is_of_a_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["privatize", str(folder / "short.npz"), "--calibration", "everyday-cfpa-32", "--epsilon", "4.8"]
    with pytest.raises(SystemExit):
        main([*words, "--out", str(folder / "out"), "--lifetime-epsilon", "20"])
    assert "expected --ledger too" in capsys.readouterr().err


def test_a_device_that_was_moved_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "short", "everyday-cfpa-32")
    create_ledger(folder / "other", created=0)
    other = ledger_name(read_ledger(folder / "other").header.ledger_id)
    main(["budget", "--ledger", str(folder / "L"), "--export", "p0", str(folder / "export"), "--to", other])
    with pytest.raises(SystemExit):
        run(folder, "short", "everyday-cfpa-32", out="again")
    assert "--device p0: was moved to another ledger (eyestream budget --export)" in capsys.readouterr().err


def test_a_lifetime_that_fades_ends(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nine times four chunks, and then nothing any more: 36 are there, and 33 are spent."""
    charge, *later = charges_of(Loss("chunk", Fraction(4.8)), 8)
    asked = [
        Request(StreamKey("p0", "features"), 0, 32 * i, 32 * i + 31, 32, charge, later=tuple(later)) for i in range(33)
    ]
    with Ledger(folder / "L", ceilings=Ceilings.of(lifetime=38.4, levels=8)) as ledger:
        assert all(isinstance(answer, Granted) for answer in ledger.reserve(asked, 20_000))
    before = read_ledger(folder / "L").odometers
    with pytest.raises(SystemExit):
        run(folder, "short", "everyday-cfpa-32", *FADE)
    assert "leaves p0 3 chunks, and the recordings have 5; nothing was spent" in capsys.readouterr().err
    assert read_ledger(folder / "L").odometers == before
