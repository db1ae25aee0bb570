"""Expectations of features that an application asks for: by the calibration, and on somebody's own recordings.

The calibration's chains say how closely a released change follows the true one, at any epsilon. They are of the corpus.
People outside it, and who is recognised: docs/figures.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.purposes import Choice, Wish, chunk_price
from eyestream.errors import ConfigError
from eyestream.ops.asked_sets import ASKED_CALIBRATION, asked_features, recognised_by
from eyestream.ops.new_configuration import ChosenTables
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.recordings.worth import refuse_own_people
from eyestream_lab.study.advice import check_hours
from eyestream_lab.study.prices import price

Array = NDArray[np.float64]

_LEAST_CHUNKS = 3
"""After the baseline of a recording, for its own mean to be subtracted."""


@dataclass(frozen=True)
class Followed:
    """How one released feature follows the truth: the correlation of changes, and the error in the feature's unit."""

    name: str
    unit: str
    correlation: float
    error: float


@dataclass(frozen=True)
class Recognised:
    """How well people were recognised who ask for some features: one set of attacks of the study.

    Attributes
    ----------
    features : that were released.
    minute : epsilon.
    area, area_low, area_high : under the ROC curve of "same person or not", strongest attacker, 95 % over people.
    control : the same with the people exchanged.
    people, attackers : how many.
    """

    features: tuple[str, ...]
    minute: float
    area: float
    area_low: float
    area_high: float
    control: float
    people: int
    attackers: int


def recognised(features: Sequence[str], minute: float) -> list[Recognised]:
    """Attacks at the least epsilon a minute that was attacked and is not below `minute`.

    On these features where they were attacked, else on all others; nothing above the largest epsilon.
    """
    text = (resources.files("eyestream_lab") / "data" / "asked.json").read_text(encoding="utf-8")
    every = msgspec.json.decode(text, type=list[Recognised])
    minutes = [one.minute for one in every if one.minute >= minute * (1 - 1e-9)]
    found = [one for one in every if minutes and one.minute == min(minutes)]
    return [one for one in found if set(one.features) == set(features)] or found


@dataclass(frozen=True)
class AskedAdvice:
    """An answer.

    Attributes
    ----------
    calibration : as it was named.
    epsilon : of a chunk.
    chunk : rows.
    delay_s : length of a chunk.
    expected : of each feature, as the calibration has it.
    trait : what the choice costs in recognition, in words.
    recognised : as `recognised` finds it.
    price : epsilon of a minute on average and at worst, of a second of gaze, of a session and of a day.
    guess_factor : by which a chunk raises the chance of a right guess about it, at most, on average.
    withheld_s : of each session, for its baseline.
    """

    calibration: str
    epsilon: float
    chunk: int
    delay_s: float
    expected: tuple[Followed, ...]
    trait: str
    recognised: tuple[Recognised, ...]
    price: dict[str, float]
    guess_factor: float
    withheld_s: float


def advise_asked(
    features: str, name: str, calibration: Calibration, wish: Wish
) -> tuple[Mechanism, AskedAdvice, ChosenTables]:
    """Result of the features NAME[,NAME...] at a price, with what releases them and the tables that do.

    Raises
    ------
    ConfigError
        They cannot be asked for, a chunk is longer than the delay, or identity is to be hidden.
    """
    n, rate_hz = calibration.n, calibration.rate_hz
    check_hours(wish)
    if wish.hide_identity:
        raise ConfigError("--hide-identity: chooses a calibration of all features; --features has its own")
    if wish.delay_s < n / rate_hz:
        raise ConfigError(f"--delay: expected {n / rate_hz:g} s or more, the length of a chunk of {name}")
    names = asked_features(features, calibration.names)
    epsilon = chunk_price(wish.epsilon_per_minute, n, rate_hz)
    mechanism = build(calibration, epsilon, features=names)
    tables = ChosenTables.of(wish, Choice(name, epsilon, n, rate_hz, {}, {}))
    costs, follows = price(epsilon, n, rate_hz), mechanism.follows
    if follows is None or mechanism.gain is None:
        raise ConfigError(f"--calibration: {name} is not one of asked features, as {ASKED_CALIBRATION} is")
    return (
        mechanism,
        AskedAdvice(
            calibration=name,
            epsilon=epsilon,
            chunk=n,
            delay_s=n / rate_hz,
            expected=_each(mechanism, follows, mechanism.noise_sd),
            trait=recognised_by(names),
            recognised=tuple(recognised(names, costs.minute)),
            price={
                "minute": costs.minute,
                "worst_minute": costs.worst_minute,
                "second": costs.second,
                "session": tables.session_epsilon,
                "day": tables.day_epsilon,
            },
            guess_factor=float(mechanism.gain),
            withheld_s=tables.withheld_s,
        ),
        tables,
    )


