"""Settings of the documentation: MyST pages, numpydoc docstrings, the PyData theme."""

import re
from typing import Any

from daskcluster import __version__

project = "daskcluster"
author = "The daskcluster developers"
copyright = author  # the name that Sphinx asks for
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

default_role = "code"  # `name` in a docstring

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types that a docstring states
# A class page lists the methods that _templates/class.rst names; scikit-learn documents its own.
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"daskcluster {release}"
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}
html_sidebars = {"**": []}


def escape_fitted_names(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write `n_clusters_` in running text as text: to reStructuredText a trailing underscore is a link."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("`")
            parts[::2] = [re.sub(r"(?<![\w*.])(\w+)_(?![\w*])", r"\1\_", part) for part in parts[::2]]
            lines[i] = "`".join(parts)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=900)  # after numpydoc
