"""Documents name what exists: links, files of the repository, commands; and the README's figures are the program's."""

import json
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import eyestream
from eyestream.cli.main import commands
from eyestream.ops.asked_sets import recognised_by
from eyestream.rim.config import load
from eyestream.rim.config.purposes import load_table
from eyestream.rim.plan import resolved

ROOT = Path(__file__).parents[2]
FOLDERS = ("eyestream", "lab", "fleet", "tests", "tools", "benchmarks", "docs", "config", "examples", "unity")
PAGES = sorted(
    page
    for folder in (".", "docs/**", "benchmarks", "eyestream/**", "lab/**", "fleet/**", "examples/**", "unity/**")
    for page in ROOT.glob(f"{folder}/*.md")
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
FLAT = " ".join(README.split())


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s:]*\.md|)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if link[1] not in anchors(page.parent / link[0] if link[0] else page)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    past = r"^## \d+\.\d+\.\d+\b.*"  # a version that is out names its own files
    text = re.sub(past, "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    paths = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./*-]*)`", text)
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_that_are_named_exist(page: Path) -> None:
    assert set(re.findall(r"(?:`|^)eyestream ([a-z][a-z-]*)\b", page.read_text(encoding="utf-8"), re.M)) <= set(
        commands()
    )


def test_there_are_pages_to_look_at() -> None:
    assert {"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/protocol.md"} <= set(
        map(name_of, PAGES)
    )


def test_the_source_package_has_the_documents() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    assert {"docs", "examples", *(path.name for path in ROOT.glob("*.md")), "CITATION.cff"} <= included


def test_version_of_the_citation() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.M)[1] == version("eyestream")  # type: ignore[index]


def test_hours_of_the_usual_configuration() -> None:
    settings = load(ROOT / "config" / "sidecar.toml")
    (stream,) = settings.stream
    assert stream.rate_hz is not None
    chunk_s = eyestream.load_calibration(stream.privacy.calibration).n / stream.rate_hz
    for ceiling, unit in ((settings.budget.session_epsilon, "a session"), (settings.budget.day_epsilon, "a day")):
        minutes = int(ceiling / stream.privacy.epsilon + 1e-9) * chunk_s // 60
        assert re.search(rf"{minutes // 60:.0f} h {minutes % 60:02.0f} min (of releases )?{unit}", FLAT)


def test_what_comes_through_in_the_usual_configuration() -> None:
    """Of the price that `init` writes, as it was measured."""
    stream = resolved(load(ROOT / "config" / "sidecar.toml")).streams["features"]
    minute, named = stream.mechanism.epsilon * 60 / stream.chunk_s, stream.settings.privacy.calibration
    measured = next(
        row for row in load_table()["rows"] if row["calibration"] == named and row["minute"] == pytest.approx(minute)
    )
    assert f"All 52 at once, for research: R² of {measured['middle_own']:.2f} for the median feature" in FLAT
    area, low, high = (f"{measured[key]:.2f}" for key in ("area", "area_low", "area_high"))
    assert f"With all 52: {area} [{low}, {high}]" in FLAT


def test_what_asked_features_are_said_to_give_is_what_was_measured() -> None:
    """The range of each number of features, in the first columns of figures of two tables of docs/figures.md."""
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    found: dict[int, list[float]] = {}
    for names, figures in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| \*\*([.\d, ]+)\*\* \|", page, re.MULTILINE):
        found.setdefault(names.count("`") // 2, []).extend(float(figure) for figure in figures.split(", "))
    one, two, three = (found[count] for count in (1, 2, 3))
    said = f"{min(one):.2f} to {max(one):.2f}, two at {min(two):.2f} to {max(two):.2f}, three at {min(three):.2f}"
    assert f"one asked feature correlates with the truth at {said}" in FLAT
    _, _, larger = page.partition("### At a larger epsilon")
    found.clear()
    for figures in re.findall(r"^\| `\w+` \| ([.\d, ]+) \|", larger.partition("### Who")[0], re.MULTILINE):
        found.setdefault(figures.count(",") + 1, []).extend(float(figure) for figure in figures.split(", "))
    one, two, three = (found[count] for count in (1, 2, 3))
    said = f"{min(one):.2f} to {max(one):.2f}, {min(two):.2f} to {max(two):.2f}, {min(three):.2f}"
    assert f"At twice the epsilon a minute: {said}" in FLAT


def test_what_asked_features_are_said_to_tell_of_people_is_what_was_measured() -> None:
    """At the default's 9 a minute, without blinks and pupils and with them."""
    attacks = json.loads((ROOT / "lab" / "eyestream_lab" / "data" / "asked.json").read_text(encoding="utf-8"))
    areas: dict[bool, list[float]] = {False: [], True: []}
    for one in attacks:
        if one["minute"] == 9:
            areas[" are a trait: " in recognised_by(one["features"])].append(one["area"])
    plain, trait = (f"{min(found):.2f} to {max(found):.2f}" for found in areas.values())
    assert f"AUC of the strongest of {attacks[0]['attackers']} attackers: with asked features {plain}, " in FLAT
    assert f"blink habits and pupils, which are a trait, {trait}." in FLAT


def test_lengths_of_the_examples() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    said = re.findall(r"`(examples/\S+\.py)` is a whole one in (under )?(\d+) lines", text)
    assert len(said) == 4
    for path, under, lines in said:
        count = len((ROOT / path).read_text().splitlines())
        assert count < int(lines) if under else count == int(lines)
