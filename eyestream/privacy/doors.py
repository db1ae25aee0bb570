"""What a mechanism must declare, checked where it comes in: one line each, before anything is booked.

`known` looks at the class when an entry is registered, `fitting` at a mechanism that was just built, and `live` at one
that a sidecar is to release with.
"""

from typing import Any, get_args

from eyestream.errors import ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.claims.kinds import Claim, only_differential
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.protection import Protection
from eyestream.privacy.release_type import InputDomain, OutputSchema
from eyestream.streams.spec import same_rate

__all__ = ["fitting", "known", "live"]


def known(mechanism: Any) -> None:
    """Refuse a class that is no mechanism, or does not declare its name, claim and domain.

    Raises
    ------
    ConfigError
        naming what is wrong.
    """
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        raise ConfigError(f"no mechanism: {mechanism!r} is no subclass of eyestream.privacy.mechanisms.Mechanism")
    called = getattr(mechanism, "name", None)
    if not (isinstance(called, str) and called and ":" not in called):
        raise ConfigError(f"no mechanism: {mechanism.__name__} has no name")
    if not isinstance(getattr(mechanism, "protection", None), Protection):
        raise ConfigError(f"mechanism {called} has no claim: its attribute `protection` must be a Protection")
    if not isinstance(mechanism.domain, InputDomain):
        expected = ", ".join(one.__name__ for one in get_args(InputDomain))
        raise ConfigError(
            f"mechanism {called} has a wrong domain: expected one of {expected}, not {mechanism.domain!r}"
        )


def fitting(mechanism: Mechanism, calibration: Calibration) -> None:
    """Refuse a mechanism whose releases are not what it declares.

    Raises
    ------
    ConfigError
        naming what is wrong.
    """
    called, schema = mechanism.name, mechanism.schema
    if not isinstance(mechanism.claim, Claim):
        raise ConfigError(f"mechanism {called} has no claim: expected one of `eyestream.privacy.claims.kinds`")
    if not isinstance(schema, OutputSchema):
        raise ConfigError(f"mechanism {called} has a wrong schema: expected an OutputSchema, not {schema!r}")
    shape = (len(calibration.names), calibration.n)
    if (schema.shape, schema.names) != (shape, calibration.names):
        raise ConfigError(
            f"mechanism {called} has a wrong schema: {schema.shape} of {', '.join(schema.names)} is declared, and "
            f"{shape} of {', '.join(calibration.names)} is released"
        )
    if not same_rate(1 / schema.step_s, calibration.rate_hz):
        raise ConfigError(
            f"mechanism {called} has a wrong schema: a step of {schema.step_s:g} s is declared, and rows are "
            f"{1 / calibration.rate_hz:g} s apart"
        )


def live(mechanism: Mechanism) -> None:
    """Refuse to release live with a mechanism that takes whole corpora, or claims no differential privacy.

    Raises
    ------
    ConfigError
        naming what is wrong.
    """
    if not mechanism.domain.live:
        raise ConfigError(
            f"mechanism {mechanism.name} cannot be released live: it takes {type(mechanism.domain).__name__}, and a "
            "stream has rows or one category a slot"
        )
    only_differential(mechanism.claim, f"mechanism {mechanism.name}", "live")
