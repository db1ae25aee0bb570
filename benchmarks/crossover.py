"""The picture of where planned FFTs overtake the product with a basis, from the tables of benchmarks/RESULTS.md.

python -m benchmarks.crossover            # draws it
python -m benchmarks.crossover --json     # prints what it is drawn from
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.kernel import TRANSFORMS

BENCHMARKS = Path(__file__).resolve().parent


def records(text: str) -> list[dict[str, Any]]:
    """What the kernel benchmark records of the transforms, out of the tables in RESULTS.md."""
    found = []
    for after in text.split(TRANSFORMS)[1:]:
        title, _, rest = after.partition("\n\n")
        first_line, _, *lines = rest.partition("\n\n")[0].splitlines()
        kept = [int(k) for k in re.findall(r"k = (\d+)", first_line)]
        for line in lines:
            first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            size = {"state": "transform", "blas": title.strip(" ,*"), "n": int(first.removeprefix("n = "))}
            for k, cell in zip(kept, cells, strict=True):
                if cell:
                    basis, planned, _ = (float(time.replace(",", "")) for time in cell.split("/"))
                    found.append(size | {"k": k, "ratio_basis_to_fftw": basis / planned})
    return found


def main() -> None:
    found = records((BENCHMARKS / "RESULTS.md").read_text())
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(found))
        return
    made = [{"benchmark": "kernel"} | record for record in found]
    with tempfile.TemporaryDirectory() as folder:
        plots.draw(made, Path(folder))
        picture = (Path(folder) / "crossover.svg").read_text()
    (BENCHMARKS / "crossover.svg").write_text(re.sub(r"\s*<dc:date>.*?</dc:date>", "", picture))


if __name__ == "__main__":
    main()
