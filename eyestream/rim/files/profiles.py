"""Profiles of eye trackers: shipped ones by name, others by path."""

from collections.abc import Sequence

from eyestream.errors import ConfigError
from eyestream.gaze.profile import Profile
from eyestream.gaze.profile_text import parse_profile
from eyestream.rim.files import DATA, path_of

_FOLDER = DATA / "profiles"

SHIPPED = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""Names of the profiles that come with eyestream."""


def matching_profiles(header: Sequence[str]) -> list[Profile]:
    """Shipped profiles whose columns of time and gaze are in the header of a table, the one with most others first.

    One of them has to be there where gaze is just called x and y, as many things are.
    """
    found: list[tuple[int, Profile]] = []
    for name in SHIPPED:
        columns = (profile := load_profile(name)).columns
        needed = {columns.time, *columns.gaze}
        more = {*columns.pupil, columns.valid, columns.lost, columns.confidence} & set(header)
        told = len(needed) + len(more)
        if needed <= set(header) and (told > len(needed) or not {"x", "y"} & needed):
            found.append((told, profile))
    return [profile for _, profile in sorted(found, key=lambda one: -one[0])]


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
