"""Sphinx: the documentation, built from this folder and, its reference, from the code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import grid  # noqa: E402

project = "Grid emulator"
author = "The Grid emulator project"
version = release = grid.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["deflist", "attrs_inline", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Grid emulator"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_copyright = False
nitpicky = True
# Types of libraries whose documentation is not at hand without a network.
nitpick_ignore_regex = [("py:(class|data|obj)", ".*")]
default_role = "literal"
# Options such as --set are to be pasted as they stand.
smartquotes = False
autodoc_preserve_defaults = True


def setup(app: Any) -> None:
    """Make the pages that come from the code and from the notebooks before any are read."""
    import notebook_pages
    import paper_pages
    import reference_pages

    def make(_: Any) -> None:
        reference_pages.write(HERE)
        notebook_pages.write(HERE)
        paper_pages.write_paper_pages(HERE)

    app.connect("builder-inited", make)
