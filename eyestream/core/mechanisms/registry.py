"""The mechanisms by name: those of the product, and those that are registered beside them.

To know the names loads no mechanism: the code of one is imported when somebody names it.
`docs/adding-a-mechanism.md` shows how a mechanism is added.

What a mechanism must declare is checked where it comes in, before anything is booked. `check_mechanism_class` looks at
the class when an entry is registered, `check_schema` at a mechanism that was just built, and `check_live` at one that a
sidecar is to release with.
"""

from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from eyestream.core.calibration import Calibration
from eyestream.core.kinds import Claim, require_differential
from eyestream.core.mechanism import Mechanism, building
from eyestream.core.mechanisms.entry import Beginning, Entry, referred
from eyestream.core.noise import Noise
from eyestream.core.protection import Protection
from eyestream.core.release_type import InputDomain, OutputSchema
from eyestream.doors import installed, loaded
from eyestream.errors import CalibrationError, ConfigError
from eyestream.streams import same_rate


def check_mechanism_class(mechanism: Any) -> None:
    """Refuse a class that is no mechanism, or does not declare its name, claim and domain.

    Raises
    ------
    ConfigError
        naming what is wrong.
    """
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        raise ConfigError(f"no mechanism: {mechanism!r} is no subclass of eyestream.core.mechanisms.Mechanism")
    called = getattr(mechanism, "name", None)
    if not (isinstance(called, str) and called and ":" not in called):
        raise ConfigError(f"no mechanism: {mechanism.__name__} has no name")
    if not isinstance(getattr(mechanism, "protection", None), Protection):
        raise ConfigError(f"mechanism {called} has no claim: its attribute `protection` must be a Protection")
    if not isinstance(mechanism.domain, InputDomain):
        raise ConfigError(
            f"mechanism {called} has a wrong domain: expected an InputDomain such as Rows(), not {mechanism.domain!r}"
        )


def check_schema(mechanism: Mechanism, calibration: Calibration) -> None:
    """Refuse a mechanism whose releases are not what it declares.

    Raises
    ------
    ConfigError
        naming what is wrong.
    """
    called, schema = mechanism.name, mechanism.schema
    if not isinstance(mechanism.claim, Claim):
        raise ConfigError(f"mechanism {called} has no claim: expected a `Claim` of `eyestream.core.kinds`")
    if not isinstance(schema, OutputSchema):
        raise ConfigError(f"mechanism {called} has a wrong schema: expected an OutputSchema, not {schema!r}")
    shape = (len(calibration.names), calibration.n)
    if mechanism.domain.keeps and (schema.shape, schema.names) != (shape, calibration.names):
        raise ConfigError(
            f"mechanism {called} has a wrong schema: {schema.shape} of {', '.join(schema.names)} is declared, and "
            f"{shape} of {', '.join(calibration.names)} is released"
        )
    step_s = calibration.n / calibration.rate_hz / schema.shape[1]
    if not same_rate(1 / schema.step_s, 1 / step_s):
        raise ConfigError(
            f"mechanism {called} has a wrong schema: a step of {schema.step_s:g} s is declared, and rows are "
            f"{step_s:g} s apart"
        )


def check_live(mechanism: Mechanism) -> None:
    """Refuse to release live with a mechanism that takes whole corpora, or claims no differential privacy.

    Raises
    ------
    ConfigError
        naming what is wrong.
    """
    if not mechanism.domain.live:
        raise ConfigError(
            f"mechanism {mechanism.name} cannot be released live: it takes {type(mechanism.domain).__name__}, which no "
            "stream has"
        )
    require_differential(mechanism.claim, f"mechanism {mechanism.name}", "live")


DEFAULT = "klt"
"""The mechanism of a configuration and of a command where none is named."""

PRODUCT = {
    name: f"eyestream.core.mechanisms.{place}"
    for name, place in {
        "lpa": "lpa:ENTRY",
        "cfpa": "fourier:CFPA_ENTRY",
        "dcfpa": "fourier:DCFPA_ENTRY",
        "klt": "klt:ENTRY",
        "asked": "asked:ENTRY",
        "tile": "tile:ENTRY",
    }.items()
}
"""Where the entry of each mechanism of the product is."""

_ENTRIES: dict[str, Entry] = {}


@cache
def _installed() -> dict[str, EntryPoint]:
    """Mechanisms of other distributions: the entry points ``eyestream.mechanisms``, each a mechanism's name."""
    return {point.name: point for point in installed("eyestream.mechanisms") if point.name not in PRODUCT}


def register(entry: Entry) -> Entry:
    """Make a mechanism known, to `build`, calibration files and the commands, and give its entry back.

    Raises
    ------
    ConfigError
        when another mechanism has its name, or it does not declare what it must (`check_mechanism_class`).
    """
    check_mechanism_class(entry.mechanism)
    if (entry_of(entry.name) if entry.name in names() else entry).mechanism is not entry.mechanism:
        raise ConfigError(f"there is a mechanism {entry.name} already")
    return _ENTRIES.setdefault(entry.name, entry)


def names() -> tuple[str, ...]:
    """Names of all known mechanisms."""
    return tuple(dict.fromkeys((*PRODUCT, *_installed(), *_ENTRIES)))


def entries() -> tuple[Entry, ...]:
    """All that are known; the code of every one is imported."""
    return tuple(entry_of(name) for name in names())


def beginnings() -> dict[str, Beginning]:
    """How a new configuration and the demo begin with each mechanism that they offer, by its name."""
    return {entry.name: entry.beginning for entry in entries() if entry.beginning is not None}


def entry_of(name: str) -> Entry:
    """The entry of the mechanism `name`, whose code is imported.

    Raises
    ------
    CalibrationError
        when there is no such mechanism.
    """
    if name not in _ENTRIES and name in PRODUCT:
        _ENTRIES[name] = referred(PRODUCT[name])
    elif name not in _ENTRIES and name in _installed():
        _ENTRIES[name] = loaded(_installed()[name], Entry)
    if name not in _ENTRIES:
        raise CalibrationError(f"there is no mechanism {name!r}; there are {', '.join(names())}")
    return _ENTRIES[name]


def build(calibration: Calibration, epsilon: float, *, noise: Noise | None = None, **options: Any) -> Mechanism:
    """The mechanism that `calibration` was made for.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism.
    options
        As its entry has them; None is "not given".

    Raises
    ------
    CalibrationError
        when there is no such mechanism, or the calibration has other chunks than its domain.
    ConfigError
        when the mechanism does not take an option, cannot use epsilon or the value of an option, or does not release
        what it declares.
    MechanismError
        in place of what a library raises meanwhile (`eyestream.core.mechanism`).
    """
    entry = entry_of(calibration.mechanism)
    make: Any = entry.mechanism
    given = entry.checked(options)
    entry.mechanism.domain.check(calibration)
    with building(entry.name, epsilon):
        made: Mechanism = make(calibration, epsilon, noise=noise, **given)
        check_schema(made, calibration)
    return made
