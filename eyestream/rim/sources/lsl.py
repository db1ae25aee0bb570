"""``kind = "lsl"``: an outlet of the Lab Streaming Layer, through pylsl.

LSL finds outlets by broadcast, and its sockets listen on every interface, whatever is configured; what flows is clear
text without a login. Use it on a network that nobody else is on.

**Portions by the clock.** To wake for each sample costs most of a source. So what comes is held, and we take all of it
whenever the host's clock shows a multiple of `PORTION_S`. A sample then arrives at the first such moment after it came.
That moment depends on this sample alone. If the wait began with a sample, one event would move the arrival of all
samples after it. Until that moment the kernel holds it where it can (`let_in`), else liblsl, whose thread wakes for
each sample. What is dropped at last is what liblsl drops, after `HELD_S`, and then it is too late for its row.

The outlet is looked for again and again: it stands for as long as it answers, and its connection is not lost. What it
sends has no part in that.
"""

import asyncio
import contextlib
import logging
import os
import re
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from eyestream.errors import ConfigError, LinkError
from eyestream.gaze.outlets import RELAYS, Channel, Outlet, Taking, Wanted, taking
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.asked import AskedTracker
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place

_LOG = logging.getLogger("eyestream.source")

RESOLVE_S = 1.0
PORTION_S = 0.1
HELD_S = 10
"""So much liblsl holds for us, at the outlet's nominal rate; a hundred samples a second where it has none."""

OPEN_S = 0.001
"""So long liblsl has to read what has come. More would move the arrival of what it has read."""

MOST_A_PULL = 256
Pulled = tuple[np.ndarray, list[float]]
"""Samples of one pull, a row each, which the next one overwrites, and their stamps."""

_MANY_BYTES = 1 << 20
_OPENING = threading.Lock()
_CONFIGS = ("lsl_api.cfg", "~/lsl_api/lsl_api.cfg", "/etc/lsl_api/lsl_api.cfg")


class LslOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which outlet (`name`, and `source_id` where several have it), and which of its channels.

    `preset`: a known relay. Otherwise `gaze`, `pupil`, `valid`: labels of channels, or their numbers from 0, in the
    units of the profile; without them the types and units that the outlet tells decide. `valid_min`: the least value
    of `valid` at which the eye is tracked.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    source_id: str | None = None
    preset: str | None = None
    gaze: tuple[str | int, ...] = ()
    pupil: tuple[str | int, ...] = ()
    valid: str | int | None = None
    valid_min: float = 0.6


