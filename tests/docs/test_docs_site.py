"""The site: it builds without a warning, no link on it is dead, and a reader who cannot see it finds the way."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.docs.test_docs_api import PUBLIC
from tests.rigs.browser import opened_browser

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.needs("site")]


class Page(HTMLParser):
    """Links, names, pictures and headings of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.names: set[str] = set()
        self.headings: list[int] = []
        self.pictures: list[str | None] = []
        self.language: str | None = None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if known.get("id"):
            self.names.add(known["id"] or "")
        if tag == "a" and known.get("href"):
            self.links.append(known["href"] or "")
        if tag == "img":
            self.pictures.append(known.get("alt"))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "html":
            self.language = known.get("lang")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    folder = tmp_path_factory.mktemp("site")
    words = [
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        "docs",
        "-d",
        str(folder / "trees"),
        "-b",
        "html",
        ".",
        "to",
    ]
    words[-1] = str(folder / "html")
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [path for path in (folder / "html").rglob("*.html") if path.name not in {"search.html", "genindex.html"}]
    return {path: Page(path) for path in found}


def test_no_link_is_dead(site: dict[Path, Page]) -> None:
    assert len(site) > 40
    dead = []
    for page in site.values():
        for link in page.links:
            place, name = urldefrag(link)
            if "://" in link or place.startswith("mailto:"):
                continue
            target = (page.path.parent / unquote(place)).resolve() if place else page.path
            lost = not target.exists() or (name and target in site and unquote(name) not in site[target].names)
            dead += [(page.path.name, link)] * bool(lost)
    assert dead == []


def test_pages_can_be_heard(site: dict[Path, Page]) -> None:
    """A language, words for each picture, one first heading, and no level left out on the way down (WCAG 2.2)."""
    for page in site.values():
        assert page.language == "en", page.path
        assert all(page.pictures), page.path
        assert page.headings.count(1) == 1, page.path
        assert all(below - above <= 1 for above, below in zip(page.headings, page.headings[1:], strict=False)), (
            page.path
        )


@pytest.mark.needs("chromium")
def test_a_checker_of_accessibility_finds_nothing(site: dict[Path, Page], tmp_path: Path) -> None:
    """One page of each kind: the first one, prose, tables, code, the reference."""
    with opened_browser(tmp_path) as browser:
        for name in ("index", "concepts", "configuration", "tutorial-application", "api"):
            [page] = [path for path in site if path.name == f"{name}.html" and path.parent.name == "docs"]
            browser.open(page.as_uri())
            assert browser.barriers() == [], page


def test_each_public_name_is_in_the_reference(site: dict[Path, Page]) -> None:
    [api] = [page for page in site.values() if page.path.name == "api.html"]
    last = {name.rpartition(".")[2] for name in api.names if name.startswith("eyestream")}
    values = {"ROWS", "MAPS", "FIXATIONS", "SYSTEMS"}  # which have no docstring of their own
    assert {name for _, name in PUBLIC} - values - last == set()


def test_the_navigation_is_the_list_of_documents(site: dict[Path, Page]) -> None:
    listed = re.findall(r"^\| (\[.*?) \|", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"), re.M)
    wanted = {link for row in listed for link in re.findall(r"\]\(([^)]+)\.md\)", row)}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - wanted == {"README", "index"}
    for name in ("index", "faq"):
        [page] = [
            page for page in site.values() if page.path.name == f"{name}.html" and page.path.parent.name == "docs"
        ]
        shown = {link.removesuffix(".html") for link in page.links} | ({"faq"} if name == "faq" else set())
        assert wanted - shown == set()
