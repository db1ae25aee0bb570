"""Gaze that can be recognised goes in by the layer's socket: nothing that the sidecar writes has any of it."""

from pathlib import Path

import pytest

from tests.openxr.machine import ROOT
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.tainting.capture import has_strace
from tests.rigs.tainting.gaze_lives import GAZE_LIVES, GazeLife, gaze_canary, gaze_live

LIVES = [life for life in GAZE_LIVES if life.kind == "openxr"]


@pytest.mark.long
@pytest.mark.parametrize("life", LIVES, ids=[life.name for life in LIVES])
def test_no_raw_gaze_leaves_the_sidecar(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, life: GazeLife
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "openxr"))
    canary, trace = gaze_canary(), has_strace()
    ended = gaze_live(life, tmp_path / "life", mosquitto.port, canary, trace=trace)
    assert ended.wrong == []
    for what, data in ended.controls.items():
        assert sum(canary.hits(data).values()) >= 64, what  # the control: the search finds what was sent
    for where, written in ended.written.items():
        if where == "strace" and not trace:
            continue
        assert not canary.hits(b"".join(written())), where
