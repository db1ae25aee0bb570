"""From the numbers of a tracker, as its profile declares them, to samples: units, geometry, and what counts as lost.

All angles are those of a direction (X right, Y up, Z ahead) from the wearer: azimuth atan2(X, Z) and elevation
atan2(Y, hypot(X, Z)). A camera image, or a screen looked at from its axis, is a plane at Z = 1 (pinhole camera):
a point that lies a share u of the image's width to the right of the middle has X = 2 u tan(fov_x / 2), and the same for
Y. Where a lens maps the angle from its axis in proportion to the distance from the image's middle (equidistant
projection, Kannala and Brandt 2006, eq. 3), that distance is the angle.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples

Array = NDArray[np.float64]

PER_S = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of a profile's unit of time are a second."""


def vector_to_degrees(right: Array, up: Array, ahead: Array) -> tuple[Array, Array]:
    """Azimuth and elevation in degrees of directions of any length.

    Parameters
    ----------
    right, up, ahead
        (n,) components in one unit. The zero vector, and what is not finite, gives NaN.
    """
    components = np.stack((right, up, ahead)).astype(np.float64)
    components[:, ~np.isfinite(components).all(axis=0)] = np.nan
    largest = np.abs(components).max(axis=0, initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):  # 1e308 must not overflow below, nor 1e-320 vanish
        x, y, z = components / np.where(largest > 0, largest, np.nan)
    return np.degrees(np.arctan2(x, z)), np.degrees(np.arctan2(y, np.hypot(x, z)))


def image_to_degrees(
    x: Array,
    y: Array,
    field_of_view_deg: tuple[float, float],
    *,
    y_axis: Literal["up", "down"],
    projection: Literal["pinhole", "equidistant"] = "pinhole",
) -> tuple[Array, Array]:
    """Azimuth and elevation in degrees of points in an image; NaN where a point is not finite.

    Parameters
    ----------
    x, y
        (n,) normalised: 0 and 1 are the edges of the image. Pixels are divided by its width and height before.
    field_of_view_deg
        Horizontal and vertical angle that the image covers; below 180 for a pinhole camera.
    y_axis
        Where y grows to.
    """
    sign = 1.0 if y_axis == "up" else -1.0
    fov_x, fov_y = np.radians(field_of_view_deg)
    with np.errstate(over="ignore", invalid="ignore"):
        u, v = x - 0.5, sign * (y - 0.5)
        if projection == "pinhole":
            right, up = 2.0 * u * np.tan(fov_x / 2.0), 2.0 * v * np.tan(fov_y / 2.0)
            return vector_to_degrees(right, up, np.ones_like(right))
        angle_x, angle_y = u * fov_x, v * fov_y
        angle = np.hypot(angle_x, angle_y)
        scale = np.sinc(angle / np.pi)  # sin(angle) / angle, 1 in the middle
        ahead = np.where(angle <= np.pi, np.cos(angle), np.nan)  # a lens sees no further than behind the wearer
        return vector_to_degrees(angle_x * scale, angle_y * scale, ahead)


def take_in(
    profile: Profile,
    time: ArrayLike,
    gaze: ArrayLike,
    *,
    pupil: ArrayLike | None = None,
    openness: ArrayLike | None = None,
    valid: ArrayLike | None = None,
) -> Samples:
    """Samples from n records of a tracker.

    A sample is not valid where the tracker says so, a coordinate is not finite, is (0, 0) and the profile takes that
    for a loss, lies outside of the image and its margin, or points further than `limit_deg` away, or where the lids are
    closed further than `openness_min`. A diameter is missing where it is not between the profile's bounds: 0 and -1 are
    how trackers say so. Of two eyes the mean is taken, missing where one of them is: that it jumps when an eye is
    lost is no change of the pupils. Of lids the wider one counts.

    Parameters
    ----------
    time
        (n,) in the profile's unit.
    gaze
        (n, 2), or (n, 3) components, in the profile's unit.
    pupil, openness
        (n,) or (n, eyes).
    valid
        (n,), true or not 0 where the eye was tracked; NaN is not.

    Raises
    ------
    ValueError
        when the shapes do not fit.
    """
    t: Array = np.asarray(time, dtype=np.float64) / PER_S[profile.time_unit]
    points = np.asarray(gaze, dtype=np.float64)
    width = len(profile.columns.gaze)
    if t.ndim != 1 or points.shape != (len(t), width):
        raise ValueError(f"gaze: ({len(t)}, {width}) numbers wanted, not {points.shape}")
    seen: NDArray[np.bool_] = np.asarray(np.isfinite(points).all(axis=1))
    if profile.zero_is_lost:
        seen &= (points != 0.0).any(axis=1)
    if profile.camera is not None:
        seen &= _in_image(profile, points)
    x, y = _degrees(profile, np.where(seen[:, None], points, np.nan))
    seen &= (np.abs(x) <= profile.limit_deg) & (np.abs(y) <= profile.limit_deg)
    if valid is not None:
        told = np.asarray(valid, dtype=np.float64)
        seen &= (told != 0.0) & ~np.isnan(told)
    if openness is not None and profile.openness_min > 0.0:
        lids = np.asarray(openness, dtype=np.float64).reshape(len(t), -1)
        seen &= (lids >= profile.openness_min).any(axis=1)
    return Samples(t, np.where(seen, x, np.nan), np.where(seen, y, np.nan), _diameter(profile, pupil, len(t)), seen)


def _image_points(profile: Profile, points: Array) -> Array:
    camera = profile.camera
    assert camera is not None
    return points / (camera.width_px, camera.height_px) if profile.gaze_unit == "px" else points


def _in_image(profile: Profile, points: Array) -> NDArray[np.bool_]:
    assert profile.camera is not None
    margin, places = profile.camera.margin_images, _image_points(profile, points)
    return np.asarray(((places >= -margin) & (places <= 1.0 + margin)).all(axis=1))


def _degrees(profile: Profile, points: Array) -> tuple[Array, Array]:
    sign = 1.0 if profile.y_axis == "up" else -1.0
    if profile.camera is not None:
        x, y = _image_points(profile, points).T
        fov = (profile.camera.field_of_view_x_deg, profile.camera.field_of_view_y_deg)
        return image_to_degrees(x, y, fov, y_axis=profile.y_axis, projection=profile.camera.projection)
    if profile.gaze_unit == "vector":
        right, y, ahead = points.T
        return vector_to_degrees(right, sign * y, ahead)
    scale = 1.0 if profile.gaze_unit == "deg" else 180.0 / np.pi
    with np.errstate(over="ignore"):
        return points[:, 0] * scale, sign * points[:, 1] * scale


def _diameter(profile: Profile, pupil: ArrayLike | None, n: int) -> Array:
    if pupil is None or profile.pupil_unit == "none":
        return np.full(n, np.nan)
    eyes = np.asarray(pupil, dtype=np.float64).reshape(n, -1) * (1e3 if profile.pupil_unit == "m" else 1.0)
    fits = (eyes >= profile.pupil_min_mm) & (eyes <= profile.pupil_max_mm)
    return np.asarray(np.where(fits, eyes, np.nan).mean(axis=1))  # NaN where one eye has none
