"""What is published under one tape, and one calibration.

Printed by `python -m tests.product.tape.payloads [FEW|ALL|2/5]`.

Released values are digests of `private` messages, whose values are float32, and of the float64 before they are
rounded. The first must be those of every machine. The second show where arithmetic rounds differently.
"""

import hashlib
import json
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream.wire.release import PrivateChunk, encode_private
from eyestream_lab.testing.noise import WordNoise
from tests.product.tape import test_tape_kaleido, test_tape_tiles, test_tape_words
from tests.product.tape.cases import Tape, cases, digest, inputs
from tests.product.tape.decided import FEW, configurations, part_of
from tests.product.tape.play import played
from tests.product.tape.test_calibration_kernels import made

__all__ = ["published"]

Array = NDArray[np.float64]
_OTHERS = {"tile": test_tape_tiles, "kaleido": test_tape_kaleido, "task-words": test_tape_words}
_FEW_CASES = 16


def published(which: str) -> dict[str, list[str]]:
    """Digests of the messages and of the float64 of each case, of each shipped calibration, and of words."""
    return {name: [_messages(chunks), digest(chunks)] for name, chunks in _released(which)}


def _released(which: str) -> Iterator[tuple[str, Array]]:
    """(chunks, F, n), or less where there are fewer dimensions, by name."""
    every = list(cases())
    for case in part_of(every, which, every[:_FEW_CASES]):
        yield case.name, played(case)
    for name, (one, epsilon, own) in configurations(which).items():
        calibration = calibrations.load(one)
        session = build(calibration, epsilon, noise=WordNoise(Tape(name)), **own).session()
        chunks_in = inputs(calibration.lo, calibration.hi, calibration.n)
        while session.awaits_baseline:
            session.anchor(chunks_in[0])
        yield f"shipped {name}", np.stack([session.release(chunk) for chunk in chunks_in])
    others = [
        (f"{name} {epsilon:g}", module, epsilon) for name, module in _OTHERS.items() for epsilon in module.RECORDED
    ]
    for name, module, epsilon in part_of(others, which, others):
        yield name, module.released(epsilon, name).astype(float)


def _messages(chunks: Array) -> str:
    digested = hashlib.blake2b(digest_size=12)
    for index, values in enumerate(chunks if chunks.ndim == 3 else chunks.reshape(1, len(chunks), -1)):
        chunk = PrivateChunk(1, index, 0.0, 0.5, values, epsilon=1.0, delta=0.0)
        digested.update(encode_private(chunk))
    return digested.hexdigest()


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else FEW
    print(json.dumps({"published": published(which), "book": made()}))
