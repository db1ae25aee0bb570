"""The chunks of a whole session of a recording, each estimated from all releases of the session, later ones too.

Live, nobody has the later ones. It is post-processing of released values, so it costs nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.entry import referred
from eyestream.core.mechanisms.registry import names
from eyestream_lab.parts import part_of

Array = NDArray[np.float64]


def hindsight(mechanism: Mechanism, states: Sequence[Array | None]) -> list[Array] | None:
    """The chunks (F, n) of a whole session.

    Parameters
    ----------
    states
        `Session.state` after each release, in order.

    Returns
    -------
    None where the mechanism has nothing better than what it released.
    """
    look_back = part_of(mechanism.name).hindsight if mechanism.name in names() else None
    if look_back is None:
        return None
    pages = [mechanism.page() for _ in states]
    referred(look_back)(mechanism.core, states, [page.released for page in pages])
    return [page.complete() for page in pages]
