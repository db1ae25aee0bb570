"""The site: it builds without a warning, no link on it is dead, and a reader who cannot see it finds the way."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

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


def test_each_public_name_is_in_the_reference(site: dict[Path, Page]) -> None:
    import eyestream

    [api] = [page for page in site.values() if page.path.name == "api.html"]
    missing = [name for name in eyestream.__all__ if f"eyestream.{name}" not in api.names]
    assert [name for name in missing if f"eyestream.errors.{name}" not in api.names] == []
