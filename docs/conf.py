"""The configuration of the documentation site. `tox -e docs` builds it; every warning is an error."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference  # writes the pages that are generated from the code

project, author = "Stele", "the Stele authors"
release = version = metadata.version("pytest-stele")
extensions = ["myst_parser", "sphinx_argparse_cli"]
exclude_patterns = ["generated", "results/gates"]
myst_heading_anchors = 3
nitpicky = True
html_theme, html_title = "furo", "Stele"
html_static_path: list[str] = []
highlight_language = "none"
suppress_warnings = ["myst.header"]  # headings of pages of results that are generated start at level 3

reference.write(Path(__file__).parent / "generated")
