"""What the order of effects asks of its driver, one value for each effect.

```
Reserve   ask the ledger; give its answer to `ReleaseOrder.answer`
Release   the chunk is due and its reservation is durable: release it once, with a mechanism, and publish
Withhold  the ledger did not allow it: nothing of it leaves
Drop      it can neither be released nor withheld: nothing of it leaves
```
"""

from dataclasses import dataclass
from typing import Literal

from eyestream.core.chunking.chunks import DueChunk, RowSpan
from eyestream.core.reservation import Granted, Obstacle, Request

__all__ = ["Drop", "DropReason", "Effect", "Release", "Reserve", "Withhold"]

DropReason = Literal["ledger", "stopped"]
"""``ledger``: it cannot be written any more; ``stopped``: the end came before the ledger was asked."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """Ask the ledger for `request`; asking again for what was asked before is safe."""

    request: Request


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """Release `chunk` now, as the ledger has granted; of one that is asked for as unreleased, nothing leaves."""

    chunk: DueChunk
    granted: Granted


@dataclass(frozen=True, slots=True)
class Withhold:
    """The chunk of `span` is due and must not be released: `obstacle` says why.

    With the obstacle ``rows`` it was reserved before, by an earlier life of this stream: if an outbox has its bytes,
    those may be sent again.
    """

    span: RowSpan
    obstacle: Obstacle


@dataclass(frozen=True, slots=True)
class Drop:
    """The chunk of `span` is due and lost."""

    span: RowSpan
    reason: DropReason


Effect = Reserve | Release | Withhold | Drop
