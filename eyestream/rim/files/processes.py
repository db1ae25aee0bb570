"""Classes of processes: shipped ones by name, others by path."""

import msgspec

from eyestream.claims.correlation.published import PublishedClass
from eyestream.errors import ConfigError
from eyestream.rim.files import DATA, path_of

_FOLDER = DATA / "processes"

SHIPPED = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""Names of the classes that come with eyestream."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of such a file; all are needed."""

    name: str
    time_constant_s: float
    score_time_constant_s: float
    range_sd: float
    about: str


def load_process(name: str) -> PublishedClass:
    """The shipped class `name`, or the one in the file `name` when that has a slash or ends with .toml.

    Raises
    ------
    ConfigError
        when there is none, or it is not a class of processes.
    """
    path = path_of("correlation", name, _FOLDER, SHIPPED)
    try:
        read = msgspec.toml.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the class of processes: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a class of processes: {error}") from None
    try:
        return PublishedClass(read.name, read.time_constant_s, read.score_time_constant_s, read.range_sd, read.about)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
