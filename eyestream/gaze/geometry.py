"""From the coordinates of a tracker to degrees: azimuth to the right, elevation up.

All angles are those of a direction (X right, Y up, Z ahead) from the wearer: azimuth atan2(X, Z) and elevation
atan2(Y, hypot(X, Z)). A camera image, or a screen looked at from its axis, is a plane at Z = 1 (pinhole camera):
a point that lies a share u of the image's width to the right of the middle has X = 2 u tan(fov_x / 2), and the same for
Y. Where a lens maps the angle from its axis in proportion to the distance from the image's middle (equidistant
projection, Kannala and Brandt 2006, eq. 3), that distance is the angle.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["image_to_degrees", "vector_to_degrees"]

Array = NDArray[np.float64]


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
