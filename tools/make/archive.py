"""A frozen archive of code, cells and report of a study, for a paper or a repository of research data.

python -m tools.make.archive STUDY_DIR --out FILE.tar.gz

The code is what git has at HEAD; a working tree that differs is refused, for the archive would not say what was run. Of
the study come its report, tables, figures, settings, calibrations and finished cells; recordings never do. MANIFEST.txt
has the SHA-256 of every file and the commit. The same commit and study give the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("settings.json", "cells")
TAKEN = ("settings.json", "report.html", "cells", "csv", "figures", "calibrations")


def git(root: Path, *words: str) -> bytes:
    """What git says, or the end of the program with its words."""
    told = subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=False)
    if told.returncode:
        sys.exit(f"archive: git {words[0]}: {told.stderr.decode().strip()}")
    return told.stdout


def code(root: Path) -> dict[str, bytes]:
    """Every file at HEAD, under code/."""
    if changed := git(root, "status", "--porcelain").decode().splitlines():
        sys.exit(f"archive: {len(changed)} files differ from HEAD ({changed[0].strip()}): commit them first")
    with tarfile.open(fileobj=io.BytesIO(git(root, "archive", "--format=tar", "HEAD"))) as packed:
        return {f"code/{m.name}": packed.extractfile(m).read() for m in packed.getmembers() if m.isfile()}  # type: ignore[union-attr]


def study(folder: Path) -> dict[str, bytes]:
    """What is taken of a study, under study/."""
    for name in NEEDED:
        if not (folder / name).exists():
            sys.exit(f"archive: {folder} has no {name}: expected the folder of a finished study")
    files = [path for name in TAKEN for path in sorted((folder / name, *(folder / name).rglob("*"))) if path.is_file()]
    return {f"study/{path.relative_to(folder)}": path.read_bytes() for path in files}


def packed(files: dict[str, bytes], commit: str, seconds: int) -> bytes:
    """The archive; nothing of this machine is in it."""
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    whole = files | {"MANIFEST.txt": f"commit {commit}\n{sums}".encode()}
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, filename="") as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as archive,
    ):
        for name, data in sorted(whole.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), seconds, 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: this one)")
    options = parser.parse_args()
    if options.out.exists():
        sys.exit(f"archive: {options.out} exists already: an archive is never overwritten")
    files = code(options.root) | study(options.study)
    commit, seconds = git(options.root, "log", "-1", "--format=%H %ct").decode().split()
    made = packed(files, commit, int(seconds))
    options.out.write_bytes(made)
    print(f"{options.out}: {len(files)} files, {len(made)} bytes, SHA-256 {hashlib.sha256(made).hexdigest()}")


if __name__ == "__main__":
    main()
