"""What the laboratory knows of a mechanism: parts that its entry refers to, and that nothing else imports.

`Entry.laboratory` names them: ``audit`` (`eyestream_lab.audit.trials.AuditPart`), ``law`` (a function as
`eyestream_lab.correlation.laws.emission_of` calls it) and ``study`` (`eyestream_lab.study.ways.StudyPart`). A mechanism
that has no such part is left out there, or refused by its name.
"""

from typing import TypeVar

from eyestream.core.mechanisms.entry import Entry
from eyestream.rim.elsewhere import imported

__all__ = ["part_of"]

Wanted = TypeVar("Wanted")


def part_of(entry: Entry, what: str, wanted: type[Wanted]) -> Wanted | None:
    """The part of a mechanism; None where its entry refers to none.

    Raises
    ------
    ConfigError
        The entry refers to something that cannot be imported, or is something else.
    """
    place = entry.laboratory.get(what)
    return None if place is None else imported(place, wanted, f"{what} of mechanism {entry.name}")
