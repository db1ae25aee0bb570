"""The kinds of source, by name: a new one is a file beside this one and a line here.

One that lives elsewhere is named by its place: ``kind = "package.module:NAME"``, NAME being a `SourceKind`. Who writes
the configuration thereby chooses code that sees raw rows.
"""

from pathlib import Path

import msgspec

from eyestream.errors import ConfigError
from eyestream.rim.config import SourceEntry
from eyestream.rim.elsewhere import imported
from eyestream.rim.sources.recording import RECORDING
from eyestream.rim.sources.source import Source, SourceKind
from eyestream.streams.spec import StreamSpec

__all__ = ["make_source"]

_KINDS: dict[str, SourceKind] = {kind.name: kind for kind in (RECORDING,)}


def make_source(entry: SourceEntry, spec: StreamSpec, base: Path) -> Source:
    """The source of a ``[[source]]`` table; paths in its options are relative to `base`.

    Raises
    ------
    ConfigError
        There is no such kind, or its options are not what it takes.
    """
    where = "[[source]] kind"
    kind = imported(entry.kind, SourceKind, where) if ":" in entry.kind else _KINDS.get(entry.kind)
    if kind is None:
        raise ConfigError(f"{where}: {entry.kind!r} is none of {', '.join(sorted(_KINDS))}")

    def path(wanted: type, value: object) -> object:
        if wanted is Path and isinstance(value, str) and value:
            return base / value
        raise ValueError("Expected a path")

    try:
        options = msgspec.convert(entry.options, kind.options, dec_hook=path)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[source.options] of {entry.kind}: {error}") from None
    return kind.make(options, spec)
