"""Make the tape's outputs anew: `python -m tests.product.tape.record [WORD]`, where the fingerprint is stored.

The hashes are made anew for every case. The columns of `outputs.npz` stay as version 0.1.0 released them, but for cases
with WORD in their names.
"""

import json
import sys

import numpy as np

from tests.product.tape.cases import HERE, cases, columns, digest, fingerprint
from tests.product.tape.play import played

if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else None
    with np.load(HERE / "outputs.npz") as stored:
        some = dict(stored)
    hashes = {}
    for number, case in enumerate(cases()):
        released = played(case)
        hashes[case.name] = digest(released)
        if word is not None and word in case.name:
            some[f"case{number}"] = columns(released)
        sys.stderr.write(f"\r{number + 1} cases")
    text = json.dumps({"fingerprint": fingerprint(), "outputs": hashes}, indent=1, sort_keys=True)
    (HERE / "outputs.json").write_text(text + "\n")
    np.savez_compressed(HERE / "outputs.npz", **some)
