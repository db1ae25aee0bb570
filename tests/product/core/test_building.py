"""Whatever a library raises while a mechanism is built is one line, before anything is booked."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from eyestream.cli import main as command
from eyestream.cli import run as running
from eyestream.core.calibration import Calibration
from eyestream.core.charge import Ceilings
from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError, EyestreamError, MechanismError
from eyestream.rim import config
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.streams import StreamKey
from eyestream_lab.calibration import Corpus
from eyestream_lab.fpa import FPA
from eyestream_lab.recordings.privatize import Booking, privatize
from tests.product.core import failing

NAMES, N = ("a", "b"), 8
SINGULAR = np.linalg.LinAlgError("Singular matrix\n(of two lines)")
WORDS = "mechanism failing cannot be built at epsilon {}: LinAlgError: Singular matrix (of two lines). Take another"


class OwnError(Exception):
    """Derived from `Exception` alone."""


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    failing.faults.clear()
    failing.claims.clear()


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    return Corpus.of([Recording(np.arange(40) / 2.0, rng.normal(size=(40, 2)), NAMES, "x") for _ in range(4)], N)


@pytest.fixture(scope="module")
def calibration(corpus: Corpus) -> Calibration:
    return failing.calibrate(corpus)


def fails(error: BaseException, at: Callable[[float], bool] = lambda epsilon: True) -> None:
    failing.faults.append(lambda epsilon: error if at(epsilon) else None)


@pytest.mark.parametrize(
    "error",
    [
        SINGULAR,
        FloatingPointError("underflow"),
        OverflowError(),
        KeyError("no such thing"),
        IndexError("7"),
        TypeError("not a number"),
        AttributeError("no attribute"),
        RuntimeError("FFTW gave up"),
        NotImplementedError("later"),
        MemoryError(),
        OSError(2, "no such file"),
        ImportError("no module"),
        AssertionError(),
        RuntimeWarning("invalid value"),
        msgspec.ValidationError("not what was expected"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_libraries_raise_is_one_line(error: Exception, calibration: Calibration) -> None:
    fails(error)
    with pytest.raises(MechanismError) as raised:
        build(calibration, 4.8)
    said = str(raised.value)
    assert said.startswith(f"mechanism failing cannot be built at epsilon 4.8: {type(error).__name__}")
    assert said.endswith("Take another epsilon, calibration or option, or mend the mechanism")
    assert "\n" not in said
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [ConfigError("epsilon is too small"), OwnError("why"), KeyboardInterrupt()])
def test_our_own_errors_and_those_of_nobody_go_on(error: BaseException, calibration: Calibration) -> None:
    fails(error)
    with pytest.raises(type(error)) as raised:
        build(calibration, 4.8)
    assert raised.value is error


def test_a_library_under_a_mechanism_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def singular(*given: Any) -> Any:
        raise SINGULAR

    monkeypatch.setattr("eyestream.core.mechanisms.klt.core.Schedule", singular)
    with pytest.raises(MechanismError, match="mechanism klt cannot be built at epsilon 4: LinAlgError: Singular"):
        build(calibrations.load("everyday-klt-32"), 4)


def test_a_level_is_built_alike(calibration: Calibration) -> None:
    fails(SINGULAR, lambda epsilon: epsilon < 1)
    mechanism = build(calibration, 4.8)
    assert mechanism.faded(2).epsilon == 1.2
    with pytest.raises(MechanismError, match=r"at epsilon 0\.6"):
        mechanism.faded(3)


def test_a_library_user_books_nothing_for_a_level_that_cannot_be(calibration: Calibration, tmp_path: Path) -> None:
    command.main(["budget", "--new", "--ledger", str(tmp_path / "L")])
    fails(SINGULAR, lambda epsilon: epsilon < 1)
    rows = Recording(np.arange(40) / 2.0, np.zeros((40, 2)), NAMES, "p")
    before = (tmp_path / "L").read_bytes()
    with Ledger(tmp_path / "L", ceilings=Ceilings.of(lifetime=100.0)) as ledger:
        booking = Booking(ledger, StreamKey("p", "features"), 20_000, levels=8)
        with pytest.raises(MechanismError):
            next(privatize([rows], calibration, build(calibration, 4.8), booking))
    assert (tmp_path / "L").read_bytes() == before


def test_a_whole_recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    def singular(*given: Any, **named: Any) -> None:
        raise SINGULAR

    monkeypatch.setattr(FPA, "__init__", singular)
    names = calibrations.load("everyday-cfpa-32").names
    recordings.save(Recording(np.arange(64) / 2.0, np.zeros((64, len(names))), names, "p"), tmp_path / "p.npz")
    refused("privatize", tmp_path / "p.npz", "--whole", "--calibration", "everyday-cfpa-32", "--epsilon", 4,
            "--out", tmp_path / "out")  # fmt: skip
    assert "mechanism fpa cannot be built at epsilon 4.0: LinAlgError" in capsys.readouterr().err


def refused(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([str(word) for word in words])
    assert ended.value.code == 2


@pytest.mark.parametrize(("lifetime", "below"), [((), 9.0), (("--lifetime-mode", "fade"), 1.0)])
def test_privatize_says_it_in_one_line_and_books_nothing(
    lifetime: tuple[str, ...], below: float, calibration: Calibration, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """At the epsilon that was asked for, and at that of a level that the lifetime would reach."""
    rows = np.random.default_rng(1).normal(size=(40, 2))
    recordings.save(Recording(np.arange(40) / 2.0, rows, NAMES, "p"), tmp_path / "p.npz")
    calibrations.save(calibration, tmp_path / "mine.npz")
    ledger = tmp_path / "L"
    command.main(["budget", "--new", "--ledger", str(ledger)])
    before = ledger.read_bytes()
    fails(SINGULAR, lambda epsilon: epsilon < below)
    capsys.readouterr()
    refused(
        *("privatize", tmp_path / "p.npz", "--mechanism", failing.PLACE, "--calibration", tmp_path / "mine.npz"),
        *("--epsilon", 4.8, "--out", tmp_path / "out", "--ledger", ledger, "--device", "p"),
        *("--lifetime-epsilon", 100, *lifetime),
    )
    [line] = capsys.readouterr().err.splitlines()
    assert WORDS.format("0.6" if lifetime else "4.8") in line
    assert ledger.read_bytes() == before
    assert not (tmp_path / "out").exists()


def configured(calibration: Calibration, folder: Path) -> Path:
    """A configuration of the mechanism, with a ledger."""
    calibrations.save(calibration, folder / "mine.npz")
    command.main(["init", str(folder / "deployed")])
    file = folder / "deployed" / "sidecar.toml"
    text = file.read_text()
    names, budget = text.index("names = ["), text.index("[budget]")
    own = f"""names = {list(NAMES)}

