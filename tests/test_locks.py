"""The locks are as new as `pyproject.toml`, and say everything that pip needs to install the very same files again."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import noxfile

ROOT = Path(__file__).resolve().parents[1]


def faults(text: str, asked: list[str]) -> list[str]:
    """What is wrong with a lock for the requirements `asked`: they are others, or a version is not one of theirs."""
    said = re.findall(r"^# (?!Made by)(.*)$", text, re.M)
    wrong = [f"pyproject.toml asks for {word}" for word in asked if word not in said]
    wrong += [f"pyproject.toml no longer asks for {word}" for word in said if word not in asked]
    entries = re.findall(r"^([\w.-]+)==(\S+).*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.M)
    for requirement in map(Requirement, asked):
        name = canonicalize_name(requirement.name)
        versions = [version for other, version, _ in entries if canonicalize_name(other) == name]
        if not versions or not all(requirement.specifier.contains(version) for version in versions):
            wrong.append(f"{requirement}: locked are {versions}")
    lines = sum(hashes.count("\n") + 1 for _, _, hashes in entries)
    rest = [line for line in text.splitlines() if not line.startswith("#")]
    return wrong + [f"{len(rest) - lines} lines are no version with its hashes"] * (lines != len(rest))


def lock(name: str) -> str:
    return (ROOT / "locks" / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "distributions"), noxfile.LOCKS.items())
def test_a_lock_is_not_older_than_the_project(name: str, distributions: dict[str, tuple[str, ...]]) -> None:
    assert faults(lock(name), noxfile.declared(distributions)) == [], "run `nox -s lock`"


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        (["cryptography>=43", "msgspec>=0.19", "numpy>=2.0", "pyfftw>=0.14", "six>=1"], "asks for six>=1"),
        (["cryptography>=43", "msgspec>=0.19", "numpy>=2.0"], "no longer asks for pyfftw>=0.14"),
        (["cryptography>=43", "msgspec>=0.19", "numpy>=99", "pyfftw>=0.14"], r"numpy>=99: locked are \['2"),
    ],
)
def test_a_lock_of_other_requirements_is_found(asked: list[str], fault: str) -> None:
    assert any(re.search(fault, wrong) for wrong in faults(lock("sidecar"), asked))


def test_a_version_without_its_hashes_is_found() -> None:
    text = re.sub(r"^numpy==(\S+).*\\\n(?:    --hash.*\n)+", r"numpy==\1\n", lock("sidecar"), count=1, flags=re.M)
    assert "1 lines are no version with its hashes" in faults(text, noxfile.declared({".": ()}))


def test_what_the_sidecar_needs_has_one_version_in_all() -> None:
    names = ("sidecar", "laboratory", "development")
    versions = [set(re.findall(r"^[\w.-]+==\S+", lock(name), re.M)) for name in names]
    assert versions[0] < versions[1] < versions[2]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Containerfile", "sidecar"),
        ("Containerfile", "laboratory"),
        ("docs/deployment.md", "sidecar"),
        ("tools/make/debian_package.py", "sidecar"),
        ("tools/verification/deployment_host.py", "sidecar"),
        (".ci/run", "development"),
        (".github/workflows/ci.yml", "development"),
    ],
)
def test_who_installs_takes_locked_versions_and_nothing_besides(path: str, name: str) -> None:
    """Where a lock is installed, eyestream comes after it without what pip would choose."""
    text = (ROOT / path).read_text(encoding="utf-8")
    locked = re.search(rf"--require-hashes\W.*{name}\.txt", text)
    assert locked
    assert "--no-deps" in text[locked.end() :]
