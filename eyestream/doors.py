"""Doors for other distributions: the entry points of a group, and the objects that they refer to."""

import importlib.metadata
from importlib.metadata import EntryPoint
from typing import TypeVar

from eyestream.errors import ConfigError

Wanted = TypeVar("Wanted")


def installed(group: str) -> list[EntryPoint]:
    """The entry points of `group`, sorted by name; nothing is imported."""
    return sorted(importlib.metadata.entry_points(group=group), key=lambda point: point.name)


def loaded(point: EntryPoint, wanted: type[Wanted]) -> Wanted:
    """The object of an entry point.

    Raises
    ------
    ConfigError
        It cannot be imported, or is no `wanted`.
    """
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"entry point {point.name} of {point.group} cannot be loaded: {error}") from None
    if not isinstance(found, wanted):
        raise ConfigError(f"{point.value}: is no {wanted.__module__}.{wanted.__name__}, as {point.group} expects")
    return found
