"""Errors, sorted by who must act.

```
EyestreamError
├── OperatorError          somebody at a terminal must change something; the command line ends with exit code 2
│   ├── ConfigError        a key of the configuration or an argument
│   │   └── MechanismError a library that gave up while a mechanism was built of them
│   ├── RecordingError     a file of recorded rows
│   │   └── ShortRecordingError  gaze that is too short for a row
│   ├── CalibrationError   a calibration that is unreadable, or made for another stream, chunk or mechanism
│   ├── SnapshotError      a saved session that is damaged, or of another version or mechanism
│   ├── LedgerError        a ledger that is missing, unreadable, foreign, in use, or can no longer be written
│   └── ShardError         a shard's directory that is foreign, damaged or rolled back, or another log than it has read
├── PayloadError           the device sent bytes that are not a message of ours; carries a reason from a fixed list
└── LinkError              the network: retried by a service, reported by a command
```

No message carries a raw value, nor anything computed from one.
"""

from collections.abc import Iterable


class EyestreamError(Exception):
    """Base of every error that eyestream raises on purpose."""


class OperatorError(EyestreamError):
    """Somebody at a terminal must change something."""


class ConfigError(OperatorError):
    """A key of the configuration, or an argument, is missing, unknown or out of range."""


class MechanismError(ConfigError):
    """A mechanism cannot be built of calibration, epsilon and options: its own code, or a library's, raised something.

    What was raised is its cause.
    """


class RecordingError(OperatorError):
    """A file of recorded rows cannot be read as one."""


class ShortRecordingError(RecordingError):
    """A recording of gaze is too short for a single row."""


class CalibrationError(OperatorError):
    """A calibration is unreadable, or was made for another stream, chunk length or mechanism."""


class SnapshotError(OperatorError):
    """A saved session is damaged, or was made by another version or with another mechanism."""


class LedgerError(OperatorError):
    """The ledger is missing, unreadable, foreign, in use by another process, or cannot be written durably."""


class ShardError(OperatorError):
    """A shard's directory is foreign, damaged or rolled back, or its log is not the one that it has read."""


class PayloadError(EyestreamError):
    """Bytes that are not a message of ours.

    Parameters
    ----------
    reason
        One word of the fixed list in `eyestream.wire.envelope`; the only thing that is counted or said.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LinkError(EyestreamError):
    """The broker cannot be reached, refused us, or the connection broke."""


def meant(word: str, known: Iterable[str]) -> str:
    """``; did you mean NAME?`` for the end of a message about a `word` that is not `known`; or nothing.

    >>> meant("epsilom", ["epsilon", "calibration"]), meant("k", ["epsilon"])
    ('; did you mean epsilon?', '')
    >>> meant("rate", ["schema", "rate_hz"]), meant("saccade_rate", ["rate_saccades"])
    ('; did you mean rate_hz?', '; did you mean rate_saccades?')
    """
    from difflib import get_close_matches  # noqa: PLC0415  for a mistake alone

    names = list(known)
    close = get_close_matches(word, names, 1, 0.75) or [name for name in names if name.startswith(f"{word}_")]
    if not close:  # its parts in another order
        turned = {"_".join(sorted(name.split("_"))): name for name in names}
        close = [turned[one] for one in get_close_matches("_".join(sorted(word.split("_"))), turned, 1, 0.75)]
    return f"; did you mean {close[0]}?" if close else ""
