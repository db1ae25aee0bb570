"""The release of a recording, the cost of its chunks, and the claim about it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.claims.guarantee import Guarantee
from eyestream.core.charge import DELTA_UNITS, EPSILON_UNITS, Charge
from eyestream.core.mechanism import Mechanism
from eyestream.core.reservation import Granted
from eyestream.rim.files.recordings import Recording

_SLOT_TIMES = "the middle of the slot, or of each of its samples, in seconds of the recording's own clock"
_ROW_TIMES = (
    "seconds from the recording's first row, on an even grid: row k of the release is of row k of the recording, "
    "whatever t the recording begins with"
)
"""The recording's own first t is not released. On the clocks of many trackers it says when somebody was recorded. In a
file that was cut after a look at the eye it says where. It would have no noise, so epsilon bounds neither. The number
of rows is public, and so are the numbers of the rows. An even grid says nothing of pauses either."""


@dataclass(frozen=True)
class Stretch:
    """Chunks of a recording, one after the other, that cost the same each."""

    first_row: int
    chunks: int
    epsilon: float
    """Loss of a chunk."""


@dataclass(frozen=True)
class Released:
    """A private recording and what it cost.

    Attributes
    ----------
    recording
        Names as in the original, or those of the mechanism where it releases features of its own.
    t
        What its times are, in words.
    chunks
        Chunks released: not those that are left out, nor those of a baseline.
    epsilon, delta
        Of the recording: the sum over its chunks, as a ledger books it. None where no differential privacy is claimed.
    stretches
        What its chunks cost, in order: one, or on a lifetime that fades one for each level that it reached. None where
        no differential privacy is claimed.
    guarantee
        Of one chunk, on the first of the levels.
    """

    recording: Recording
    t: str
    chunks: int
    epsilon: float | None
    delta: float | None
    stretches: tuple[Stretch, ...]
    guarantee: Guarantee

    def claim(self) -> dict[str, object]:
        """The claim for machines: plain values that JSON knows.

        It is published with the recording, and has no noise: it is a function of the number of rows, the mechanism and
        the ledger. Two recordings with as many rows have the same claim, whatever is in them.
        """
        return {
            "t": self.t,
            "chunks": self.chunks,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "epsilon_of_chunks": [asdict(stretch) for stretch in self.stretches],
            "claim": self.guarantee.claim(),
        }

    def save_claim(self, target: Path) -> None:
        """Write what is claimed beside the release at `target`. Raises OSError."""
        claim_beside(target).write_text(json.dumps(self.claim(), indent=1) + "\n", encoding="utf-8")


def claim_beside(target: Path) -> Path:
    """Where the claim of a release is."""
    return target.with_name(f"{target.name}.claim.json")


def stretches_of(mechanism: Mechanism, answers: Sequence[Granted], first: int) -> tuple[Stretch, ...]:
    """The charges, in order; chunks begin at row `first`."""
    found = []
    charged = [answer for answer in answers if answer.spent is not None]
    for level, same in groupby(charged, lambda answer: answer.level):
        chunks = list(same)
        found.append(Stretch(first + chunks[0].request.first_row, len(chunks), mechanism.faded(level).epsilon))
    return tuple(found)


def released(
    recording: Recording,
    mechanism: Mechanism,
    guarantee: Guarantee,
    rows: NDArray[np.float64],
    *,
    stretches: tuple[Stretch, ...] | None,
    charges: Sequence[Charge],
    first_row: int = 0,
) -> Released:
    """`rows`: what is released from row `first_row` on. `charges`: one for each chunk that is released; their sum is
    exact. `stretches`: None where no differential privacy is claimed.
    """
    counted, rate = stretches is not None, mechanism.calibration.rate_hz
    said = _ROW_TIMES
    if mechanism.domain.keeps:
        rows = np.concatenate([np.full((first_row, rows.shape[1]), np.nan), rows])
        private = replace(recording, t=np.arange(len(rows)) / rate, features=rows)
    else:
        schema = mechanism.schema
        said = "seconds from the recording's first row"
        t = first_row / rate + schema.step_s * np.arange(len(rows), dtype=np.float64)
        if mechanism.n == 1:  # of slots the recording has the ends, on a public grid: the middle of each column
            before_end = schema.step_s * (schema.shape[1] - 0.5 - np.arange(schema.shape[1]))
            t, said = (recording.t[first_row:, None] - before_end).ravel(), _SLOT_TIMES
        private = Recording(t, rows, schema.names, recording.path)
    return Released(
        recording=private,
        t=said,
        chunks=len(charges),
        epsilon=sum(charge.epsilon for charge in charges) / EPSILON_UNITS if counted else None,
        delta=sum(charge.delta for charge in charges) / DELTA_UNITS if counted else None,
        stretches=stretches or (),
        guarantee=guarantee,
    )
