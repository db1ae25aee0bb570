"""The site: `nox -s site` builds it. Pages are Markdown, and the reference of the library is its docstrings.

The source is the whole checkout, so that links between its pages lead somewhere on the site, too.
"""

from eyestream.version import VERSION

project = "eyestream"
version = release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "*.md", "eyestream/**.md", "benchmarks/*.md", "examples/**.md"]
exclude_patterns = [".*", "tests"]
suppress_warnings = ["toc.not_included"]  # decisions and pages of rooms are linked from pages that are in the tree
html_theme = "furo"
html_title = f"eyestream {VERSION}"
html_show_sphinx = html_show_copyright = False
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_member_order = "bysource"
