"""The product's knowledge of a mechanism: one entry each.

Whatever somebody asks about a mechanism stands in its entry. What few callers need is a *reference*,
``package.module:NAME``: the module is imported when somebody asks for it, so a sidecar loads neither calibration nor
laboratory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import msgspec

from eyestream.core.calibration import Tables
from eyestream.core.mechanism import Mechanism
from eyestream.core.session import OffsetSpec
from eyestream.errors import ConfigError
from eyestream.problems import Problems
from eyestream.strict import Reader, TablePlace


def referred(part: Any) -> Any:
    """The object of a reference ``package.module:NAME``; anything but a text stands for itself."""
    if not isinstance(part, str):
        return part
    module, _, name = part.partition(":")
    return getattr(import_module(module), name)


_BASELINE = {"baseline_chunks": "eyestream.core.anchor:stored"}


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For a mechanism that takes none."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a new configuration and the demo begin with a mechanism.

    Attributes
    ----------
    calibration : a shipped one.
    switched_on : options that a new configuration sets to true.
    session_bound : whether a new configuration names the class of processes that bounds a session.
    stream : the tables of a stream that is none of features, and of the ceilings that fit it, as text of a new
        configuration; empty: features.
    expected : what error to expect, for who makes such a configuration; empty: nothing is said.
    """

    calibration: str
    switched_on: tuple[str, ...] = ()
    session_bound: bool = False
    stream: str = ""
    expected: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A mechanism, and all that others must know of it.

    Attributes
    ----------
    mechanism
        Its class; `name` and `protection` (the words of its guarantee) are attributes of it. Called with (calibration,
        epsilon, *, noise) and its options by name.
    options
        Their names and types: a frozen struct whose fields all have the default None, "not given".
    tables
        Its figures in a calibration.
    takes_off
        How a calibration file has what is taken off the rows of sessions (`eyestream.core.session.OffsetSpec`), by
        the key in its header: a function, or a reference to it, called with the value of the key and all arrays.
    view
        What the values of a released chunk mean, or a reference to it: called with an `eyestream.Chunk`, it gives what
        `Chunk.view` is. None: the names and units of the schema say it all.
    beginning
        How a new configuration and the demo begin with it; None: they do not offer it.
    front_end
        What makes its chunks of gaze, or a reference to it: called with a calibration, it gives a
        `eyestream.gaze.entry.FrontEndEntry`. None: the stream names what makes its rows.
    shown_by
        Tests of eyestream's repository that show what the guarantee says of this mechanism, by topic: law, input,
        after, useful, floats, time (`eyestream.claims.nist`). Empty for a mechanism of somebody else.
    correlation
        What its releases tell of one another under a class of processes, or a reference to it:
        `eyestream.claims.correlation.published.CrossChunkBound`. None: no bound below the plain sum is known.
    """

    mechanism: type[Mechanism]
    options: type[msgspec.Struct]
    tables: type[Tables]
    takes_off: Mapping[str, Callable[..., OffsetSpec] | str] = field(default_factory=lambda: dict(_BASELINE))
    view: Callable[[Any], Any] | str | None = None
    beginning: Beginning | None = None
    front_end: Any = None
    shown_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    correlation: Any = None

    @property
    def name(self) -> str:
        """Name of the mechanism, in calibrations and commands."""
        return self.mechanism.name

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options that were given, not None; refused when the mechanism does not take them.

        Raises
        ------
        ConfigError
            naming the option and what the mechanism takes.
        """
        given = {name: value for name, value in options.items() if value is not None}
        takes = self.options.__struct_fields__
        unknown = [name for name in given if name not in takes]
        if unknown:
            raise ConfigError(f"{self.name} has no option {unknown[0]}; it takes {', '.join(takes) or 'none'}")
        problems, kinds = Problems(), {field.name: field.type for field in msgspec.structs.fields(self.options)}
        for name, value in given.items():
            Reader(problems).value(kinds[name], value, TablePlace(), f"option {name}")
        problems.refuse(f"{self.name}: ")
        return given