class LslSource:
    """One outlet."""

    def __init__(self, options: LslOptions, profile: Profile, place: Place) -> None:
        self._pylsl = pylsl_module()
        self._options, self._profile, self._device = options, profile, place.device
        self._wanted = Wanted(options.gaze, options.pupil, options.valid, options.valid_min)
        if options.preset is not None:
            if options.preset not in RELAYS:
                raise ConfigError(f"[source.options] preset: {options.preset!r} is none of {', '.join(RELAYS)}")
            if options.gaze or options.pupil or options.valid is not None:
                raise ConfigError("[source.options]: expected a preset, or channels, and not both")
            self._wanted = RELAYS[options.preset].wanted
        self._before: Any = None

    async def run(self, deliver: DeliverGaze) -> None:
        """One inlet, for as long as its outlet is there."""
        tracker = AskedTracker(self._device, deliver, Counter())
        inlet, channels, found, connection = await asyncio.to_thread(self._open)
        self._note_twin(found)

        table = np.empty((MOST_A_PULL, inlet.channel_count), np.dtype(inlet.value_type))

        def pull() -> Pulled:
            with self._failing():
                _, stamps = inlet.pull_chunk(timeout=0.0, max_samples=MOST_A_PULL, dest_obj=table)
                return table[: len(stamps)], stamps

        rate_hz = found.nominal_srate()
        rate = f"{rate_hz:g} samples a second" if rate_hz else "no rate of its own"
        words = f"outlet {self._options.name!r} on {found.hostname()}: {rate}, gaze in {self._profile.gaze_unit}"
        listening = listen(pull, channels, tracker.take, connection)
        try:
            await tracker.keep(listening, lambda: asyncio.to_thread(self._ask, found.uid()), words)
        finally:
            if connection is not None:
                connection.close()
            await asyncio.to_thread(inlet.close_stream)

    def _note_twin(self, found: Any) -> None:
        """Say that another outlet took the place of the one before, or that nobody can tell: it has no `source_id`."""
        before, self._before = self._before, found
        if before is None or before.uid() == found.uid():
            return
        host, source = found.hostname(), found.source_id()
        if (before.hostname(), before.source_id()) != (host, source) or not source:
            fields = {"event": "source_replaced", "device": self._device}
            _LOG.warning(
                "source of %s: outlet %r is another one than before, on %s (source_id %r). If it is another tracker, "
                "name the right one by source_id in [source.options]",
                *(self._device, self._options.name, host, source),
                extra={"fields": fields},
            )

    def _ask(self, uid: str) -> None:
        """In a thread: LinkError where the outlet does not answer."""
        if not self._pylsl.resolve_byprop("uid", uid, minimum=1, timeout=RESOLVE_S):
            raise LinkError(f"outlet {self._options.name!r}: does not answer")

    def _open(self) -> tuple[Any, Taking, Any, socket.socket | None]:
        """In a thread: an inlet of the one outlet that is wanted, which channels are, what it is, its connection."""
        with self._failing():
            found = self._found()
            inlet = self._pylsl.StreamInlet(found, max_buflen=HELD_S, recover=False)
            outlet = outlet_of(inlet.info(RESOLVE_S))
        try:
            channels = taking(outlet, self._profile, self._wanted)
        except ValueError as error:
            raise LinkError(f"outlet {self._options.name!r}: {error}") from None
        with _OPENING, self._failing():  # two hosts may have one port: what is opened is found before there is another
            inlet.open_stream(RESOLVE_S)
            return inlet, channels, found, connection_to(map(int, re.findall(r"data_port>(\d+)<", found.as_xml())))

    def _found(self) -> Any:
        name, source = self._options.name, self._options.source_id
        if source is None:  # a second one of the name would answer as late as the limit
            found = self._pylsl.resolve_byprop("name", name, minimum=2, timeout=RESOLVE_S)
        else:
            found = self._pylsl.resolve_byprop("source_id", source, minimum=1, timeout=RESOLVE_S)
            found = [one for one in found if one.name() == name]
        distinct = {(one.hostname(), one.source_id(), one.uid()): one for one in found}
        if not distinct:
            raise LinkError(f"outlet {name!r}: there is none on this network")
        if len(distinct) > 1:
            raise LinkError(f"outlet {name!r}: {len(distinct)} have this name; tell them apart by source_id")
        return found[0]

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """LinkError for what liblsl raises."""
        failures = self._pylsl.util
        try:
            yield
        except (failures.LostError, failures.TimeoutError):
            raise LinkError(f"outlet {self._options.name!r}: is gone") from None
        except (failures.InternalError, failures.InvalidArgumentError, RuntimeError, ValueError) as error:
            raise LinkError(f"outlet {self._options.name!r}: liblsl fails with {type(error).__name__}") from None


def connection_to(ports: Iterable[int]) -> socket.socket | None:
    """A second handle on the connection to one of the ports that has none yet; None where it is not found: no /proc."""
    wanted, handles = set(ports), defaultdict[str, list[int]](list)
    for name in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):  # closed since
            handles[os.readlink(name)].append(int(name.name))
    for [number] in (numbers for numbers in handles.values() if len(numbers) == 1):
        # What raises is no socket, not connected, or closed since.
        with contextlib.suppress(OSError), socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as one:
            peer = one.getpeername()
            if isinstance(peer, tuple) and peer[1] in wanted:
                return socket.socket(fileno=one.detach())  # `dup` would make liblsl's own handle block
    return None


