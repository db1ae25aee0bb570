"""Inputs for the fuzz targets that have been kept, and how to make new ones of them."""

import random
from collections.abc import Iterator, Sequence

from tests.rigs.hostile.corpus import FOLDER, every, payload, read
from tests.rigs.hostile.parts import GOOD, KEYS, ODD, pack
from tests.rigs.hostile.readers import seeds_of

__all__ = ["kept", "mutants", "seeds"]

_PIECES = [pack(key) for key in KEYS] + list(ODD.values()) + [bytes([byte]) for byte in (0xC1, 0xDF, 0xDD, 0xC6, 0x87)]


def kept(target: str) -> list[bytes]:
    """Inputs that were worth keeping for `target`: each reached something that the others do not, or was a find."""
    if not (FOLDER / "kept.jsonl").exists():
        return []
    return [bytes.fromhex(entry["hex"]) for entry in read("kept") if entry["target"] == target]


def seeds(target: str) -> list[bytes]:
    """Where to begin: good ones, what was kept, and for payloads the small ones of the corpus."""
    known = [data for case in every() if len(data := payload(case)) < 400] if target == "payload" else []
    return [pack(GOOD), *seeds_of(target), *kept(target), *known]


def mutants(pool: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Endless: one of `pool`, which may grow meanwhile, with a few changes."""
    random_ = random.Random(seed)
    while True:
        data = bytearray(random_.choice(pool))
        for _ in range(random_.choice([1, 1, 2, 3, 6])):
            _change(data, pool, random_)
        yield bytes(data)


def _change(data: bytearray, pool: Sequence[bytes], random_: random.Random) -> None:
    at = random_.randrange(len(data) + 1)
    kind = random_.randrange(6)
    if kind == 0 and at < len(data):
        data[at] = random_.randrange(256)
    elif kind == 1 and at < len(data):
        data[at] ^= 1 << random_.randrange(8)
    elif kind == 2:
        data[at:at] = random_.choice(_PIECES)
    elif kind == 3:
        del data[at : at + random_.randint(1, 8)]
    elif kind == 4:
        data[at:] = random_.choice(pool)[random_.randrange(40) :][:300]
    else:
        data[at:at] = random_.randbytes(random_.randint(1, 4))
