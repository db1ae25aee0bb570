"""Make `outputs.json` and `outputs.npz` anew: `python -m tests.tape.record`. Run once, on version 0.1.0."""

import json
import sys

import numpy as np

from tests.tape.cases import HERE, cases, columns, digest, fingerprint
from tests.tape.play import played

if __name__ == "__main__":
    hashes, some = {}, {}
    for number, case in enumerate(cases()):
        released = played(case)
        hashes[case.name] = digest(released)
        some[f"case{number}"] = columns(released)
        sys.stderr.write(f"\r{number + 1} cases")
    text = json.dumps({"fingerprint": fingerprint(), "outputs": hashes}, indent=1, sort_keys=True)
    (HERE / "outputs.json").write_text(text + "\n")
    np.savez_compressed(HERE / "outputs.npz", **some)
