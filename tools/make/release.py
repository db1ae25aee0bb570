"""What a release consists of: wheels, source packages, locked versions, list of software (SBOM), licences; looked at.

    python -m tools.make.release --out dist

Four distributions of one version are built: the product, the laboratory, a fleet and OpenXR. The lists are the
product's, as operators install that alone. Needs hatchling and twine (`pip install hatchling twine`). The exit code
is 1 when versions differ, when a file is missing in a package, or when a package that eyestream needs does not say its
licence.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from eyestream.version import VERSION

ROOT = Path(__file__).resolve().parents[2]

IN_THE_WHEEL = (
    "eyestream/py.typed",
    "eyestream/data/sidecar.toml",
    "eyestream/data/simulation.npz",
    "eyestream/data/calibrations/everyday-klt-anchored-64.npz",
    "eyestream/data/profiles/degrees.toml",
    "eyestream/data/deployment/eyestream.service",
    "eyestream/data/deployment/raw.conf",
    "eyestream/data/deployment/private-tls.conf",
    "eyestream/data/deployment/raw-tls.conf",
)
IN_THE_SOURCES = (
    "tests/golden/index.json",
    "tests/golden/private.msgpack",
    "config/sidecar.toml",
    "config/mosquitto/plain.conf",
    "docs/protocol.md",
    "docs/deployment.md",
    "Containerfile",
    "locks/sidecar.txt",
    "LICENSE",
)


DISTRIBUTIONS = {"eyestream": ".", "eyestream-lab": "lab", "eyestream-fleet": "fleet", "eyestream-openxr": "openxr"}
"""Folder of each."""


def versions() -> dict[str, str]:
    """The version by each place that says it: distributions, what they need of one another, and the citation."""
    said = {"eyestream/version.py": VERSION}
    for folder in ("lab", "fleet", "openxr"):
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        said[f"{folder}/pyproject.toml"] = project["version"]
        needed = [Requirement(text) for text in project["dependencies"]]
        said[f"{folder}/pyproject.toml, of eyestream"] = next(
            str(one.specifier).removeprefix("==") for one in needed if one.name == "eyestream"
        )
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return said | {"CITATION.cff": re.findall(r"(?m)^version: (\S+)$", citation)[0]}


def in_the_wheel() -> dict[str, Path]:
    """What the wheel must have, by its name there: the above, and every file of the folders that go in elsewhere."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    found = {name: ROOT / name for name in IN_THE_WHEEL}
    for folder, there in build["targets"]["wheel"]["sources"].items():
        files = [path for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
        found |= {f"{there}/{path.relative_to(ROOT / folder)}": path for path in files}
    return found


def main() -> None:
    """Build everything, and look at it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")
    parser.add_argument("--list-only", action="store_true", help="write the lists of software, build nothing")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = components("eyestream")
    (options.out / "sbom.cdx.json").write_text(json.dumps(bill(parts), indent=1) + "\n")
    (options.out / "licences.txt").write_text(licences(parts))
    shutil.copy(ROOT / "locks" / "sidecar.txt", options.out)
    faults = [f"{part.name}: says no licence" for part in parts if licence(part) is None]
    if len(set(versions().values())) > 1:
        faults.append(f"versions differ: {', '.join(f'{number} in {place}' for place, number in versions().items())}")
    elif not options.list_only:
        faults += packages(options.out)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(*sorted(path.name for path in options.out.iterdir()), sep="\n")
    sys.exit(1 if faults else 0)


def packages(out: Path) -> list[str]:
    """Build a wheel and a source package of each distribution into `out`; what is wrong with the product's."""
    for folder in DISTRIBUTIONS.values():
        build = [sys.executable, "-m", "hatchling", "build", "-d", str(out.resolve())]
        subprocess.run(build, check=True, cwd=ROOT / folder)
    names = [f"{name.replace('-', '_')}-{VERSION}" for name in DISTRIBUTIONS]
    files = [file for name in names for file in (next(out.glob(f"{name}-*.whl")), out / f"{name}.tar.gz")]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    wheel, sources, *_ = files
    with zipfile.ZipFile(wheel) as packed:
        there = set(packed.namelist())
        faults = [
            f"{wheel.name}: lacks {name}, or has another one"
            for name, path in in_the_wheel().items()
            if name not in there or packed.read(name) != path.read_bytes()
        ]
    with tarfile.open(sources) as packed_sources:
        there = {name.partition("/")[2] for name in packed_sources.getnames()}
    return faults + [f"{sources.name}: lacks {name}" for name in IN_THE_SOURCES if name not in there]


def components(name: str) -> list[Distribution]:
    """The distribution `name` and all that it needs, extras left out, as they are installed here; by name."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        key = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if key in found:
            continue
        found[key] = distribution(key)
        for text in found[key].requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    return [found[key] for key in sorted(found)]


def licence(part: Distribution) -> str | None:
    """What a distribution says of its licence: an SPDX expression, or words; None when it says nothing."""
    about = part.metadata
    classified = [
        text.rpartition(" :: ")[2] for text in about.get_all("Classifier") or () if text.startswith("License")
    ]
    said = [*(about.get_all("License-Expression") or ()), ", ".join(classified), *(about.get_all("License") or ())]
    return next((text.splitlines()[0] for text in said if text), None)


def bill(parts: list[Distribution]) -> dict[str, Any]:
    """The parts as CycloneDX 1.5, without anything that depends on time or place."""
    listed = [
        {
            "type": "application" if part.name == "eyestream" else "library",
            "name": part.name,
            "version": part.version,
            "purl": f"pkg:pypi/{part.name.lower()}@{part.version}",
            "licenses": [{"license": {"name": licence(part)}}],
        }
        for part in parts
    ]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": listed}


def licences(parts: list[Distribution]) -> str:
    """A line for each part."""
    return "".join(f"{part.name} {part.version}: {licence(part)}\n" for part in parts)


if __name__ == "__main__":
    main()
