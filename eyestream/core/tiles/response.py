"""The tile response: one word a slot, released by randomised response with the whole epsilon of the slot.

**Unit**: the content of one slot of one device, whatever it is: any samples, any number of them, or none.
**Neighbours**: two recordings that differ in one slot, in any way (replace-one). **Guarantee**: pure epsilon for a
slot, in the local model, given any released past; the sum over the slots that it touches for a window of time.
`TILES.md` has the proof.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Noise
from eyestream.core.tiles.field import dwelt
from eyestream.core.tiles.reader import WordReader


def responded(occupancy: NDArray[np.int64], reader: WordReader, noise: Noise) -> int:
    """The released word of a slot, whose tiling `reader` has; the reader does not take it."""
    word = word_of(occupancy, reader.labels, reader.code.lost_word)
    replaced, drawn = noise.draw(reader.code.law).tolist()
    return int(drawn if replaced else word)  # the only line that raw data and randomness meet in


def word_of(occupancy: NDArray[np.int64], labels: NDArray[np.intp], lost_word: int) -> int:
    """The tile of the cell that the slot dwells in; `lost_word` where too few of its samples were tracked."""
    cell = int(dwelt(occupancy, labels.shape))
    return int(labels.reshape(-1)[cell]) if cell >= 0 else lost_word
