"""What each stream of a configuration is made of: calibration, front ends, mechanism. All files are loaded here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.entry import referred
from eyestream.core.mechanisms.registry import check_live, entry_of
from eyestream.core.noise import Noise
from eyestream.core.purposes import PURPOSES, chunk_price
from eyestream.errors import ConfigError, OperatorError
from eyestream.gaze.entry import SHIPPED, USUAL, FrontEndEntry
from eyestream.problems import Problems
from eyestream.rim.config import PrivacySettings, Settings, StreamSettings
from eyestream.rim.files import calibrations
from eyestream.rim.plan.ceilings import ceilings_of
from eyestream.rim.plan.stream import StreamParts, sends_alone
from eyestream.streams import StreamSpec

if TYPE_CHECKING:
    from eyestream.claims.facts import Correlated
    from eyestream.gaze.profile import Profile
    from eyestream.rim.sources.registry import NamedSource

__all__ = ["calibration_of", "front_end_of", "load_stream_parts", "served_gaze", "spec_of"]


def load_stream_parts(
    settings: Settings, stream: StreamSettings, sources: Sequence["NamedSource"], noise: Noise
) -> StreamParts:
    """What a stream is made of; its calibration, front end and mechanism are loaded.

    Raises
    ------
    CalibrationError, ConfigError
        One of them does not fit the others, epsilon or an option cannot be used, or the mechanism is not for a live
        stream.
    """
    problems, calibration, front_end = Problems(), None, None
    profiles, answers = served_gaze(stream, sources)
    with problems.gathered():
        calibration = calibration_of(stream)
    with problems.gathered():
        front_end = front_end_of(stream, calibration, gaze=bool(profiles))
    if calibration is None or len(problems):
        problems.refuse()
    assert calibration is not None
    spec = spec_of(stream, calibration, front_end, profiles)
    _check_fit(stream, calibration, spec, front_end, profiles)
    mechanism = _built(settings, stream, calibration, spec, noise)
    check_live(mechanism)
    _check_measured(mechanism, profiles)
    for level in range(1, settings.budget.levels):
        _on_level(mechanism, level)
    return StreamParts(spec, mechanism, front_end, profiles, answers)


def _check_measured(mechanism: Mechanism, profiles: Sequence["Profile"]) -> None:
    """Raise ConfigError where features of pupils are asked for, and a tracker of the stream measures none."""
    pupils = [name for name in mechanism.schema.names if name.endswith("diameter")]
    without = [profile.name for profile in profiles if profile.pupil_unit == "none"]
    if pupils and without and not mechanism.domain.keeps:
        raise ConfigError(f"features: {', '.join(pupils)} cannot be measured: profile {without[0]} has no pupils")


def _check_fit(
    stream: StreamSettings,
    calibration: Calibration,
    spec: StreamSpec,
    front_end: FrontEndEntry | None,
    profiles: Sequence["Profile"],
) -> None:
    """Refuse a calibration that was made for other rows, or for rows of another front end; all reasons together."""
    problems = Problems()
    with problems.gathered():
        calibration.check_stream(spec.names, calibration.rate_hz)
    with problems.gathered():
        calibration.check_stream(calibration.names, spec.rate_hz)
    known = front_end or _shipped(spec.names)
    if known is not None and spec.names == known.names and spec.window_s < known.window_s:
        problems.add(f"[[stream]] window_s: a row of these features describes {known.window_s:g} s, not less")
    for profile in profiles:
        assert front_end is not None
        with problems.gathered():
            calibration.check_front_end(front_end.mark(profile))
    if calibration.takes_off is not None and stream.idle_s is not None:
        with problems.gathered():
            _check_pause(spec, stream.idle_s)
    problems.refuse()


def served_gaze(stream: StreamSettings, sources: Sequence["NamedSource"]) -> tuple[tuple["Profile", ...], bool | None]:
    """`profiles` and `answers` of a stream's `StreamParts`, by the sources of gaze that serve it."""
    serving = [source for source in sources if stream.name in source.entry.served]
    profiles = tuple(dict.fromkeys(source.profile for source in serving if source.profile is not None))
    live_gaze = [source.answers for source in serving if source.answers is not None]
    return profiles, all(live_gaze) if live_gaze else None


