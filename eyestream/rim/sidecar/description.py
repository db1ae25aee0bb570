"""What a configuration says: to each stream, to the words of the guarantee, and to applications."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from eyestream.chunking.settings import DeviceSettings
from eyestream.privacy.guarantee import Guarantee, guarantee_of
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.purposes import words
from eyestream.privacy.scopes import (
    Beside,
    Deployment,
    Scope,
    allowed_chunks,
    duration,
    level_seconds,
    limited,
    scopes_of,
)
from eyestream.rim.config import Settings, StreamSettings, WearerBudgetSettings
from eyestream.rim.sidecar.correlated import correlated_of
from eyestream.rim.sources.registry import front_end_of
from eyestream.streams.key import StreamKey
from eyestream.streams.spec import StreamSpec
from eyestream.wire.messages import Meta

if TYPE_CHECKING:
    from eyestream.gaze.profile import Profile

__all__ = [
    "deployment_of",
    "front_ends",
    "guarantee_in",
    "lasting_words",
    "meta_of",
    "metas",
    "purpose_words",
    "served_streams",
    "stream_spec",
    "wearer_scopes",
    "withheld_seconds",
]


def served_streams(settings: Settings, mechanisms: Mapping[str, Mechanism]) -> list[tuple[DeviceSettings, Mechanism]]:
    """Every stream of every configured device, and the mechanism that releases its chunks."""
    return [
        (
            DeviceSettings(
                id=device.id,
                stream=stream.name,
                schema=stream.schema,
                names=stream.names,
                rate_hz=stream.rate_hz,
                n=mechanisms[stream.name].n,
                grace_s=stream.grace_s,
                idle_s=stream.idle_s,
                jump_chunks=stream.jump_chunks,
                release=stream.release,
                apart=_apart(settings, stream) if mechanisms[stream.name].baseline_chunks else 0,
            ),
            mechanisms[stream.name],
        )
        for device in settings.device
        for stream in settings.streams_of(device)
    ]


def _apart(settings: Settings, stream: StreamSettings) -> int:
    """Rows between two that no second of gaze, and so no event, enters both of."""
    return _without_units(settings, stream).rows_touched(1.0) - 1


def deployment_of(settings: Settings, stream: StreamSettings, mechanisms: Mapping[str, Mechanism]) -> Deployment:
    """What stands around the mechanism of a stream, for the words of the guarantee.

    Streams stand beside one another when some device sends both.
    """
    budget = settings.budget
    shared = [settings.streams_of(device) for device in settings.device]
    beside = [other for other in settings.stream if any(stream in own and other in own for own in shared)]
    return Deployment(
        stream=_without_units(settings, stream),
        window_chunks=budget.window_chunks,
        window_epsilon=budget.window_epsilon,
        session_epsilon=budget.session_epsilon,
        day_epsilon=budget.day_epsilon,
        lifetime_epsilon=budget.lifetime_epsilon,
        window_delta=budget.window_delta,
        session_delta=budget.session_delta,
        day_delta=budget.day_delta,
        lifetime_delta=budget.lifetime_delta,
        lifetime_levels=budget.levels,
        beside=tuple(
            Beside(
                _without_units(settings, other),
                mechanisms[other.name].n,
                mechanisms[other.name].loss,
                mechanisms[other.name].calibration.anchor is not None,
            )
            for other in beside
            if other.name != stream.name
        ),
    )


def lasting_words(settings: Settings, stream: StreamSettings, mechanisms: Mapping[str, Mechanism]) -> str:
    """``a session 2 h 08 min of releases, a day 4 h 16 min``: how long ceilings last, rows without a pause.

    What the window withholds, and a baseline, is said behind it.
    """
    mechanism, deployment = mechanisms[stream.name], deployment_of(settings, stream, mechanisms)
    found = [
        f"a {scope.unit} {duration(scope.seconds)}"
        for scope in scopes_of(mechanism.loss, mechanism.n, deployment)
        if scope.seconds is not None
    ]
    text = ", ".join(found) + " of releases"
    levels = level_seconds(mechanism.loss, mechanism.n, deployment)
    if len(levels) > 1:
        text += f"; the lifetime fades on {len(levels)} levels, each at half the epsilon of the one before: "
        text += ", ".join(map(duration, levels))
    allowed, chunks = allowed_chunks(mechanism.loss, deployment), deployment.window_chunks
    if not deployment.beside and allowed < chunks and len(levels) < 2:
        text += f"; of {chunks} chunks in a row the window withholds {chunks - allowed}"
    if mechanism.baseline_chunks:
        text += f"; of each session the first {withheld_seconds(stream, mechanism):g} s are withheld"
    return text


def withheld_seconds(stream: StreamSettings, mechanism: Mechanism) -> float:
    """Of each session, for its baseline; 0 where none is taken off."""
    return mechanism.baseline_chunks * mechanism.n / stream.rate_hz


def guarantee_in(settings: Settings, stream: StreamSettings, mechanisms: Mapping[str, Mechanism]) -> Guarantee:
    """The guarantee of a stream; raises ConfigError as `correlated_of`."""
    mechanism = mechanisms[stream.name]
    claim = correlated_of(settings, stream, mechanism, _without_units(settings, stream))
    made = guarantee_of(mechanism, deployment_of(settings, stream, mechanisms), claim)
    error = error_words(mechanism, settings.budget.levels)
    scopes = (*made.scopes, *wearer_scopes(settings.budget.wearer))
    return dataclasses.replace(made, scopes=scopes, purpose=purpose_words(stream, mechanism), error=error)


def wearer_scopes(budget: WearerBudgetSettings | None) -> tuple[Scope, ...]:
    """What a wearer whom the tracker names costs at most, and what that rests on; nothing without a table."""
    if budget is None:
        return ()
    of = "the sum over the chunks of this device whose sessions name one wearer"
    why = (
        f"{of}: a person, by a handle that the tracker gives. The handles are believed: a person under several handles "
        "has as many budgets, and only the ceilings of the device bound their sum. Chunks without a handle count for "
        "no wearer. The same handle on another device is another wearer. What is withheld for a ceiling of a wearer "
        "can be seen: it tells that the person who wears the device has spent that much, and after the end of a "
        "lifetime each later session of that person can be known by it"
    )
    return (
        Scope("wearer", None, None, None, why),
        limited("wearer, day", (budget.day_epsilon, budget.day_delta), f"{of}, on a day in UTC by the host's clock"),
        limited(
            "wearer, lifetime",
            (budget.lifetime_epsilon, budget.lifetime_delta),
            f"{of}, since the ledger began; it does not fade",
        ),
    )


def error_words(mechanism: Mechanism, levels: int) -> str | None:
    """How much larger than `noise_sd` of `meta` the error is on later levels; None where the lifetime does not fade."""
    if levels == 1:
        return None
    said, first = [], np.asarray(mechanism.noise_sd)
    for level in range(1, levels):
        other = mechanism.faded(level)
        factor = (
            float(np.median(np.asarray(other.noise_sd)[first > 0] / first[first > 0])) if (first > 0).any() else 1.0
        )
        said.append(f"{factor:.3g} at epsilon {other.epsilon:g}")
    return (
        f"`noise_sd` of `meta` is the error to expect on the first level, epsilon {mechanism.epsilon:g} a chunk. On "
        "later ones, which `epsilon` of a chunk tells, it is larger, by this factor for the median feature: "
        f"{', '.join(said)}"
    )


def purpose_words(stream: StreamSettings, mechanism: Mechanism) -> str | None:
    """The purpose that the configuration names, and what it came to; None where it names none."""
    privacy = stream.privacy
    if privacy.purpose is None:
        return None
    return (
        f"{privacy.purpose}: {words(privacy.purpose)}, at epsilon {privacy.epsilon_per_minute:g} a minute. By the "
        f"figures that come with this version: {privacy.calibration}, epsilon {mechanism.epsilon:g} for a chunk of "
        f"{mechanism.n} rows. A newer version may take another calibration, at no higher price for "
        "rows without a pause"
    )


def _without_units(settings: Settings, stream: StreamSettings) -> StreamSpec:
    return stream_spec(settings, stream, ("1",) * len(stream.names))


def front_ends(settings: Settings, stream: StreamSettings) -> "list[Profile]":
    """The profiles of the sources of gaze that serve a stream, each once; raises ConfigError as `front_end_of`."""
    found = (front_end_of(entry) for entry in settings.source if entry.stream == stream.name)
    return list(dict.fromkeys(profile for profile in found if profile is not None))


def stream_spec(settings: Settings, stream: StreamSettings, units: tuple[str, ...]) -> StreamSpec:
    """What the rows of a configured stream are; `units` come with its calibration.

    The memory of a front end in this process is known, whatever the configuration says; the longest of them holds.

    Raises
    ------
    ConfigError
        As `front_end_of`.
    """
    memory_s = max([stream.memory_s, *(profile.memory_s for profile in front_ends(settings, stream))])
    return StreamSpec(
        name=stream.name,
        schema=stream.schema,
        names=stream.names,
        units=units,
        rate_hz=stream.rate_hz,
        window_s=stream.window_s,
        memory_s=memory_s,
    )


def metas(settings: Settings, mechanisms: Mapping[str, Mechanism]) -> dict[StreamKey, Meta]:
    """What applications are told of every stream."""
    told = {stream.name: meta_of(settings, stream, mechanisms) for stream in settings.stream}
    return {
        StreamKey(device.id, stream.name): told[stream.name]
        for device in settings.device
        for stream in settings.streams_of(device)
    }


def meta_of(settings: Settings, stream: StreamSettings, mechanisms: Mapping[str, Mechanism]) -> Meta:
    """What applications are told of a stream; the same for every device."""
    mechanism = mechanisms[stream.name]
    calibration = mechanism.calibration
    return Meta(
        names=stream.names,
        units=mechanism.schema.units,
        rate_hz=stream.rate_hz,
        n=mechanism.n,
        mechanism=mechanism.name,
        k=mechanism.k,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        noise_sd=mechanism.noise_sd.astype("float32"),
        guarantee=guarantee_in(settings, stream, mechanisms).text(),
        calibration=calibration.content_hash,
    )
