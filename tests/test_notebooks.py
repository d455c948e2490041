"""The notebooks of examples/: each runs in a kernel, shows what it holds, and stands in the gallery."""

from __future__ import annotations

import json
import re

import pytest

from tests.notebooks import CHECKOUT, MEASURED, NOTEBOOKS, differences, load, run_notebook
from tests.slow import slowly

#: Bytes of a notebook with its pictures, at most.
MOST_BYTES = 300_000
#: Lines from a scene to its map.
MOST_LINES = 6
#: Runs by default, with the progress of a fit; the others need the same kernel, and more time.
FAST = {"first_steps"}

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def outputs(path):
    return [output for cell in code_cells(path) for output in cell["outputs"]]


@pytest.mark.parametrize(
    "path",
    [each for path in NOTEBOOKS for each in ([path] if path.stem in FAST else slowly(path))],
    ids=[path.stem for path in NOTEBOOKS],
)
def test_a_notebook_runs_and_shows_what_it_holds(path, tmp_path):
    new = run_notebook(path, tmp_path)
    assert not differences(load(path), new)
    if path.stem in FAST:
        # Each stage has a bar that has ended, which a page exported from the notebook shows as well.
        (page,) = [
            output.data["text/html"]
            for cell in new.cells
            for output in cell.get("outputs", ())
            if "<progress" in output.get("data", {}).get("text/html", "")
        ]
        assert page.count("<progress") == page.count('value="1.000"') == 6


@each_notebook
def test_a_notebook_holds_outputs_that_anyone_may_see(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    assert [cell["execution_count"] for cell in code_cells(path)] == list(range(1, 1 + len(code_cells(path))))
    shown = outputs(path)
    assert shown
    assert not [output for output in shown if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert not re.search(r"Warning|Traceback|/(?:home|tmp|root|work|Users|var|site-packages)/", text)
    for output in shown:
        assert output["output_type"] == "stream" or output["data"]["text/plain"]
        assert "image/svg+xml" not in output.get("data", {})


def test_few_lines_lead_from_a_scene_to_its_map():
    (cell,) = [
        cell
        for cell in code_cells(CHECKOUT / "examples" / "raster.ipynb")
        if "scene-to-map" in cell["metadata"].get("tags", ())
    ]
    lines = [line for line in cell["source"] if line.strip()]
    assert lines[-1].startswith("dc.plotting.plot_label_map(")
    assert len(lines) <= MOST_LINES
    assert any("image/png" in output["data"] for output in cell["outputs"])


def test_a_killed_run_tells_of_its_stages_line_by_line():
    cells = code_cells(CHECKOUT / "examples" / "killed_run.ipynb")
    lines = MEASURED.sub("-", "".join(cells[1]["outputs"][0]["text"])).splitlines()
    assert lines == ["check and sample: -", "representatives: -", "exit code -9"]
    assert "resumed: products of " in "".join(cells[2]["outputs"][0]["data"]["text/plain"])


@each_notebook
def test_a_notebook_is_in_the_gallery(path):
    gallery = (CHECKOUT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert f"](examples/{path.name})" in gallery
    assert f"\nexamples/{path.stem}\n" in gallery


def test_what_a_cell_shows_is_compared():
    import nbformat

    def notebook(text, tags=()):
        cell = nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("stream", text=text)])
        cell.metadata["tags"] = list(tags)
        return nbformat.v4.new_notebook(cells=[cell])

    held = notebook("labels 0.25 s, 12 MiB, score 0.900")
    assert not differences(held, notebook("labels 13.10 s, 1,012 KiB, score 0.905".replace("KiB", "kiB")))
    assert differences(held, notebook("labels 0.25 s, 12 MiB, score 0.800"))
    assert differences(held, notebook("label 0.25 s, 12 MiB, score 0.900"))
    assert not differences(held, notebook("else", ["varies"]))
