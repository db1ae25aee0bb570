"""Operations on a ledger that is at rest: set its day, and move a device to another ledger.

LEDGER.md says in which order a device moves, and why it is in one ledger at most (section 4).
"""

import hashlib
from pathlib import Path

import msgspec

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import create_file
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.records import LAST_DAY
from eyestream.rim.ledger.snapshot import DeviceExport, StreamFacts


class OperatedLedger(Ledger):
    """A ledger in the hands of an operator's command."""

    def begin_day_at(self, day: int) -> None:
        """Set the ledger's day to `day`, which an operator has checked. Charges of later days count for `day`.

        If the sum of `day` is no longer known, everything that the device ever spent counts for `day`. Raises
        LedgerError.
        """
        if not 0 <= day <= LAST_DAY:
            raise LedgerError(f"{self._path}: {day} is no day that a ledger can hold")
        with self._lock, self._writing():
            self._book.begin_day_at(day)
            self._writer.rewrite()
            self._day = day

    def export_device(self, device: str, to: str, *, must_be_known: bool = True) -> DeviceExport:
        """Durably stop granting the device here, and return what the ledger named `to` needs.

        `must_be_known`: refuse a device that has spent nothing here. A second call for the same ledger returns the same
        account; only its last day may be later.

        Raises LedgerError: the device is not known here, or was exported to another ledger, or `to` is no other
        ledger's name, or the ledger cannot be written.
        """
        with self._lock:
            if must_be_known and device not in self._book.accounts:
                raise LedgerError(f"{self._path}: knows nothing of a device {device}")
            own = ledger_name(self._book.header.ledger_id)
            if len(to) != len(own) or to == own or set(to) - set("0123456789abcdef"):
                raise LedgerError(f"{self._path}: {to} is not the name of another ledger; `eyestream budget` shows it")
            exported_to = self._book.exported.get(device, "")
            if exported_to not in ("", to):
                raise LedgerError(f"{self._path}: {device} was moved to the ledger {exported_to}; export it from there")
            if not exported_to:
                with self._writing():
                    self._book.mark_exported(device, to)
                    self._writer.rewrite()  # durable before the bytes exist: no two ledgers ever grant the device
            record = self._book.line(device)
            former = (*record.former_ledgers, own)
            # Reserved chunks stay spent. Their bytes may be in the outbox or published, so the other ledger must not
            # allow a second release.
            facts = dict.fromkeys(record.facts, StreamFacts())
            record = record._replace(exported=False, former_ledgers=former, facts=facts)
            return DeviceExport(to, self._book.days.last, record, self._book.accounts[device].other_days)

    def import_device(self, export: DeviceExport) -> None:
        """Take the device of `export` into this ledger, durably, with all that it has spent.

        Raises LedgerError: the export is for another ledger, the device is here, was exported again since, or the
        ledger cannot be written.
        """
        record, book = export.line, self._book
        with self._lock:
            if export.to != ledger_name(book.header.ledger_id):
                raise LedgerError(
                    f"{self._path}: the export of {record.device} is for the ledger {export.to}, and for no other; "
                    f"this one is {ledger_name(book.header.ledger_id)}"
                )
            if record.device in book.accounts and record.device not in book.exported:
                raise LedgerError(f"{self._path}: {record.device} is in it already")
            if record.moves <= book.moves.get(record.device, 0):
                raise LedgerError(f"{self._path}: {record.device} was exported again after these bytes were written")
            with self._writing():
                book.import_device(export)
                self._writer.rewrite()


_MOST_BYTES = 1 << 26
_DIGEST_BYTES = 32

_DECODER = msgspec.json.Decoder(DeviceExport)


def write_export(path: Path, export: DeviceExport) -> None:
    """Write it into a new file, durably. Raises LedgerError when there is one."""
    text = msgspec.json.encode(export)
    create_file(path, text + b"\n" + _digest(text) + b"\n")


def read_export(path: Path) -> DeviceExport:
    """Read a file of `write_export`. Raises LedgerError for anything else."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None
    text, _, rest = data.partition(b"\n")
    if len(data) > _MOST_BYTES or rest != _digest(text) + b"\n":
        raise LedgerError(f"{path}: is no device that `eyestream budget --export` wrote, or is damaged")
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError:
        if b'"eyestream device 1"' in text:
            raise LedgerError(
                f"{path}: names no ledger that it is for, as versions before 0.3 wrote it. If it was never imported, "
                "export the device again, with --to and the name that `eyestream budget` shows of the other ledger"
            ) from None
        raise LedgerError(f"{path}: is a device of another version of eyestream") from None


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest().encode()