async def let_in(connection: socket.socket) -> None:
    """Let liblsl read for `OPEN_S` what has come, or on a busy machine until it has begun to; then nothing wakes it."""

    def first() -> bytes:
        with contextlib.suppress(OSError):  # nothing is there, or nobody any more
            return connection.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return b""

    waiting = first()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    await asyncio.sleep(OPEN_S)
    if not waiting or first() != waiting:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _MANY_BYTES)


async def listen(
    pull: Callable[[], Pulled], channels: Taking, deliver: DeliverGaze, connection: socket.socket | None = None
) -> None:
    """Deliver all that is there, whenever the host's clock shows a multiple of `PORTION_S`; never returns.

    Parameters
    ----------
    pull
        Gives at most `MOST_A_PULL` samples and their stamps, at once; fewer where there are no more.
    connection
        liblsl's, where it is known.
    """
    loop, tick = asyncio.get_running_loop(), 0
    while True:
        tick = 1 + max(tick, int(loop.time() // PORTION_S))
        await asyncio.sleep(tick * PORTION_S - loop.time())
        if connection is not None:
            await let_in(connection)
        more = True
        while more:
            came = loop.time()
            samples, stamps = pull()
            if stamps:
                deliver(_records(np.array(stamps), np.array(samples, dtype=np.float64), channels, came))
            if more := len(stamps) == MOST_A_PULL:
                await asyncio.sleep(0)  # a flood: others have their turn


def _records(t: np.ndarray, table: np.ndarray, channels: Taking, came: float) -> GazeColumns:
    valid = None
    if channels.valid is not None:
        valid = (table[:, channels.valid] >= channels.valid_min).astype(np.float64)  # NaN compares false
    pupil = table[:, list(channels.pupil)] if channels.pupil else None
    return GazeColumns(t, table[:, list(channels.gaze)], pupil=pupil, valid=valid, came=came)


def outlet_of(info: Any) -> Outlet:
    """An outlet's full description, in types of ours."""
    pylsl = pylsl_module()
    channels, one = [], info.desc().child("channels").child("channel")
    for _ in range(info.channel_count()):
        told = {
            key: "" if one.empty() else one.child_value(key) for key in ("label", "type", "metatype", "unit", "eye")
        }
        channels.append(Channel(told["label"], told["type"] or told["metatype"], told["unit"], told["eye"]))
        one = one if one.empty() else one.next_sibling("channel")
    numbers = info.channel_format() not in (pylsl.cf_string, pylsl.cf_undefined)
    return Outlet(info.name(), info.type(), info.source_id(), info.nominal_srate(), numbers, tuple(channels))


def pylsl_module() -> Any:
    """pylsl; raises ConfigError where the extra or the library of LSL is missing.

    Without a configuration of the user's, liblsl says nothing: what ails an outlet is said by us.
    """
    try:
        import pylsl  # noqa: PLC0415  an extra
    except ImportError:
        raise ConfigError("a source of kind lsl needs an extra: pip install 'eyestream[lsl]'") from None
    except RuntimeError:  # the wheels for aarch64, musl and old C libraries come without it
        raise ConfigError(
            "a source of kind lsl needs liblsl, which pylsl has not brought for this machine: install it (a release of "
            "github.com/sccn/liblsl, or conda install -c conda-forge liblsl), and name its file in PYLSL_LIB"
        ) from None
    if "LSLAPICFG" not in os.environ and not any(Path(name).expanduser().exists() for name in _CONFIGS):
        pylsl.set_config_content("[log]\nlevel = -3\n")
    return pylsl


LSL = GazeKind("lsl", LslOptions, "lsl", LslSource, answers=True)
