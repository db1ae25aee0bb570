"""Loss of a whole session, by the class of processes that a configuration names, and epsilon that keeps it low."""

import dataclasses
import math
from collections.abc import Callable

from eyestream.claims.correlation.published import Correlated, session_claim
from eyestream.core.charge import EPSILON_UNITS, Ceilings, charges_of
from eyestream.core.mechanism import Mechanism, building
from eyestream.errors import ConfigError
from eyestream.rim.config import StreamSettings
from eyestream.rim.files.processes import load_process
from eyestream.streams import StreamSpec

_PRECISION = 1.01
_SMALLEST = 1e-3  # of the target


def correlated_of(
    stream: StreamSettings, ceilings: Ceilings, mechanism: Mechanism, rows: StreamSpec, *, alone: bool
) -> Correlated | None:
    """The claim about a session; None where the configuration names no class.

    Parameters
    ----------
    stream
        Of the configuration.
    ceilings
        Of its device.
    mechanism
        Of the stream.
    rows
        What its rows are.
    alone
        Whether no device sends more streams than one.

    Raises
    ------
    ConfigError
        There is no such class; or a device sends other streams beside this one, or a baseline is taken off the
        stream's sessions: the class says nothing of these.
    """
    if stream.privacy.correlation is None:
        return None
    if not alone:
        raise ConfigError(
            "[stream.privacy] correlation: a class describes the chunks of one stream; a device here sends several, of "
            "the same eyes, and for these only the plain sum holds"
        )
    if (takes_off := mechanism.calibration.takes_off) is not None:
        what = takes_off.fact(mechanism.n, mechanism.n / rows.rate_hz).topic
        raise ConfigError(
            f"[stream.privacy] correlation: leave it out for a calibration with a {what}: every chunk then depends on "
            "earlier rows too, the class says nothing of that, and only the plain sum holds"
        )
    sessions = ceilings.session, ceilings.beneath(stream.name).session
    session = min(ceiling for ceiling in sessions if ceiling is not None)
    # Where the lifetime fades, a session on the last level has most chunks, and each tells at most what one of the
    # first level does. They are claimed at that; the plain sum stays the ceiling.
    least = charges_of(mechanism, ceilings.levels)[-1]
    chunks, plain = session // least.epsilon, session / EPSILON_UNITS
    process = load_process(stream.privacy.correlation)
    with building(mechanism.name, mechanism.epsilon):
        claim = session_claim(
            mechanism,
            process,
            mechanism.n / rows.rate_hz,
            chunks=max(chunks, 1),
            touched=rows.chunks_touched(mechanism.n, 1.0),
        )
    if ceilings.levels == 1:
        return claim
    lower = {field: min(getattr(claim, field), plain) for field in ("plain", "chunk", "second")}
    return dataclasses.replace(claim, **lower)


def kept_below(
    target: float, highest: float, build: Callable[[float], tuple[Mechanism, Correlated]], where: str
) -> tuple[Mechanism, Correlated]:
    """The mechanism of the largest epsilon, up to `highest`, with which epsilon' of a chunk is at most `target`.

    And what is claimed of it.

    To 1 %. A session of the same ceiling has more chunks when each costs less; epsilon' falls all the same.

    Parameters
    ----------
    target
        Of epsilon' of one chunk.
    highest
        The epsilon that was asked for.
    build
        The mechanism of an epsilon, and what is claimed of it.
    where
        The key or option that sets the target, for errors.

    Raises
    ------
    ConfigError
        when even a thousandth of the target tells more.
    """
    found = build(highest)
    if found[1].chunk <= target:
        return found
    low, high = target * _SMALLEST, min(highest, target)
    found = build(low)
    if found[1].chunk > target:
        raise ConfigError(
            f"{where}: no epsilon of a chunk from {low:g} keeps it below {target:g}; {low:g} "
            f"has {found[1].chunk:.3g}. Longer chunks, or a mechanism that adds noise (cfpa, dcfpa), tell less"
        )
    while high > low * _PRECISION:
        middle = math.sqrt(low * high)
        made = build(middle)
        if made[1].chunk <= target:
            low, found = middle, made
        else:
            high = middle
    return found
