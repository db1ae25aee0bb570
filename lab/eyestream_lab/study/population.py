"""The people of a study: who calibrates, whose recordings are released, and what is said of them."""

import csv
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError, RecordingError
from eyestream.rim.files.recordings import Recording
from eyestream.streams import same_rate
from eyestream_lab.calibration.fingerprints import recording_hash

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Population:
    """Recordings, in the order of their people's names.

    Attributes
    ----------
    names, rate_hz : of the features.
    rows : (M, F) rows of all recordings, one after the other, finite.
    present : (M, F) which values are the recordings' own.
    starts : (R + 1,) first row of each recording, and M.
    people : R names, the person of each recording, ascending.
    hashes : R hashes of the recordings.
    labels : for each label column, the R values of the recordings.
    """

    names: tuple[str, ...]
    rate_hz: float
    rows: Array
    present: NDArray[np.bool_]
    starts: NDArray[np.intp]
    people: tuple[str, ...]
    hashes: tuple[str, ...]
    labels: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, recordings: Sequence[Recording], labels: dict[str, dict[str, str]] | None = None) -> "Population":
        """Put recordings in order.

        Parameters
        ----------
        labels
            For each recording (its file's name up to the first dot) its columns, `person` among them; None: each
            recording is a person of its own.

        Raises
        ------
        RecordingError
            Recordings differ in features or rate, or share a name.
        ConfigError
            The labels leave a recording out, name one that is not there, or leave a value empty; all recordings have
            the same label; or there are fewer than four people.
        """
        by_name = {Path(recording.path).name.split(".")[0]: recording for recording in recordings}
        if len(by_name) < len(recordings):
            raise RecordingError("two recordings have the same name; the study needs a name of its own for each")
        if labels is not None:
            _check_labels(labels, by_name)
        labelled = {name: labels[name] if labels is not None else {"person": name} for name in by_name}
        person = {name: row["person"] for name, row in labelled.items()}
        order = sorted(by_name, key=lambda name: (person[name], name))
        chosen = [by_name[name] for name in order]
        first = _alike(chosen)
        if len(set(person.values())) < 4:
            raise ConfigError("the study needs recordings of at least four people: half of them calibrate")
        columns = [column for column in labelled[order[0]] if column != "person"]
        whole = np.concatenate([r.features for r in chosen])
        usual = _medians(whole)
        return cls(
            names=first.names,
            rate_hz=first.rate_hz,
            rows=np.concatenate([finite_rows(r.features, usual) for r in chosen]),
            present=np.isfinite(whole),
            starts=np.cumsum([0, *(len(r.features) for r in chosen)]),
            people=tuple(person[name] for name in order),
            hashes=tuple(recording_hash(r.features) for r in chosen),
            labels={column: tuple(labelled[name][column] for name in order) for column in columns},
        )

    def recording(self, index: int) -> Array:
        """Rows (m, F) of one recording."""
        return self.rows[self.starts[index] : self.starts[index + 1]]

    def as_recorded(self, index: int) -> Array:
        """Rows (m, F) of one recording, NaN where it lacks a value: what calibrations are made from."""
        own = slice(self.starts[index], self.starts[index + 1])
        return np.where(self.present[own], self.rows[own], np.nan)

    @property
    def calibrating(self) -> tuple[int, ...]:
        """Recordings of the people at even positions: they calibrate and are not released."""
        return self._at(0)

    @property
    def released(self) -> tuple[int, ...]:
        """Recordings of the people at odd positions: they are released and are not in the calibration."""
        return self._at(1)

    def _at(self, parity: int) -> tuple[int, ...]:
        chosen = set(sorted(set(self.people))[parity::2])
        return tuple(index for index, person in enumerate(self.people) if person in chosen)

    @property
    def content_hash(self) -> str:
        """Hash of recordings, people and labels."""
        digest = hashlib.blake2b(repr((self.hashes, self.people, sorted(self.labels.items()))).encode(), digest_size=16)
        return digest.hexdigest()


def _check_labels(labels: Mapping[str, Mapping[str, str]], recordings: Collection[str]) -> None:
    """Raise ConfigError, naming the line or column, unless the labels are those of the recordings."""
    for wanted, there, what in (
        (recordings, labels, "the labels have no line for recording"),
        (labels, recordings, "the labels name a recording that is not there:"),
    ):
        missing = sorted(set(wanted) - set(there))
        if missing:
            raise ConfigError(f"{what} {missing[0]}")
    for name, row in labels.items():
        empty = [column for column, value in row.items() if not value.strip()]
        if empty:
            raise ConfigError(f"the labels of recording {name}: {empty[0]} is empty")
    for column in next(iter(labels.values()), {}):
        values = {row[column] for row in labels.values()}
        if column != "person" and len(values) < 2:
            raise ConfigError(f"the labels tell nothing apart: {column} is {min(values)!r} for all recordings")


def _alike(recordings: Sequence[Recording]) -> Recording:
    """The first recording, if the others have its features and rate."""
    first = recordings[0]
    for recording in recordings[1:]:
        if recording.names != first.names or not same_rate(recording.rate_hz, first.rate_hz):
            raise RecordingError(f"{recording.path} has other features or another rate than {first.path}")
    return first


def _medians(rows: Array) -> Array:
    """(F,) medians of what is present; 0 of nothing."""
    columns = (column[np.isfinite(column)] for column in rows.T)
    return np.array([np.median(column) if len(column) else 0.0 for column in columns])


def finite_rows(rows: Array, usual: Array) -> Array:
    """Rows (m, F) with every missing value replaced by the feature's last one before it, else its median.

    A feature that the recording lacks as a whole has its `usual` (F,) value: a 0 would mark the person.

    For analysis of raw data only. Mechanisms impute by themselves, inside a chunk.
    """
    present = np.where(np.isfinite(rows), rows, np.nan)
    if np.isfinite(present).all():
        return rows.copy()
    seen = ~np.isnan(present)
    source = np.maximum.accumulate(np.where(seen, np.arange(1, len(rows) + 1)[:, None], 0), axis=0)
    median = np.where(seen.any(axis=0), _medians(rows), usual)
    return np.take_along_axis(np.vstack([median, present]), source, axis=0)


def read_labels(path: Path) -> dict[str, dict[str, str]]:
    """Columns of a CSV `recording,person,label...` by recording.

    Raises
    ------
    ConfigError
        The file cannot be read, has no such columns, or names a recording twice.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
            columns = list(rows[0]) if rows else []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: cannot be read as labels: {error}") from None
    if columns[:2] != ["recording", "person"]:
        raise ConfigError(f"{path}: labels begin with the columns recording,person")
    table: dict[str, dict[str, str]] = {}
    for row in rows:
        name = row.pop("recording").split(".")[0]
        if name in table or None in row or None in row.values():
            raise ConfigError(f"{path}: recording {name}: expected one line, with as many columns as the header")
        table[name] = row
    return table
