"""No raw value leaves by any way: the quick form of `tools/verification/canary.py`, and that it is not blind."""

import subprocess
import sys
from pathlib import Path

import pytest

from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.tainting.canary import Canary
from tests.rigs.tainting.capture import has_strace
from tests.rigs.tainting.lives import Life, Plant, live

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
@pytest.mark.needs("mosquitto")
def test_no_canary_in_anything_that_is_written() -> None:
    command = [sys.executable, "-m", "tools.verification.canary", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 hits; controls " in done.stdout.splitlines()[-1]


class PassThrough(Plant):
    def code(self) -> str:
        lines = (
            "import eyestream",
            "KLT = eyestream.KLT",
            "KLT.session = lambda s: s",
            "KLT.awaits_baseline = False",
            "KLT.release = lambda s, c: c",
        )
        return "\n".join((*lines, ""))


def test_a_pass_through_is_found_on_the_wire(mosquitto: Mosquitto, tmp_path: Path) -> None:
    canary = Canary(128, 52, 7)
    life = Life("pass-through", "everyday-klt-32", plant=PassThrough("mechanism releases"), chunks=2)
    ended = live(life, tmp_path / "life", mosquitto.port, free_port(), canary, trace=has_strace())
    assert ended.wrong == []
    for way in ["links"] + ["strace"] * has_strace():
        assert canary.hits(b"".join(ended.written[way]()))["pair of float32"] > 1000
    assert not canary.hits(b"".join(ended.written["files"]()))


class WrittenHistory(Plant):
    def code(self) -> str:
        lines = (
            "from eyestream_lab.words.history import OverHistory",
            "take = OverHistory.take",
            "OverHistory.take = lambda s, c: (open('history', 'ab').write(c.astype('<f4').tobytes()), take(s, c))[1]",
        )
        return "\n".join((*lines, ""))


@pytest.mark.parametrize("written", [False, True])
def test_a_history_that_is_written_is_found(written: bool, mosquitto: Mosquitto, tmp_path: Path) -> None:
    canary, plant = Canary(128, 52, 7), WrittenHistory("OverHistory.off") if written else None
    life = Life("histories", "./words.npz", plant=plant, before=2, chunks=2)
    ended = live(life, tmp_path / "life", mosquitto.port, free_port(), canary, trace=False)
    assert ended.wrong == []
    assert bool(canary.hits(b"".join(ended.written["files"]()))) is written
    assert not canary.hits(b"".join(ended.written["links"]()))


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("shift", range(3))
def test_the_search_finds_every_form_at_every_place(kind: str, shift: int) -> None:
    canary = Canary(128, 52, 7)
    for rows in (canary.rows[:2], canary.rows[:64].T):
        data = b"\1" * shift + rows.astype(kind).tobytes()
        assert canary.hits(data).total() >= rows.size - rows.shape[0]
    assert not canary.hits(b"\1" * shift + (canary.rows[:2] * 1.0001).astype(kind).tobytes())


@pytest.mark.parametrize("form", ["{!r}", "{:.6g}", "{:.5e}", "{:.4f}", "x={:.9f};", "[{}]", "-{}"])
def test_the_search_finds_digits(form: str) -> None:
    canary = Canary(128, 52, 7)
    value = float(canary.rows[canary.rows > 10][0])
    assert canary.hits(form.format(value).encode())["decimal"] == 1
    assert not canary.hits(f"{value:.3g} {value:.5g} {12345678} {value * 1e6:.6g}".encode())
