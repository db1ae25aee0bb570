"""The guarantee of live gaze says what decides a session's borders; that of rows says nothing of it."""

import msgspec
import pytest

from eyestream.gaze.clock_map import LEAST, PERIOD_S
from eyestream.gaze.live import SILENCE_S
from eyestream.rim.config import Settings, SourceEntry
from eyestream.rim.plan import resolved
from tests.rigs.sidecar import settings_for

OPTIONS = {"lsl": {"name": "gaze"}, "core": {"host": "127.0.0.1"}, "mqtt": {}}


def settings(tmp_path, kind: str | None) -> Settings:
    made = settings_for("mqtt://127.0.0.1:1", tmp_path)
    if kind is None:
        return made
    device, stream = made.device[0].id, made.stream[0].name
    entry = SourceEntry(kind, device, rate_hz=200.0, options=OPTIONS[kind], stream=stream)
    return msgspec.structs.replace(made, source=(entry,))


@pytest.mark.parametrize(("kind", "silence"), [("lsl", "answers"), ("core", "answers"), ("mqtt", "samples")])
def test_live_gaze_says_what_decides_its_borders(tmp_path, kind: str, silence: str) -> None:
    made = resolved(settings(tmp_path, kind)).streams["features"].guarantee
    assert made.claim()["session_borders"] == {
        "decided_by": "samples",
        "period_s": PERIOD_S,
        "seconds_that_decide": LEAST,
        "silence_s": SILENCE_S,
        "silence_of": silence,
    }
    words = dict(made.sentences())["session borders"]
    assert "the first sample in it" in words
    assert ("60 s without a sample end the session" in words) == (silence == "samples")


def test_of_rows_nothing_is_known(tmp_path) -> None:
    made = resolved(settings(tmp_path, None)).streams["features"].guarantee
    assert made.claim()["session_borders"] is None
    assert "session borders" not in dict(made.sentences())