def followed(mechanism: Mechanism, recordings: Sequence[Recording]) -> tuple[Followed, ...]:
    """How releases of these people follow the truth, each recording released once, its own mean subtracted from both.

    Nothing where there are no recordings.

    Raises
    ------
    CalibrationError
        A recording has other features than the calibration, or the calibration was made from it.
    ConfigError
        A recording is too short, or has no value of a feature.
    """
    calibration, names = mechanism.calibration, mechanism.schema.names
    of = [calibration.names.index(name) for name in names]
    sums = np.zeros((4, len(of)))
    for recording in recordings:
        calibration.check_stream(recording.names, recording.rate_hz)
        refuse_own_people(calibration, recording, recording.path)
        missing = [name for name, i in zip(names, of, strict=True) if not np.isfinite(recording.features[:, i]).any()]
        if missing:
            raise ConfigError(
                f"--recording {recording.path}: has no value of {', '.join(missing)}: its tracker does not measure it, "
                "or its profile does not name the columns"
            )
        truth, released = _released(mechanism, recording, of)
        known = np.isfinite(truth)
        x, y = (np.where(known, part, np.nan) for part in (truth, released))
        error = np.nanmean((x - y) ** 2, axis=0)
        x, y = (part - np.nanmean(part, axis=0) for part in (x, y))
        sums += np.array([np.nansum(x * y, axis=0), np.nansum(x * x, axis=0), np.nansum(y * y, axis=0), error])
    if not recordings:
        return ()
    crossed, true, out, square = sums
    correlation = crossed / np.sqrt(np.maximum(true * out, 1e-300))
    return _each(mechanism, correlation, np.sqrt(square / len(recordings)))


def _released(mechanism: Mechanism, recording: Recording, of: list[int]) -> tuple[Array, Array]:
    """(m, d) changes of chunk means since the baseline, true and released."""
    session, baseline, truth, released = mechanism.session(), [], [], []
    for chunk in whole_chunks(recording.features, mechanism.n):
        own = np.where(np.isfinite(chunk[of]), chunk[of], np.nan)
        if session.awaits_baseline:
            session.anchor(chunk)
            baseline.append(own)
        else:
            released.append(session.release(chunk)[:, 0])
            truth.append(_mean(own))
    if len(released) < _LEAST_CHUNKS:
        least = mechanism.n * (mechanism.baseline_chunks + _LEAST_CHUNKS)
        raise ConfigError(f"--recording {recording.path}: has {len(recording.t)} rows, expected {least} or more")
    return np.array(truth) - _mean(np.concatenate(baseline, axis=1)), np.array(released)


def _mean(rows: Array) -> Array:
    """(d,) mean of what is there in (d, n); NaN where nothing is."""
    seen = np.isfinite(rows)
    count = seen.sum(axis=1)
    return np.where(count > 0, np.where(seen, rows, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _each(mechanism: Mechanism, correlation: Array, error: Array) -> tuple[Followed, ...]:
    schema = mechanism.schema
    found = zip(schema.names, schema.units, correlation.tolist(), error.tolist(), strict=True)
    return tuple(Followed(*one) for one in found)
