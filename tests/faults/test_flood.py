"""A flood and a crowd at a real broker, shortly: tools/flood.py in a process of its own, whose memory is its own."""

import json
import subprocess
import sys
from pathlib import Path

from conftest import Mosquitto
from strangers import connect_packet, publish_packet

TOOL = Path(__file__).resolve().parents[2] / "tools" / "flood.py"


def test_a_flood_and_a_crowd_cost_neither_memory_nor_the_tracker(mosquitto: Mosquitto) -> None:
    command = [sys.executable, str(TOOL), "--seconds", "3", "--connections", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert done.stdout, done.stderr
    figures = json.loads(done.stdout)
    assert figures["wrong"] == []
    assert done.returncode == 2, "a few seconds tell nothing about a slope"
    assert figures["flood messages"] > figures["received"] > 100
    assert figures["dropped unread"] > 50
    assert len(figures["visits"]) >= 7
    assert figures["rejected"]["not_a_map"] > 0, "wills of those who broke off came as raw messages"
    assert figures["looks"] > 30


def test_what_strangers_say_is_mqtt() -> None:
    """By the standard's own example of a long packet: 321 bytes are 0xC1 0x02."""
    assert publish_packet("a/b", bytes(316))[:8] == b"\x30\xc1\x02\0\3a/b"
    assert connect_packet("x") == b"\x10\x0d\0\4MQTT\4\2\0\x3c\0\1x"
    assert connect_packet("x", will=("t", b"w")) == b"\x10\x13\0\4MQTT\4\6\0\x3c\0\1x\0\1t\0\1w"
