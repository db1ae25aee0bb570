"""What the product knows of a mechanism: one entry each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from eyestream.errors import ConfigError
from eyestream.privacy.calibration import Calibration, Tables
from eyestream.privacy.mechanism import Mechanism

__all__ = ["Entry", "NoOptions", "StudyForm"]


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For a mechanism that takes none."""


@dataclass(frozen=True, slots=True)
class StudyForm:
    """One way in which `eyestream study` releases with a mechanism.

    Attributes
    ----------
    label : its name in tables.
    colour : the same in every figure, #RRGGBB.
    calibration : what the mechanism is calibrated with, beside its defaults; forms that say the same share it.
    options : what it is built with.
    attacked : whether attacks are run on it; not so where a form differs from another one by a public, invertible map,
        which hides nothing.
    estimate : whether what it releases is an estimate already, shrunk and filtered over the chunks of a session.
    """

    label: str
    colour: str
    calibration: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    attacked: bool = True
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A mechanism, and all that others must know of it.

    Attributes
    ----------
    mechanism
        Its class; `name` and `protection` (the words of its guarantee) are attributes of it. Called with (calibration,
        epsilon, *, noise) and its options by name.
    options
        Their names and types: a frozen struct whose fields all have the default None, "not said".
    tables
        Its figures in a calibration.
    calibrate
        Calibration from a `Corpus`; called with it and, by name, declared, description, progress and what
        `calibration_options` names.
    calibration_options
        Options of `calibrate` that are its own.
    study
        How `eyestream study` releases with it.
    """

    mechanism: type[Mechanism]
    options: type[msgspec.Struct]
    tables: type[Tables]
    calibrate: Callable[..., Calibration]
    calibration_options: tuple[str, ...] = ()
    study: tuple[StudyForm, ...] = ()

    @property
    def name(self) -> str:
        """Of the mechanism, in calibrations and commands."""
        return self.mechanism.name

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options that were said, not None; refused when the mechanism does not take them.

        Raises
        ------
        ConfigError
            naming the option and what the mechanism takes.
        """
        said = {name: value for name, value in options.items() if value is not None}
        takes = self.options.__struct_fields__
        unknown = [name for name in said if name not in takes]
        if unknown:
            raise ConfigError(f"{self.name} has no option {unknown[0]}; it takes {_listed(takes)}")
        try:
            msgspec.convert(said, self.options)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$.")
            kind = what.replace("`", "").replace(" | null", "")
            raise ConfigError(f"option {where.rstrip('`')} of {self.name}: {kind[0].lower()}{kind[1:]}") from None
        return said

    def calibrated(self, corpus: Any, options: Mapping[str, Any]) -> Calibration:
        """`calibrate`, with its own options checked as `checked` does."""
        takes = ("declared", "description", "progress", *self.calibration_options)
        said = {name: value for name, value in options.items() if value is not None}
        unknown = [name for name in said if name not in takes]
        if unknown:
            own = _listed(self.calibration_options)
            raise ConfigError(f"the calibration of {self.name} has no option {unknown[0]}; it takes {own}")
        return self.calibrate(corpus, **said)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "none"
