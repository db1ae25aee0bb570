"""``kind = "lsl"``: an outlet of the Lab Streaming Layer, through pylsl.

LSL finds outlets by broadcast, and its sockets listen on every interface, whatever is configured; what flows is clear
text without a login. Use it on a network that nobody else is on. liblsl blocks, so a thread of ours pulls. It pulls no
more while much waits for the loop: what a number of samples pushes out would be others. So what is dropped at last is
what liblsl drops, after `HELD_S`, and then it is too late for its row.

The outlet is looked for again and again: it stands for as long as it answers, and its connection is not lost. What it
sends has no part in that.
"""

import asyncio
import os
import threading
from collections import Counter, deque
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from eyestream.errors import ConfigError, LinkError
from eyestream.gaze.outlets import RELAYS, Channel, Outlet, Taking, Wanted, taking
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place
from eyestream.rim.sources.standing import Standing

__all__ = ["LSL", "LslSource", "outlet_of", "pylsl_module"]

RESOLVE_S = 1.0
PULL_S = 0.25
HELD_S = 10
"""So much liblsl holds for us, at the outlet's nominal rate; a hundred samples a second where it has none."""

_MOST_A_PULL = 256
_MOST_PULLS = 64
_WAIT_S = 0.01
_CONFIGS = ("lsl_api.cfg", "~/lsl_api/lsl_api.cfg", "/etc/lsl_api/lsl_api.cfg")


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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

    def __init__(self, options: Options, profile: Profile, place: Place) -> None:
        pylsl_module()
        self._options, self._profile, self._device = options, profile, place.device
        self._wanted = Wanted(options.gaze, options.pupil, options.valid, options.valid_min)
        if options.preset is not None:
            if options.preset not in RELAYS:
                raise ConfigError(f"[source.options] preset: {options.preset!r} is none of {', '.join(RELAYS)}")
            if options.gaze or options.pupil or options.valid is not None:
                raise ConfigError("[source.options]: expected a preset, or channels, and not both")
            self._wanted = RELAYS[options.preset].wanted

    async def run(self, deliver: DeliverGaze) -> None:
        """One inlet, for as long as its outlet is there."""
        standing = Standing(self._device, deliver, Counter())
        puller = _Puller(self._options, self._profile, self._wanted, asyncio.get_running_loop(), standing.take)
        thread = threading.Thread(target=puller.work, name="lsl", daemon=True)
        thread.start()
        try:
            uid = await puller.began
            await standing.keep(puller.ended, lambda: asyncio.to_thread(self._ask, uid))
        finally:
            puller.stop()
            while thread.is_alive():  # noqa: ASYNC110  a thread has no event; it ends within a pull
                await asyncio.sleep(0.01)

    def _ask(self, uid: str) -> None:
        """In a thread: LinkError where the outlet does not answer."""
        if not pylsl_module().resolve_byprop("uid", uid, minimum=1, timeout=RESOLVE_S):
            raise LinkError(f"outlet {self._options.name!r}: does not answer")


