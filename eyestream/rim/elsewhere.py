"""Code outside this package, named by its place: ``package.module:NAME``.

Who names a place chooses code that runs in this process: it sees raw rows, and what it claims is its own.
"""

import importlib
from typing import TypeVar

from eyestream.core.mechanism import RAISED
from eyestream.core.mechanisms.entry import Entry
from eyestream.core.mechanisms.registry import entry_of, register
from eyestream.errors import ConfigError, meant
from eyestream.gaze.entry import SHIPPED, FrontEndEntry

Wanted = TypeVar("Wanted")


def imported(place: str, wanted: type[Wanted], where: str) -> Wanted:
    """The object at `place`.

    Parameters
    ----------
    place
        ``package.module:NAME``; the module is installed, or its folder is in PYTHONPATH.
    wanted
        What it must be.
    where
        What names it: the beginning of every error.

    Raises
    ------
    ConfigError
        It cannot be imported, whatever its module raises, or is something else.
    """
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(
            f"{where}: there is no {place!r} to import; expected package.module:NAME, installed or in PYTHONPATH"
        ) from None
    except (SyntaxError, *RAISED) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"{where}: {place!r} cannot be imported: {said}") from error
    if not isinstance(found, wanted):
        raise ConfigError(f"{where}: {place!r} is no {wanted.__name__}")
    return found


def front_end_named(named: str, where: str) -> FrontEndEntry:
    """The entry of a front end by its name, or by its place where `named` is one; raises ConfigError as `imported`."""
    if ":" in named:
        return imported(named, FrontEndEntry, where)
    if named not in SHIPPED:
        known = f"{', '.join(SHIPPED)}, not that of the calibration, and no place (package.module:NAME)"
        raise ConfigError(f"{where}: {named!r} is none of {known}{meant(named, SHIPPED)}")
    return SHIPPED[named]


def mechanism_elsewhere(place: str, where: str) -> Entry:
    """The `Entry` of a mechanism at `place`, which is known from now on; raises as `imported` and `register` do."""
    entry = imported(place, Entry, where)
    register(entry)
    return entry


def mechanism_named(named: str, where: str) -> Entry:
    """The entry of a mechanism by its name, or by its place where `named` is one.

    Raises
    ------
    ConfigError
        As `mechanism_elsewhere`.
    CalibrationError
        As `entry_of`.
    """
    return mechanism_elsewhere(named, where) if ":" in named else entry_of(named)
