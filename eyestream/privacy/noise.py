"""Where a mechanism's noise comes from.

A mechanism asks its noise object for a draw of its law. There is one in production, `SecureNoise`. Tests hand in
others, in code; what a mechanism releases with one of those says that it has no guarantee.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.bits import AesBits
from eyestream.privacy.laws import Law

__all__ = ["Noise", "SecureNoise"]


class Noise(Protocol):
    """A source of noise for mechanisms."""

    @property
    def certified(self) -> bool:
        """Whether what is drawn here carries the guarantee of the law."""
        ...

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; no draw is ever handed out twice."""
        ...

    def ahead(self, law: Law) -> None:
        """Draw now what the next `draw` of this law will hand out, if there is time for it."""
        ...


class SecureNoise:
    """Noise from the operating system's entropy; see `eyestream.privacy.laws` for the law and its deviation.

    Noise does not depend on the data, so it may be drawn ahead while the process is idle. It is bound to a chunk only
    when it is handed out, after that chunk's budget has been reserved, and only once. `renew` takes a new key and
    throws away what was drawn ahead: the service calls it for every reserved block, so that a restored snapshot of the
    process does not add the same noise to two different chunks. A forked child renews by itself.
    """

    certified = True

    def __init__(self) -> None:
        self._bits = AesBits()
        self._pool: dict[Law, NDArray[np.int64]] = {}
        self._era = self._bits.era

    def renew(self) -> None:
        """Take a fresh key and forget everything that was drawn ahead."""
        self._bits.renew()

    def ahead(self, law: Law) -> None:
        """Draw now what the next `draw` of this law will hand out."""
        if self._era != self._bits.era:
            self._forget()
        if law not in self._pool:
            self._pool[law] = law.sample(self._bits)

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; handed out once."""
        if self._era != self._bits.era:
            self._forget()
        ready = self._pool.pop(law, None)
        return law.sample(self._bits) if ready is None else ready

    def _forget(self) -> None:
        """There is a new key, perhaps by a fork: what was drawn under the old one is gone."""
        self._pool.clear()
        self._era = self._bits.era
