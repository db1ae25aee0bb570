"""``kind = "core"``: Pupil Labs' Core, as Pupil Capture (or Pupil Service) publishes its gaze over ZeroMQ.

Capture reports its publishing port on request (``SUB_PORT``, at its plugin "Network API"); topics that begin with
``gaze.`` bring one datum a message, in msgpack. Points of a two-dimensional calibration cannot be converted to degrees.
They are recognised by topic, and refused. A datum of three-dimensional gaze without a point is a lost eye. Everything
is clear text without a login.

The source asks for the port repeatedly. The link stands while Capture reports the same port, whether or not gaze comes.

Protocol: Pupil Labs, "Network API" of Core. A datum says its time in seconds of Capture's own clock.
"""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import numpy as np

from eyestream.errors import ConfigError, LinkError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.asked import AskedTracker
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place

ANSWER_S = 2.0
MIN_CONFIDENCE = 0.6
"""A datum with less confidence is a lost eye. Pupil Labs' plugins have this default."""

_MOST_BYTES = 65_536
_NESTED = 13  # msgpack extension code of a datum inside another
_NAN = float("nan")
_TOPIC_3D = b"gaze.3d."


class CoreOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``host``: where Capture runs; ``port``: of its plugin "Network API"."""

    host: Annotated[str, msgspec.Meta(min_length=1, pattern=r"\A[^\s/@?#]+\Z")] = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 50020


class _Pupil(msgspec.Struct, frozen=True):
    id: int = -1
    diameter_3d: float | None = None


class _Gaze(msgspec.Struct, frozen=True):
    timestamp: float
    confidence: float
    gaze_point_3d: tuple[float, float, float] | None = None
    base_data: list[Any] = []


_decoder = msgspec.msgpack.Decoder(
    _Gaze, ext_hook=lambda code, data: msgspec.msgpack.decode(data) if code == _NESTED else None
)


class CoreSource:
    """One Capture.

    Attributes
    ----------
    refused : messages by the reason for which they were not used.
    """

    def __init__(self, options: CoreOptions, profile: Profile, place: Place) -> None:
        zmq_modules()
        self._host, self._port, self._device = options.host, options.port, place.device
        self.refused: Counter[str] = Counter()

    async def run(self, deliver: DeliverGaze) -> None:
        """Subscribe once, and deliver gaze while Capture answers."""
        zmq, asynchronous = zmq_modules()
        with _context(asynchronous) as context:
            port = await publishing_port(context, self._host, self._port)
            socket = context.socket(zmq.SUB)
            socket.setsockopt(zmq.MAXMSGSIZE, _MOST_BYTES)
            socket.subscribe(b"gaze.")
            socket.connect(f"tcp://{self._host}:{port}")

            async def ask() -> None:
                if await publishing_port(context, self._host, self._port) != port:
                    raise LinkError("Pupil Capture was started again")

            tracker = AskedTracker(self._device, deliver, self.refused)
            await tracker.keep(self._listen(socket, tracker.take), ask, f"Pupil Capture at {self._host}:{self._port}")

    async def _listen(self, socket: Any, deliver: DeliverGaze) -> None:
        while True:
            records = read_datum(await socket.recv_multipart())
            if isinstance(records, str):
                self.refused[records] += 1
            else:
                deliver(records)


def read_datum(parts: list[bytes]) -> GazeColumns | str:
    """The record of one message, or why there is none."""
    if len(parts) < 2 or len(parts[1]) > _MOST_BYTES:
        return "no datum"
    try:
        gaze = _decoder.decode(parts[1])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "no datum"
    if gaze.gaze_point_3d is None and not parts[0].startswith(_TOPIC_3D):
        return "gaze without a point in space: use the three-dimensional calibration"
    pupils = {0: _NAN, 1: _NAN}  # eye 0 is the right one
    for base in gaze.base_data:
        with contextlib.suppress(msgspec.ValidationError):
            pupil = msgspec.convert(base, _Pupil)
            if pupil.id in pupils and pupil.diameter_3d is not None:
                pupils[pupil.id] = pupil.diameter_3d
    confident = math.isfinite(gaze.confidence) and gaze.confidence >= MIN_CONFIDENCE and gaze.gaze_point_3d is not None
    return GazeColumns(
        np.array([gaze.timestamp]),
        np.array([gaze.gaze_point_3d or (_NAN, _NAN, _NAN)]),
        pupil=np.array([[pupils[0], pupils[1]]]),
        valid=np.array([1.0 if confident else 0.0]),
    )


async def publishing_port(context: Any, host: str, port: int) -> int:
    """The port that Capture publishes at; raises LinkError when it does not tell it in time."""
    zmq, _ = zmq_modules()
    socket = context.socket(zmq.REQ)
    socket.setsockopt(zmq.MAXMSGSIZE, _MOST_BYTES)
    socket.connect(f"tcp://{host}:{port}")
    try:
        async with asyncio.timeout(ANSWER_S):
            await socket.send(b"SUB_PORT")
            answer = await socket.recv()
    except TimeoutError:
        raise LinkError(f"Pupil Capture does not answer at {host}:{port}") from None
    finally:
        socket.close(0)
    if not (answer.isdigit() and len(answer) <= 5 and 1 <= int(answer) <= 65535):
        raise LinkError(f"what answers at {host}:{port} is not Pupil Capture")
    return int(answer)


@contextlib.contextmanager
def _context(asynchronous: Any) -> Iterator[Any]:
    """A ZeroMQ context of our own; leaving it closes its sockets at once."""
    context = asynchronous.Context()
    try:
        yield context
    finally:
        context.destroy(0)


def zmq_modules() -> tuple[Any, Any]:
    """The modules of the extra; raises ConfigError where it is missing."""
    try:
        import zmq  # noqa: PLC0415  an extra
        import zmq.asyncio  # noqa: PLC0415
    except ImportError:
        raise ConfigError("a source of kind core needs an extra: pip install 'eyestream[core]'") from None
    return zmq, zmq.asyncio


CORE = GazeKind("core", CoreOptions, "core", CoreSource, answers=True)
