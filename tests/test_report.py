"""The page about a model: one file, with what came out, pictures, and how to load it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.report import html_outcome, write_run_report
from daskcluster.runtime.standing import describe_run
from tests.browser import Seen, browser_pages
from tests.cli.calls import as_json, fail
from tests.estimators.cases import BLOBS, TRUTH, every, of_ids
from tests.slow import slowly

pytest.importorskip("matplotlib").use("Agg")


class Page(HTMLParser):
    """What a reader, and a program that reads aloud, finds in a page."""

    EMPTY: ClassVar = {"meta", "img", "br"}

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text, self.tags = "", list[tuple[str, dict[str, str | None]]]()
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def attributes(self, tag: str, name: str) -> list[str | None]:
        return [attributes.get(name) for found, attributes in self.tags if found == tag]


@every(of_ids("USPEC", "USENC", "KMeans-weights", "SEC", "CSPML", "FastCSC"))
def test_a_page_about_each_estimator(case, tmp_path):
    model = case.fit()
    model.report(tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    assert f"{type(model).__name__}: {model.n_clusters_} clusters" in page.text
    assert "all stages" in page.text
    for name in model.get_params(deep=False):
        assert name in page.text
    sizes = np.bincount(np.asarray(model.labels_)[np.asarray(model.labels_) >= 0])
    assert f"{sizes.max():,}" in page.text
    assert 'model = dc.load_model("model.zarr")' in page.text


def test_it_can_be_read_aloud_and_asks_nothing_of_the_network(tmp_path):
    dc.USPEC(3, random_state=0).fit(BLOBS).report(tmp_path / "page.html", BLOBS, y=TRUTH, title="<b>&")
    page = Page(tmp_path / "page.html")
    assert page.attributes("html", "lang") == ["en"]
    assert all(page.attributes("img", "alt"))
    assert len(page.attributes("img", "src")) == 4
    assert all(source.startswith("data:image/png;base64,") for source in page.attributes("img", "src") if source)
    assert all(page.attributes("th", "scope"))
    assert not {"script", "link", "iframe"} & {tag for tag, _ in page.tags}
    assert not re.search(r"https?://", (tmp_path / "page.html").read_text())
    assert page.text.count("<b>&") == 2
    assert re.search(r"adjusted Rand index\s*1\.0000", page.text)


def test_labels_on_a_grid_are_a_map(tmp_path):
    xarray = pytest.importorskip("xarray")
    scene = xarray.DataArray(BLOBS.reshape(20, 30, 2), dims=("y", "x", "band"))
    classes = xarray.DataArray(TRUTH.reshape(20, 30), dims=("y", "x"))
    dc.KMeans(3, random_state=0).fit(scene).report(tmp_path / "page.html", scene, y=classes)
    page = Page(tmp_path / "page.html")
    assert any("Map of the clusters: 20 x 30 pixels" in str(text) for text in page.attributes("img", "alt"))
    assert any("Rows in the plane of their first two features" in str(text) for text in page.attributes("img", "alt"))
    assert re.search(r"adjusted Rand index\s*1\.0000", page.text)


def write_page(folder: Path, name: str) -> Path:
    """One of the pages that this package makes, or the tables of notebooks in a page."""
    path = folder / f"{name}.html"
    if name == "run":
        dc.KMeans(3, random_state=0, storage=folder / "run").fit(BLOBS)
        write_run_report(path, folder / "run", describe_run(folder / "run"), y=TRUTH)
        return path
    model = dc.USPEC(3, n_representatives=100, random_state=0).fit(BLOBS)
    if name == "page":
        model.report(path, BLOBS, y=TRUTH)
        return path
    pairs = dc.Constraints.from_pairs(must_link=[(0, 1)], cannot_link=[(0, 599)], n_samples=600)
    shown: list[Any] = [model.plan(BLOBS), model.spectrum(20), pairs, pairs.satisfaction(model.labels_)]
    tables = [each._repr_html_() for each in shown] + [html_outcome(model)]
    body = f"<main><h1>tables</h1>{''.join(tables)}</main>"
    page = f'<!doctype html><html lang="en"><head><title>tables</title></head><body>{body}</body></html>'
    path.write_text(page, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["page", *slowly("tables", "run")])
def test_a_browser_finds_nothing_to_complain_of(name, tmp_path):
    """An accessibility check finds nothing, and no network is asked."""
    with browser_pages() as see:
        assert see(write_page(tmp_path, name)) == Seen()


@pytest.mark.parametrize("page", slowly("<html><body><img src='http://127.0.0.1:9/x.png'></body></html>"))
def test_a_browser_finds_what_is_wrong(page, tmp_path):
    (tmp_path / "bad.html").write_text(page)
    with browser_pages() as see:
        bad = see(tmp_path / "bad.html")
    assert bad.requests == ["http://127.0.0.1:9/x.png"]
    assert {each.partition(":")[0] for each in bad.violations} >= {"html-has-lang", "image-alt"}


def test_an_existing_file_is_not_replaced(tmp_path):
    model = dc.KMeans(3, random_state=0).fit(BLOBS)
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(FileExistsError):
        model.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "mine"
    model.report(tmp_path / "page.html", overwrite=True)


def test_on_the_command_line(tmp_path):
    model = dc.USPEC(3, random_state=0).fit(BLOBS)
    model.save(tmp_path / "m.zarr")
    da.from_array(model.labels_).to_zarr(str(tmp_path / "l.zarr"))
    told = as_json("report", tmp_path / "m.zarr", tmp_path / "page.html", "--labels", tmp_path / "l.zarr", "--json")
    page = Page(tmp_path / "page.html")
    assert told["page"] == str(tmp_path / "page.html")
    assert f'dc.load_model("{tmp_path}/m.zarr")' in page.text
    assert "Sizes, the largest first" in page.text
    assert "--labels" in fail(2, "report", tmp_path / "m.zarr", tmp_path / "p.html", "--rows", tmp_path / "x.zarr")


def test_a_run_on_the_command_line(tmp_path):
    run, page = tmp_path / "run", tmp_path / "page.html"
    model = dc.USPEC(3, n_representatives=100, random_state=0, storage=run).fit(BLOBS)
    da.from_array(TRUTH).to_zarr(str(tmp_path / "y.zarr"))
    as_json("report", run, page, "--true", tmp_path / "y.zarr")
    found = Page(page)
    assert f"USPEC: the run in {run}" in found.text
    assert "computes nothing: all products are there" in found.text
    assert f"{np.bincount(model.labels_).max():,}" in found.text
    assert re.search(r"adjusted Rand index\s*1\.0000", found.text)
    code = found.text[found.text.index("model = dc.USPEC(") :].partition("  # the rows")[0].replace("(X)", "(BLOBS)")
    there: dict[str, Any] = {"dc": dc, "BLOBS": BLOBS}
    exec(code, there)  # what is copied from the page runs, and finds the run
    np.testing.assert_array_equal(there["model"].labels_, model.labels_)
