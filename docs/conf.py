"""Settings of the documentation: MyST pages, numpydoc docstrings, the PyData theme."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from daskcluster import __version__

project = "daskcluster"
author = "The daskcluster developers"
copyright = author  # the name that Sphinx asks for
release = version = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

default_role = "code"  # `name` in a docstring

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks have their outputs, which ci/notebooks writes
nb_merge_streams = True

EXAMPLES = Path(__file__).parents[1] / "examples"
#: The picture of a notebook that the gallery shows, the first one where nothing else is said.
PICTURES = {"ensemble_and_agreement": 1}

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types that a docstring states
# A class page lists the methods that _templates/class.rst names; scikit-learn documents its own.
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"daskcluster {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["notebooks.css"]
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


def list_for_machines(folder: Path) -> str:
    """The pages with what the front page says of each, in the form of llms.txt: https://llmstxt.org."""
    front = (folder / "index.md").read_text(encoding="utf-8")
    claim = " ".join(re.search(r"^# daskcluster\n\n(.+?)\n\n", front, re.DOTALL)[1].split())
    entries = re.findall(r"^- \{doc\}`(\w+)`: ((?:.+\n)(?:  .+\n)*)", front, re.MULTILINE)
    lines = [f"- [{_title(folder, name)}]({name}.html): {' '.join(text.split())}" for name, text in entries]
    claim = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", claim)
    return "\n".join([f"# {project}", "", f"> {claim}", "", "## Docs", "", *lines, ""])


def _title(folder: Path, name: str) -> str:
    page = next(path for path in (folder / f"{name}.md", folder / f"{name}.rst") if path.exists())
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def write_list_for_machines(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        Path(app.outdir, "llms.txt").write_text(list_for_machines(Path(app.srcdir)), encoding="utf-8")


def take_notebooks(app: Any, config: Any) -> None:
    """Copy the notebooks beside the pages, since Sphinx reads no others, each with a picture for the gallery."""
    folder = Path(__file__).parent / "examples"
    folder.mkdir(exist_ok=True)
    for source in EXAMPLES.glob("*.ipynb"):
        text = source.read_text(encoding="utf-8")
        write_if_changed(folder / source.name, text.encode())
        cells = json.loads(text)["cells"]
        shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
        pictures = [data["image/png"] for data in shown if "image/png" in data]
        if pictures:
            write_if_changed(folder / f"{source.stem}.png", base64.b64decode(pictures[PICTURES.get(source.stem, 0)]))


def write_if_changed(path: Path, data: bytes) -> None:
    if not path.exists() or path.read_bytes() != data:  # else Sphinx reads it again
        path.write_bytes(data)


def setup(app: Any) -> None:
    app.connect("config-inited", take_notebooks)
    app.connect("build-finished", write_list_for_machines)
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=900)  # after numpydoc
