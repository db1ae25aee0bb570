"""Random lives of a device against a naive book that keeps every slot: no ceiling is ever passed.

    python -m tools.verification.window_streams --streams 1000000

`tests.rigs.budget_lives` has the lives and the book. The last line counts the violations; exit code 1 when there
are any.
"""

import argparse
import sys

from tests.rigs.budget_lives import count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    violations = count(args.streams, args.seed)
    print(f"{args.streams} streams, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
