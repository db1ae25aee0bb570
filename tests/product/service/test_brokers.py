"""The part of the broker matrix that costs seconds: mosquitto, in both versions of MQTT; the rest in the long form."""

from pathlib import Path
from typing import Literal

import pytest

from eyestream.rim.config import BrokerSettings
from tests.rigs.matrix import PROBES
from tests.rigs.mosquitto import Mosquitto

SHORT = {"life", "retained", "stopped"}
WORDS = {("version", "5"): "5", ("version", "3.1.1"): "3.1.1"}
WORDS |= {("kept session", version): "what was over is gone" for version in ("5",)}
WORDS[("kept session", "3.1.1")] = "nothing expires"
HEADS = [pytest.param(head, marks=[] if head in SHORT else pytest.mark.slow) for head in PROBES]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_mosquitto(mosquitto: Mosquitto, tmp_path: Path, version: Literal["5", "3.1.1"], head: str) -> None:
    found = await PROBES[head](BrokerSettings(mosquitto.url, version=version), tmp_path)
    assert found == WORDS.get((head, version), "ok")