class _Puller:
    """The thread that pulls, and what it hands to the loop."""

    def __init__(
        self,
        options: Options,
        profile: Profile,
        wanted: Wanted,
        loop: asyncio.AbstractEventLoop,
        deliver: DeliverGaze,
    ) -> None:
        self._options, self._profile, self._wanted = options, profile, wanted
        self._loop, self._deliver = loop, deliver
        self._pulled: deque[GazeColumns] = deque()
        self._stopping = threading.Event()
        self.began: asyncio.Future[str] = loop.create_future()
        """The outlet's own name, when it is taken; fails with LinkError when it is not."""
        self.ended: asyncio.Future[None] = loop.create_future()
        """Fails with LinkError when the outlet is lost."""

    def stop(self) -> None:
        """Let the thread come to its end."""
        self._stopping.set()

    def work(self) -> None:
        """In the thread: all that blocks."""
        pylsl = pylsl_module()
        try:
            self._pull(pylsl)
        except LinkError as error:
            self._say(error)
        except (pylsl.util.LostError, pylsl.util.TimeoutError):
            self._say(LinkError(f"outlet {self._options.name!r}: is gone"))
        except (pylsl.util.InternalError, pylsl.util.InvalidArgumentError, RuntimeError, ValueError) as error:
            self._say(LinkError(f"outlet {self._options.name!r}: liblsl fails with {type(error).__name__}"))

    def _pull(self, pylsl: Any) -> None:
        found = self._found(pylsl)
        inlet = pylsl.StreamInlet(found, max_buflen=HELD_S, recover=False)
        try:
            outlet = outlet_of(inlet.info(RESOLVE_S))
            try:
                channels = taking(outlet, self._profile, self._wanted)
            except ValueError as error:
                raise LinkError(f"outlet {self._options.name!r}: {error}") from None
            self._call(lambda: self._begin(found.uid()))
            self._loop_of(inlet, channels)
        finally:
            inlet.close_stream()

    def _found(self, pylsl: Any) -> Any:
        """The one outlet that is wanted."""
        name, source = self._options.name, self._options.source_id
        if source is None:  # a second one of the name would answer as late as the limit
            found = pylsl.resolve_byprop("name", name, minimum=2, timeout=RESOLVE_S)
        else:
            found = pylsl.resolve_byprop("source_id", source, minimum=1, timeout=RESOLVE_S)
            found = [one for one in found if one.name() == name]
        distinct = {(one.hostname(), one.source_id(), one.uid()): one for one in found}
        if not distinct:
            raise LinkError(f"outlet {name!r}: there is none on this network")
        if len(distinct) > 1:
            raise LinkError(f"outlet {name!r}: {len(distinct)} have this name; tell them apart by source_id")
        return found[0]

    def _loop_of(self, inlet: Any, channels: Taking) -> None:
        while not self._stopping.is_set():
            sample, stamp = inlet.pull_sample(timeout=PULL_S)  # then what else is there: no sample waits for a chunk
            if sample is None:
                continue
            more, stamps = inlet.pull_chunk(timeout=0.0, max_samples=_MOST_A_PULL)
            self._hand_over(_records(np.array([stamp, *stamps]), np.array([sample, *more], dtype=np.float64), channels))

    def _hand_over(self, records: GazeColumns) -> None:
        while len(self._pulled) >= _MOST_PULLS and not self._stopping.wait(_WAIT_S):
            pass
        self._pulled.append(records)
        if len(self._pulled) == 1:  # asked after: the loop may have taken all others just now
            self._call(self._give)

    def _give(self) -> None:
        """In the loop: all that was pulled."""
        while self._pulled and not self.ended.done():
            self._deliver(self._pulled.popleft())

    def _begin(self, uid: str) -> None:
        """In the loop: the outlet is taken."""
        if not self.began.done():
            self.began.set_result(uid)

    def _say(self, error: LinkError) -> None:
        def fail() -> None:
            future = self.ended if self.began.done() else self.began
            if not future.done():
                future.set_exception(error)

        self._call(fail)

    def _call(self, function: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)


def _records(t: np.ndarray, table: np.ndarray, channels: Taking) -> GazeColumns:
    valid = None
    if channels.valid is not None:
        valid = (table[:, channels.valid] >= channels.valid_min).astype(np.float64)  # NaN compares false
    pupil = table[:, list(channels.pupil)] if channels.pupil else None
    return GazeColumns(t, table[:, list(channels.gaze)], pupil=pupil, valid=valid)


def outlet_of(info: Any) -> Outlet:
    """What an outlet's full description tells, in types of ours."""
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
    except (ImportError, RuntimeError):
        raise ConfigError("a source of kind lsl needs an extra: pip install 'eyestream[lsl]'") from None
    if "LSLAPICFG" not in os.environ and not any(Path(name).expanduser().exists() for name in _CONFIGS):
        pylsl.set_config_content("[log]\nlevel = -3\n")
    return pylsl


LSL = GazeKind("lsl", Options, "lsl", LslSource, answers=True)
