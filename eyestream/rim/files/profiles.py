"""Profiles of eye trackers: shipped ones by name, others by path."""

from eyestream.errors import ConfigError
from eyestream.gaze.profile import Profile
from eyestream.gaze.profile_text import parse_profile
from eyestream.rim.files.package_data import DATA, path_of

__all__ = ["SHIPPED", "load_profile"]

_FOLDER = DATA / "profiles"

SHIPPED = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""Names of the profiles that come with eyestream."""


def load_profile(name: str) -> Profile:
    """The shipped profile `name`, or the one in the file `name` when that has a slash or ends with .toml.

    Raises
    ------
    ConfigError
        when there is none, or it is not a profile.
    """
    path = path_of("profile", name, _FOLDER, SHIPPED)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the profile: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file in UTF-8") from None
    return parse_profile(text, str(path))
