"""A tracker whose rows are canaries, an application that counts, and one that sends what no tracker should."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from eyestream.wire.raw import encode_raw
from tests.rigs.tainting.canary import Canary

__all__ = ["Tracker", "hostile"]

_STEP = 64


def _topic(device: str, leaf: str) -> str:
    return f"eyestream/v1/{device}/features/{leaf}"


class Tracker:
    """Sends canary rows of `devices`; `released` counts the private chunks that an application hears.

    `sample` keeps the payloads of the first messages, for the control that a search finds them.
    """

    def __init__(self, port: int, devices: tuple[str, ...], canary: Canary) -> None:
        self.devices, self.canary = devices, canary
        self.sample: list[bytes] = []
        self.released = 0
        self.ready: set[str] = set()
        self._session, self._seq = 1, 0
        self._change = threading.Condition()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(1000)
        self._client.on_message = self._hear
        self._client.connect("127.0.0.1", port)
        for topic in ("eyestream/v1/+/features/private", "eyestream/v1/+/features/status"):
            self._client.subscribe(topic, 1)
        self._client.loop_start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _hear(self, client: object, userdata: object, message: mqtt.MQTTMessage) -> None:
        with self._change:
            if message.topic.endswith("/private"):
                self.released += 1
            elif not message.retain and b"online" in message.payload:  # retained: of the life before
                self.ready.add(message.topic)
            self._change.notify_all()

    def wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether `holds()` became true in time; looked at whenever something was heard."""
        with self._change:
            return self._change.wait_for(holds, seconds)

    def send(self, rows: int) -> None:
        """The next `rows` rows of every device, as one message each (at most 128 rows of 52 values fit)."""
        at = np.arange(self._seq, self._seq + rows) % len(self.canary.rows)
        payload = encode_raw(self._session, self._seq, self.canary.rows[at], 1)
        if len(self.sample) < _STEP:
            self.sample.append(payload)
        for device in self.devices:
            self.publish(_topic(device, "raw"), payload)
        self._seq += rows

    def begin(self) -> None:
        """Another session."""
        self._session, self._seq = self._session + 1, 0

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """One message, QoS 1."""
        self._client.publish(topic, payload, 1, retain)

    def chunks(self, count: int, n: int, seconds: float) -> bool:
        """Send `count` chunks of each device, some ahead of what was released; whether all were released in time."""
        begun = self.released
        for sent in range(1, count + 1):
            self.send(n)
            due = begun + (sent - 3) * len(self.devices)
            if not self.wait(lambda due=due: self.released >= due, seconds):  # type: ignore[misc]
                return False
        return self.wait(lambda: self.released >= begun + count * len(self.devices), seconds)


def hostile(canary: Canary, device: str) -> list[tuple[str, bytes]]:
    """(topic, payload) of messages full of canaries that must be refused, each for another reason."""
    rows, topic = canary.rows[:64], _topic(device, "raw")
    good = encode_raw(2, 0, rows, 1)
    fields = msgspec.msgpack.decode(good)
    text = str(rows[:8].tolist())
    variants = [
        fields | {"shape": [64, 51]},
        fields | {"shape": [-64, 52]},
        fields | {"values": rows.astype(np.float64).tobytes()},
        fields | {"values": rows.tolist()},
        fields | {"session": text},
        fields | {"schema": float(rows[0, 0])},
        fields | {text: 1},
        fields | {"v": rows[0].tolist()},
    ]
    payloads = [
        encode_raw(2, 0, rows, 7),
        encode_raw(2, 0, rows[:, :51], 1),
        good[:-3],
        good + rows.tobytes(),
        good * 6,
        text.encode(),
        *(msgspec.msgpack.encode(variant) for variant in variants),
    ]
    return [(topic, payload) for payload in payloads] + [(_topic("nobody", "raw"), good)]


def recording(canary: Canary, names: tuple[str, ...], path: Path) -> None:
    """The rows as a recording, written to `path`."""
    from eyestream.rim.files import recordings
    from eyestream.rim.files.recordings import Recording

    t = np.arange(len(canary.rows)) / 2.0
    recordings.save(Recording(t, canary.rows.astype(np.float64), names), path)
