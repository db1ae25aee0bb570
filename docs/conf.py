"""The site: `nox -s site` builds it. Pages are Markdown, and the reference of the library is its docstrings.

The source is the whole checkout, so that links between its pages lead somewhere on the site, too. What stands at the
side of each page are the tables of `docs/README.md`.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from eyestream.version import VERSION

project = "eyestream"
version = release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "*.md",
    "eyestream/**.md",
    "lab/**.md",
    "fleet/**.md",
    "benchmarks/*.md",
    "examples/**.md",
]
exclude_patterns = [".*", "tests"]
suppress_warnings = ["toc.not_included"]  # decisions and pages of rooms are linked from pages that are in the tree
html_theme = "furo"
html_title = f"eyestream {VERSION}"
html_show_sphinx = html_show_copyright = False
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_member_order = "bysource"


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the first page the lists of the others: of each part of `docs/README.md` the pages that its table names."""
    if page != root_doc:
        return
    for part in Path(app.srcdir, "docs/README.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        caption = part.partition("\n")[0]
        rows = (line.split("|")[1] for line in part.splitlines() if line.startswith("| ["))
        pages = [link for row in rows for link in re.findall(r"\]\(([^)]+)\.md\)", row)]
        source[0] += "\n".join(["\n\n```{toctree}", f':caption: "{caption}"', ":hidden:", "", *pages, "```"])


def mend_barriers(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Say of which level the captions at the side are, and let keys move code that is wide (WCAG 2.1)."""
    navigation = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = navigation.replace('role="heading"', 'role="heading" aria-level="2"')
    context["body"] = context.get("body", "").replace("<pre>", '<pre tabindex="0">')


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_contents)
    app.connect("html-page-context", mend_barriers, priority=900)  # after the theme has made them
