"""What each stream of a configuration is made of: calibration, front ends, mechanism. All files are loaded here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eyestream.errors import ConfigError, OperatorError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.correlated import Correlated
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import Noise
from eyestream.problems import Problems
from eyestream.rim.config import Settings, StreamSettings
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations
from eyestream.rim.files.features import FEATURES_52, WINDOW_52_S
from eyestream.rim.plan.correlated import correlated_of, kept_below
from eyestream.rim.plan.stream import Parts
from eyestream.rim.sources.registry import front_end_of
from eyestream.streams.spec import StreamSpec

if TYPE_CHECKING:
    from eyestream.gaze.profile import Profile

__all__ = ["alone", "fitting", "parts_of", "spec_of"]


def alone(settings: Settings) -> bool:
    """Whether no device sends more streams than one."""
    return all(len(settings.streams_of(device)) < 2 for device in settings.device)


def fitting(settings: Settings, stream: StreamSettings) -> "tuple[Calibration, StreamSpec, tuple[Profile, ...]]":
    """The calibration that a stream names, what the rows of the stream are, and the front ends that make them.

    Raises
    ------
    CalibrationError, ConfigError
        One of them does not fit the others.
    """
    calibration, problems = _calibration(stream), Problems()
    front_ends = _front_ends(settings, stream)
    spec = spec_of(stream, calibration, front_ends)
    with problems.gathered():
        calibration.check_stream(spec.names, calibration.rate_hz)
    with problems.gathered():
        calibration.check_stream(calibration.names, spec.rate_hz)
    if spec.names == FEATURES_52 and spec.window_s < WINDOW_52_S:
        problems.add(f"[[stream]] window_s: a row of these features describes {WINDOW_52_S:g} s, not less")
    for profile in front_ends:
        from eyestream.gaze.profile_text import front_end_mark  # noqa: PLC0415  for who has gaze

        with problems.gathered():
            calibration.check_front_end(front_end_mark(profile))
    if calibration.anchor is not None and stream.idle_s is not None:
        with problems.gathered():
            _check_pause(spec, stream.idle_s)
    problems.refuse()
    return calibration, spec, front_ends


def parts_of(settings: Settings, stream: StreamSettings, noise: Noise) -> Parts:
    """What a stream is made of, with each thing fitting the others.

    Raises
    ------
    CalibrationError, ConfigError
        As `fitting`; or epsilon or an option cannot be used.
    """
    calibration, spec, front_ends = fitting(settings, stream)
    mechanism = _built(settings, stream, calibration, spec, noise)
    for level in range(1, settings.budget.levels):
        _on_level(mechanism, level)
    return Parts(front_ends, spec, mechanism)


def spec_of(stream: StreamSettings, calibration: Calibration | None, profiles: "Sequence[Profile]") -> StreamSpec:
    """What the rows of a stream are; what its table leaves out comes with its calibration and its front end.

    The memory of a front end in this process is known, whatever the table says: the longest memory holds.

    Raises
    ------
    ConfigError
        Nothing says what the rows are.
    """
    names = stream.names or (None if calibration is None else calibration.names)
    rate_hz = stream.rate_hz or (None if calibration is None else calibration.rate_hz)
    window_s = WINDOW_52_S if stream.window_s is None and names == FEATURES_52 else stream.window_s
    if names is None or rate_hz is None or window_s is None:
        key = "window_s" if window_s is None else "names" if names is None else "rate_hz"
        raise ConfigError(f"[[stream]] {key}: missing; no front end of the configuration makes such rows")
    return StreamSpec(
        name=stream.name,
        schema=stream.schema,
        names=names,
        units=("1",) * len(names) if calibration is None or calibration.names != names else calibration.units,
        rate_hz=rate_hz,
        window_s=window_s,
        memory_s=max([stream.memory_s, *(profile.memory_s for profile in profiles)]),
    )


def _front_ends(settings: Settings, stream: StreamSettings) -> "tuple[Profile, ...]":
    """The profiles of the sources of gaze that serve a stream, each once."""
    found = (front_end_of(entry) for entry in settings.source if entry.stream == stream.name)
    return tuple(dict.fromkeys(profile for profile in found if profile is not None))


def _calibration(stream: StreamSettings) -> Calibration:
    """The calibration that a stream names."""
    place, where = stream.privacy.mechanism, "[stream.privacy] mechanism"
    named = mechanism_elsewhere(place, where).name if place is not None else None
    calibration = calibrations.load(stream.privacy.calibration)
    if named not in (None, calibration.mechanism):
        raise ConfigError(f"{where}: {place} is {named}, and the calibration is one of {calibration.mechanism}")
    return calibration


def _check_pause(rows: StreamSpec, idle_s: float) -> None:
    """Raise ConfigError where rows after a pause that ends a session still describe gaze of before it."""
    reach_s = round(rows.window_s + rows.memory_s, 6)
    if idle_s < reach_s:
        raise ConfigError(
            f"[[stream]] idle_s = {idle_s:g}: expected at least {reach_s:.8g} (window_s = {rows.window_s:g} and "
            f"memory_s = {rows.memory_s:g}): the calibration takes a baseline off each session, and rows after a "
            "shorter pause still describe gaze of before it"
        )


def _built(
    settings: Settings, stream: StreamSettings, calibration: Calibration, spec: StreamSpec, noise: Noise
) -> Mechanism:
    privacy = stream.privacy
    if privacy.epsilon_prime is None:
        return build(calibration, privacy.epsilon, noise=noise, **privacy.given)

    def claimed(epsilon: float) -> tuple[Mechanism, Correlated]:
        mechanism = build(calibration, epsilon, noise=noise, **privacy.given)
        claim = correlated_of(stream, settings.budget, mechanism, spec, alone=alone(settings))
        if claim is None:
            raise ConfigError("[stream.privacy] epsilon_prime: it is a figure of a class; name one with `correlation`")
        return mechanism, claim

    return kept_below(privacy.epsilon_prime, privacy.epsilon, claimed, "[stream.privacy] epsilon_prime")[0]


def _on_level(mechanism: Mechanism, level: int) -> None:
    """Make it now, so that a level that cannot be is refused before anything is released."""
    try:
        mechanism.faded(level)
    except OperatorError as error:
        raise ConfigError(f"[budget] lifetime_mode: 'fade' is not for this epsilon: {error}") from None