[stream.privacy]
mechanism = "{failing.PLACE}"
calibration = "{folder / "mine.npz"}"
epsilon = 4.8

"""
    file.write_text(text[:names] + own + text[budget:])
    return file


def test_run_and_check_say_it_in_one_line(
    calibration: Calibration, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """`check --config-only` is what systemd asks before a reload: its exit status keeps the old configuration."""
    file = configured(calibration, tmp_path)
    ledger = config.load(file).sidecar.ledger
    before = ledger.read_bytes()
    fails(SINGULAR)
    capsys.readouterr()
    refused("run", "--config", file)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"eyestream run: {file}: ")
    assert WORDS.format("4.8") in line
    with pytest.raises(SystemExit) as ended:
        command.main(["check", "--config-only", "--config", str(file)])
    assert ended.value.code == 1
    [line] = [one for one in capsys.readouterr().out.splitlines() if one.startswith("fail")]
    assert WORDS.format("4.8") in line
    refused("guarantee", "--config", file)
    assert ledger.read_bytes() == before


async def test_a_reload_keeps_the_old_configuration(
    calibration: Calibration, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A library gives up while the claims of the new ceilings are computed; the sidecar goes on, and a line says so."""
    file = configured(calibration, tmp_path)
    again, told = asyncio.Event(), asyncio.Queue[str]()

    class Told:
        def send(self, words: str) -> None:
            told.put_nowait(words)

    with assemble(resolved(config.load(file)), lambda: 20_000) as made:
        before = made.plan.ceilings
        day = f"day_epsilon = {config.load(file).budget.day_epsilon}"
        assert day in file.read_text()
        file.write_text(file.read_text().replace(day, "day_epsilon = 48.0"))
        failing.claims.append(SINGULAR)
        reloading = asyncio.create_task(running._reload(made, file, again, Told()))
        with caplog.at_level(logging.INFO, "eyestream.run"):
            again.set()
            async with asyncio.timeout(20):
                assert (await told.get()).startswith("STATUS=the old configuration stays")
            assert made.plan.ceilings == before
            [line] = [record.getMessage() for record in caplog.records if record.name == "eyestream.run"]
            assert line.startswith("the old configuration stays: ")
            assert WORDS.format("4.8") in line
            failing.claims.clear()
            again.set()
            async with asyncio.timeout(20):
                assert (await told.get()).startswith("STATUS=the ceilings of")
        assert not reloading.done()
        reloading.cancel()
        assert made.plan.ceilings.day == Ceilings.of(day=48.0).day


def test_a_module_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eyestream.rim.elsewhere import imported

    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("divides_by_zero", "1 / 0"), ("no_python", "def ("), ("looks_up", "{}['x']")):
        (tmp_path / f"{name}.py").write_text(text)
        with pytest.raises(ConfigError, match=f"--mechanism: '{name}:ENTRY' cannot be imported: ") as raised:
            imported(f"{name}:ENTRY", object, "--mechanism")
        assert isinstance(raised.value, EyestreamError)
        assert "\n" not in str(raised.value)
