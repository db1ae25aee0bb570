"""Which trackers are on this network, what of them can be taken, and what to write into the configuration for it.

LSL outlets are found by its broadcast; a phone with Neon, and Pupil Capture, are asked at the hosts that are named.
What comes is counted, for a rate, and nothing of it is kept or said.
"""

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eyestream.errors import ConfigError, LinkError
from eyestream.gaze.outlets import RELAYS, Outlet, Wanted, relay_of, taking
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources import core, lsl, neon
from eyestream.rim.sources.gaze import Place

USUAL_HOSTS = ("127.0.0.1", "neon.local", "pi.local")

_ANY_HZ = 60.0
_IS_ONE = ("the phone has", "the phone refuses", "a description")
"""How a tracker says no that is there; other troubles mean that something else is, or nothing."""

_NOWHERE = Place("hmd", BrokerSettings("mqtt://localhost"))


@dataclass(frozen=True)
class FoundSource:
    """One tracker.

    Attributes
    ----------
    kind
        Of the source that would take it.
    name
        Of the outlet, or the host.
    rate_hz
        Samples a second, told or counted; None where neither.
    channels
        What it tells: labels and units.
    source
        Keys of ``[source]`` that take it, without device and stream; empty where it is refused.
    refused
        Why it is refused; empty where it is taken.
    """

    kind: str
    name: str
    rate_hz: float | None
    channels: tuple[str, ...]
    source: dict[str, Any]
    refused: str = ""


async def find_sources(hosts: Sequence[str], seconds: float) -> tuple[list[FoundSource], list[str]]:
    """The trackers that there are, and the kinds that could not be looked for.

    Parameters
    ----------
    hosts
        Names or addresses, also with a port, to ask for a phone and for Pupil Capture.
    seconds
        How long to look and to count.
    """
    missing: list[str] = []
    jobs = [_phone(host, seconds) for host in hosts]
    try:
        core.zmq_modules()
    except ConfigError as error:
        missing.append(str(error))
    else:
        jobs += [_capture(host, seconds) for host in hosts]
    found = [one for one in await asyncio.gather(*jobs) if one is not None]
    try:
        lsl.pylsl_module()
    except ConfigError as error:
        missing.append(str(error))
    else:
        found += await asyncio.to_thread(_outlets, seconds)
    return found, missing


async def _phone(host: str, seconds: float) -> FoundSource | None:
    name, port = _split(host, 8080)
    options = {"host": name} | ({} if port == 8080 else {"port": port})
    source = neon.NeonSource(neon.NeonOptions(name, port), load_profile("neon"), _NOWHERE)
    taken = FoundSource(
        "neon", host, None, ("x [px]", "y [px]", "pupils [mm]", "worn"), {"kind": "neon", "options": options}
    )
    return await _counted(taken, source, seconds)


async def _capture(host: str, seconds: float) -> FoundSource | None:
    name, port = _split(host, 50020)
    options = {"host": name} | ({} if port == 50020 else {"port": port})
    source = core.CoreSource(core.CoreOptions(name, port), load_profile("core"), _NOWHERE)
    channels = ("gaze_point_3d [mm]", "pupils [mm]", "confidence")
    return await _counted(
        FoundSource("core", host, None, channels, {"kind": "core", "options": options}), source, seconds
    )


async def _counted(taken: FoundSource, source: neon.NeonSource | core.CoreSource, seconds: float) -> FoundSource | None:
    """Run a source for a while; None where nobody is, and why where somebody is whose gaze is not taken."""
    loop = asyncio.get_running_loop()
    first, last, count = math.nan, math.nan, 0

    def take(records: GazeColumns) -> None:
        nonlocal first, last, count
        if len(records.time):
            last, count = loop.time(), count + len(records.time)
            first = last if math.isnan(first) else first

    away: LinkError | None = None
    work = asyncio.ensure_future(source.run(take))
    until = loop.time() + seconds + 3.5
    try:
        while not work.done() and loop.time() < until and not last - first >= seconds:
            await asyncio.wait({work}, timeout=0.05)
        if work.done():
            work.result()
    except LinkError as error:
        away = error
    finally:
        work.cancel()
        await asyncio.wait({work})
    if last > first:
        return dataclasses.replace(taken, rate_hz=round((count - 1) / (last - first), 1))
    if away is not None and not str(away).startswith(_IS_ONE):
        return None
    came = "".join(f"; what came was {reason}" for reason, _ in source.refused.most_common(1))
    return FoundSource(taken.kind, taken.name, None, (), {}, str(away or f"it answers, and sends no gaze{came}"))


def _outlets(seconds: float) -> list[FoundSource]:
    """All outlets of gaze, or of numbers that might be."""
    pylsl, found = lsl.pylsl_module(), []
    for info in pylsl.resolve_streams(seconds):
        inlet = pylsl.StreamInlet(info, max_buflen=1, recover=False)
        try:
            outlet = lsl.outlet_of(inlet.info(lsl.RESOLVE_S))
        except (pylsl.util.LostError, pylsl.util.TimeoutError, RuntimeError):
            found.append(FoundSource("lsl", info.name(), None, (), {}, "it does not describe itself"))
        else:
            found.append(outlet_found(outlet))
        finally:
            inlet.close_stream()
    return sorted(found, key=lambda one: (one.name, one.refused))


def outlet_found(outlet: Outlet) -> FoundSource:
    """Whether an outlet can be taken as it is, and how."""
    channels = tuple(f"{c.label or c.kind or '?'} [{c.unit or 'no unit'}]" for c in outlet.channels)
    rate = outlet.rate_hz or None
    relay = relay_of(outlet)
    profile_name = (RELAYS[relay].profile if relay else None) or "lsl"
    options: dict[str, Any] = {"name": outlet.name} | ({"preset": relay} if relay and RELAYS[relay].profile else {})
    source: dict[str, Any] = {"kind": "lsl", "profile": profile_name, "options": options}
    wanted = RELAYS[relay].wanted if relay else Wanted()
    try:
        profile = load_profile(profile_name)
        is_open = profile.rate_hz is None
        if is_open:
            profile, source = profile.at_rate(rate or _ANY_HZ), {**source, "rate_hz": rate}
        taking(outlet, profile, wanted)
        if is_open and rate is None:
            raise ValueError("its rate is irregular: count its samples, and say it in [source] rate_hz")
    except (ValueError, ConfigError) as error:
        about = f" ({RELAYS[relay].about})" if relay else ""
        return FoundSource("lsl", outlet.name, rate, channels, {}, f"{error}{about}")
    return FoundSource("lsl", outlet.name, rate, channels, source)


def _split(host: str, port: int) -> tuple[str, int]:
    """Host and port of ``host[:port]``; raises ConfigError for what is neither."""
    name, colon, told = host.partition(":")
    if colon and not (told.isdecimal() and 1 <= int(told) <= 65535):
        raise ConfigError(f"--host {host}: expected a name or address, also with a port")
    return name, int(told) if colon else port
