"""The kinds of source, by name: a new one is a file beside this one and a line here, or a call of `register`."""

from pathlib import Path

import msgspec

from eyestream.errors import ConfigError
from eyestream.rim.config import SourceEntry
from eyestream.rim.sources.recording import RECORDING
from eyestream.rim.sources.source import Source, SourceKind
from eyestream.streams.spec import StreamSpec

__all__ = ["make_source", "register"]

_KINDS: dict[str, SourceKind] = {kind.name: kind for kind in (RECORDING,)}


def register(kind: SourceKind) -> None:
    """Add a kind; raises ValueError when its name is taken."""
    if kind.name in _KINDS:
        raise ValueError(f"there is a source kind {kind.name!r} already")
    _KINDS[kind.name] = kind


def make_source(entry: SourceEntry, spec: StreamSpec, base: Path) -> Source:
    """The source of a ``[[source]]`` table; paths in its options are relative to `base`.

    Raises
    ------
    ConfigError
        There is no such kind, or its options are not what it takes.
    """
    kind = _KINDS.get(entry.kind)
    if kind is None:
        raise ConfigError(f"[[source]] kind: {entry.kind!r} is none of {', '.join(sorted(_KINDS))}")

    def path(wanted: type, value: object) -> object:
        if wanted is Path and isinstance(value, str) and value:
            return base / value
        raise ValueError("Expected a path")

    try:
        options = msgspec.convert(entry.options, kind.options, dec_hook=path)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[source.options] of {entry.kind}: {error}") from None
    return kind.make(options, spec)
