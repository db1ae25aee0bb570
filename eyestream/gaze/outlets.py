"""Which channels of a Lab Streaming Layer outlet are the gaze of a profile: by its description, or by explicit names.

The convention is XDF's "Gaze-Meta-Data": each channel has a label, a type (ScreenX, ScreenY, DirectionX, DirectionY,
DirectionZ, Diameter, Confidence), an eye and a unit. Relays bend it, so what they write is known by name (`RELAYS`);
others must be mapped explicitly. A unit that is not known, or is another one than the profile's, is refused: a number
in the wrong unit is still a number, and nobody would notice.
"""

from dataclasses import dataclass

from eyestream.gaze.profile import Profile

CONFIDENT = 0.6

_UNITS = {
    "deg": {"deg", "degree", "degrees", "°", "visual degrees"},
    "rad": {"rad", "radian", "radians"},
    "px": {"px", "pixel", "pixels"},
    "image": {"normalized", "normalised", "norm", "screencoords"},
    "vector": {"normalized", "normalised", "norm", "mm", "millimeters", "millimetres", "m", "meters", "metres", "1"},
    "mm": {"mm", "millimeter", "millimeters", "millimetre", "millimetres"},
    "m": {"m", "meter", "meters", "metre", "metres"},
}
_RATES = (0.8, 1.25)


@dataclass(frozen=True, slots=True)
class Channel:
    """An outlet's description of one channel; empty where there is none."""

    label: str = ""
    kind: str = ""
    unit: str = ""
    eye: str = ""


@dataclass(frozen=True, slots=True)
class Outlet:
    """An outlet's description of itself.

    Attributes
    ----------
    name, kind, source
        Its name, content type and identifier.
    rate_hz
        Nominal; 0 where it is irregular.
    numbers
        Whether its channels are numbers.
    channels
        One each.
    """

    name: str
    kind: str
    source: str
    rate_hz: float
    numbers: bool
    channels: tuple[Channel, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An explicit mapping: labels of channels, or their numbers from 0; empty what the description tells.

    `valid_min` is the least value of the channel `valid` at which the eye counts as tracked.
    """

    gaze: tuple[str | int, ...] = ()
    pupil: tuple[str | int, ...] = ()
    valid: str | int | None = None
    valid_min: float = CONFIDENT


@dataclass(frozen=True, slots=True)
class Taking:
    """Numbers of the channels to take."""

    gaze: tuple[int, ...]
    pupil: tuple[int, ...]
    valid: int | None
    valid_min: float


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay that is known: what its outlets look like, and how they are taken."""

    about: str
    labels: tuple[str, ...]
    unit: str
    profile: str | None
    wanted: Wanted


RELAYS = {
    "pupil-capture": Relay(
        "Pupil Capture's LSL relay",
        ("confidence", "norm_pos_x", "norm_pos_y", "gaze_point_3d_x", "gaze_point_3d_y", "gaze_point_3d_z"),
        "normalized",
        "core",
        Wanted(
            ("gaze_point_3d_x", "gaze_point_3d_y", "gaze_point_3d_z"), ("diameter0_3d", "diameter1_3d"), "confidence"
        ),
    ),
    "pupil-companion": Relay(
        "the LSL relay of Pupil Labs' Neon and Invisible",
        ("x", "y"),
        "pixels",
        "neon",
        Wanted(("x", "y")),
    ),
    "tobii-pro": Relay(
        "App-TobiiPro: shares of a screen, of each eye, so a profile with the screen as [camera] is needed",
        ("left_x", "left_y", "left_pupil", "right_x", "right_y", "right_pupil"),
        "screencoords",
        None,
        Wanted(("left_x", "left_y")),
    ),
}
"""By the name that `[source.options] preset` has for them; the first labels and the first unit tell which it is."""


def relay_of(outlet: Outlet) -> str | None:
    """The name of the known relay that an outlet is of."""
    labels = tuple(channel.label for channel in outlet.channels)
    for name, relay in RELAYS.items():
        if labels[: len(relay.labels)] == relay.labels and outlet.channels[0].unit == relay.unit:
            return name
    return None


def taking(outlet: Outlet, profile: Profile, wanted: Wanted) -> Taking:
    """Which channels of `outlet` are gaze in the units of `profile`.

    Raises
    ------
    ValueError
        It cannot be taken: the message says why.
    """
    if not outlet.numbers:
        raise ValueError("its channels are texts, not numbers")
    low, high = _RATES
    if outlet.rate_hz > 0.0 and not low <= outlet.rate_hz / profile.fixed_rate_hz <= high:
        raise ValueError(f"it has {outlet.rate_hz:g} samples a second, the profile {profile.fixed_rate_hz:g}")
    gaze = tuple(_number(outlet, name) for name in wanted.gaze) or _by_kind(outlet, profile)
    if len(gaze) != len(profile.columns.gaze):
        raise ValueError(f"gaze: {len(gaze)} channels, where profile {profile.name} has {len(profile.columns.gaze)}")
    for number in gaze:
        _check_unit(outlet.channels[number], number, profile.gaze_unit, declared=bool(wanted.gaze))
    pupil = tuple(_number(outlet, name) for name in wanted.pupil)
    if not wanted.pupil and not wanted.gaze:
        pupil = tuple(i for i, c in enumerate(outlet.channels) if c.kind == "Diameter" and c.unit in _UNITS["mm"])
    if profile.pupil_unit == "none":
        pupil = ()
    for number in pupil:
        _check_unit(outlet.channels[number], number, profile.pupil_unit, declared=bool(wanted.pupil))
    return Taking(gaze, pupil, _valid(outlet, wanted), wanted.valid_min)


def _number(outlet: Outlet, name: str | int) -> int:
    """The number of a channel that is wanted by its label or number."""
    if isinstance(name, int):
        if not 0 <= name < len(outlet.channels):
            raise ValueError(f"there is no channel {name}: it has {len(outlet.channels)}")
        return name
    found = [number for number, channel in enumerate(outlet.channels) if channel.label == name]
    if len(found) != 1:
        raise ValueError(f"{len(found)} channels have the label {name!r}, where one is wanted")
    return found[0]


def _by_kind(outlet: Outlet, profile: Profile) -> tuple[int, ...]:
    """Gaze by the types of the convention."""
    names = [f"Direction{axis}" for axis in "XYZ"] if profile.gaze_unit == "vector" else ["ScreenX", "ScreenY"]
    found: list[int] = []
    for name in names:
        same = [number for number, channel in enumerate(outlet.channels) if channel.kind == name]
        if len(same) != 1:
            raise ValueError(f"{len(same)} channels of type {name}: name the channels in [source.options] gaze")
        found += same
    return tuple(found)


def _check_unit(channel: Channel, number: int, unit: str, *, declared: bool) -> None:
    """Refuse a channel in another unit; without any, only an explicit mapping vouches for it."""
    told = channel.unit.strip().lower()
    if not told and declared:
        return
    if told not in _UNITS[unit]:
        what = f"unit {channel.unit!r}" if told else "no unit"
        raise ValueError(f"channel {number} {channel.label!r} has {what}, where the profile has {unit}")


def _valid(outlet: Outlet, wanted: Wanted) -> int | None:
    if wanted.valid is not None:
        return _number(outlet, wanted.valid)
    if wanted.gaze:
        return None
    return next((number for number, channel in enumerate(outlet.channels) if channel.kind == "Confidence"), None)