def front_end_of(stream: StreamSettings, calibration: Calibration | None, *, gaze: bool) -> FrontEndEntry | None:
    """The front end that a stream names, or the usual one where a source has gaze.

    A mechanism may have a front end of its own, which follows from its calibration.

    Raises
    ------
    ConfigError
        There is no such front end.
    """
    own = None if calibration is None else entry_of(calibration.mechanism).front_end
    if own is not None:
        entry: FrontEndEntry = referred(own)(calibration)
        if stream.front_end in (None, entry.name):
            return entry
    if stream.front_end is not None:
        from eyestream.rim.elsewhere import front_end_named  # noqa: PLC0415  for who names one

        return front_end_named(stream.front_end, "[[stream]] front_end")
    return USUAL if gaze else None


def spec_of(
    stream: StreamSettings,
    calibration: Calibration | None,
    front_end: FrontEndEntry | None,
    profiles: Sequence["Profile"],
) -> StreamSpec:
    """What the rows of a stream are; what its table leaves out comes with its front end and its calibration.

    The memory of a front end in this process is known, whatever the table says: the longest memory holds.

    Raises
    ------
    ConfigError
        Nothing says what the rows are.
    """
    usual = front_end or calibration
    names = stream.names or (None if usual is None else usual.names)
    rate_hz = stream.rate_hz or (None if usual is None else usual.rate_hz)
    known = front_end or (None if names is None else _shipped(names))
    window_s = known.window_s if stream.window_s is None and known is not None else stream.window_s
    if names is None or rate_hz is None or window_s is None:
        key = "window_s" if window_s is None else "names" if names is None else "rate_hz"
        raise ConfigError(f"[[stream]] {key}: missing; no front end of the configuration makes such rows")
    units = ("1",) * len(names) if front_end is None else front_end.units
    memories = [front_end.memory_s(profile) for profile in profiles] if front_end is not None else []
    return StreamSpec(
        name=stream.name,
        schema=stream.schema,
        names=names,
        units=calibration.units if calibration is not None and calibration.names == names else units,
        rate_hz=rate_hz,
        window_s=window_s,
        memory_s=max([stream.memory_s, *memories]),
    )


def _shipped(names: tuple[str, ...]) -> FrontEndEntry | None:
    """The front end of ours that makes rows of these features."""
    return next((entry for entry in SHIPPED.values() if entry.names == names), None)


def calibration_of(stream: StreamSettings) -> Calibration:
    """The calibration that a stream names; raises CalibrationError or ConfigError."""
    place, where = stream.privacy.mechanism, "[stream.privacy] mechanism"
    named = None
    if place is not None:
        from eyestream.rim.elsewhere import mechanism_named  # noqa: PLC0415  for who names one

        named = mechanism_named(place, where).name
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
            f"memory_s = {rows.memory_s:g}): the calibration takes a baseline or a history off each session, and rows "
            "after a shorter pause still describe gaze of before it"
        )


def _built(
    settings: Settings, stream: StreamSettings, calibration: Calibration, spec: StreamSpec, noise: Noise
) -> Mechanism:
    privacy = stream.privacy
    if privacy.purpose not in (None, *PURPOSES):
        return _at_a_minute(privacy, calibration, noise)
    if privacy.epsilon_prime is None:
        return build(calibration, privacy.epsilon, noise=noise, **privacy.given)
    from eyestream.rim.plan.correlated import correlated_of, kept_below  # noqa: PLC0415  for who names a class

    def claimed(epsilon: float) -> "tuple[Mechanism, Correlated]":
        mechanism = build(calibration, epsilon, noise=noise, **privacy.given)
        claim = correlated_of(stream, ceilings_of(settings), mechanism, spec, alone=sends_alone(settings))
        if claim is None:
            raise ConfigError("[stream.privacy] epsilon_prime: it is a figure of a class; name one with `correlation`")
        return mechanism, claim

    return kept_below(privacy.epsilon_prime, privacy.epsilon, claimed, "[stream.privacy] epsilon_prime")[0]


def _at_a_minute(privacy: PrivacySettings, calibration: Calibration, noise: Noise) -> Mechanism:
    """What a purpose comes to whose calibration is the operator's: that one, at its price a minute."""
    if not calibration.sessions:
        raise ConfigError(
            f"[stream.privacy] calibration: expected one of {privacy.purpose}, which eyestream calibrate --labels "
            f"makes, not one of {calibration.mechanism}"
        )
    assert privacy.epsilon_per_minute is not None
    epsilon = chunk_price(privacy.epsilon_per_minute, calibration.n, calibration.rate_hz)
    return build(calibration, epsilon, noise=noise, **privacy.given)


def _on_level(mechanism: Mechanism, level: int) -> None:
    """Make it now, so that a level that cannot be is refused before anything is released."""
    try:
        mechanism.faded(level)
    except OperatorError as error:
        raise ConfigError(f"[budget] lifetime_mode: 'fade' is not for this epsilon: {error}") from None
