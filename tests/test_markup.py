"""What notebooks show of plans, models, constraints and numbers of clusters: tables, with all names escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import dask
import dask.array as da
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.markup import Markup, html_lines, html_table
from tests.estimators.cases import BLOBS

BAD = "<script>alert('&')</script>"


def cells(page: str) -> list[list[str]]:
    """Text of each row of the tables of a page, which must close all that it opens."""
    rows: list[list[str]] = []
    opened: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag != "br":
                opened.append(tag)
            if tag == "tr":
                rows.append([])
            elif tag in ("td", "th"):
                rows[-1].append("")

        def handle_endtag(self, tag):
            assert opened.pop() == tag

        def handle_data(self, data):
            if opened[-1:] in (["td"], ["th"]):
                rows[-1][-1] += data

    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not opened
    return rows


def fit(**parameters):
    return dc.USPEC(**{"n_clusters": 3, "n_representatives": 60, "random_state": 0} | parameters)


def test_a_table_escapes_all_but_markup():
    page = html_table([(BAD, "1"), ("b", Markup("<b>2</b>"))], (BAD, BAD), BAD) + html_lines([BAD, BAD])
    assert "<script" not in page
    assert cells(page)[:2] == [[BAD, BAD], [BAD, "1"]]
    assert "<td><b>2</b></td>" in page


def test_a_plan():
    plan = replace(fit().plan(BLOBS), method=BAD)
    page = plan._repr_html_()
    assert "<script" not in page
    assert [row[0] for row in cells(page)] == ["stage", *(stage.name for stage in plan.stages)]
    assert "peak memory of a worker" in page


def test_numbers_of_clusters():
    spectrum = fit().fit(BLOBS).spectrum(6)
    table = cells(spectrum._repr_html_())
    assert [row[0] for row in table] == ["k", *"123456"]
    assert [row[0] for row in table if row[-1] == "<"] == ["3"]
    assert [line.split() for line in str(spectrum).splitlines()[2:]] == [list(filter(None, row)) for row in table[1:]]


@pytest.mark.parametrize(
    ("made", "title", "table"),
    [
        (
            dc.Constraints.from_labels([0, -1, 4, 4]),
            "partial labels of 4 rows",
            [["rows with one", "3"], ["classes", "2"]],
        ),
        (
            dc.Constraints.from_labels([0, -1, 4, 4], weight=[0.5, 1, 0.25, 1]),
            "partial labels of 4 rows",
            [["rows with one", "3"], ["classes", "2"], ["weights", "one a row, weights from 0.25 to 1"]],
        ),
        (
            dc.Constraints.from_groups([7, 7, np.nan], weight=0.5),
            "groups of 3 rows",
            [["rows with one", "2"], ["groups", "1"], ["weights", "0.5 each"]],
        ),
        (
            dc.Constraints.from_pairs([(0, 1), (1, 2)], [(0, 3)], cannot_link_weight=0.5),
            "pairs<",
            [["must-links", "2"], ["cannot-links", "1, weight 0.5"]],
        ),
        (dc.Constraints.from_pairs(), "pairs<", [["must-links", "0"], ["cannot-links", "0"]]),
    ],
    ids=["labels", "weighted-labels", "groups", "pairs", "none"],
)
def test_constraints(made, title, table):
    page = made._repr_html_()
    assert f"Constraints: {title}" in page
    assert cells(page)[1:] == table


@pytest.fixture
def nothing_computes():
    def refuse(*arguments, **more):
        pytest.fail("it computes")

    with dask.config.set(scheduler=refuse):
        yield


def test_chunked_constraints_are_not_read(nothing_computes):
    made = dc.Constraints.from_labels(da.zeros(9, int, chunks=3), weight=np.ones(9))
    assert cells(made._repr_html_())[1:] == [
        ["rows with one", "not counted: in 3 chunks, which a fit reads"],
        ["weights", "one a row"],
    ]


def test_satisfaction():
    kept = dc.Constraints.from_pairs([(0, 1), (1, 2)]).satisfaction([0, 0, 1])
    assert cells(kept._repr_html_())[1:] == [["must-link", "2", "50.00%"], ["cannot-link", "0", ""]]


def test_a_model_says_what_came_out():
    model = fit()
    assert "What came out" not in model._repr_html_()
    model.fit(BLOBS)
    page = model._repr_html_()
    page = page[page.index("<table><caption") :]
    assert model._repr_mimebundle_()["text/html"].endswith(page)
    assert f'<th scope="row" style="text-align: left">rows</th><td>{len(BLOBS):,}</td>' in page
    table = dict(row[:2] for row in cells(page))
    assert table["clusters"] == "3"
    assert {"time of all stages", "peak memory, planned"} <= table.keys()
    sizes = sorted(np.bincount(model.labels_), reverse=True)
    assert [int(table[name]) for name in sorted(set("012"), key=lambda name: -int(table[name]))] == sizes


def test_sizes_of_lazy_labels_are_not_counted(request):
    model = fit().fit(da.from_array(BLOBS, chunks=(200, 2)))
    request.getfixturevalue("nothing_computes")
    page = model._repr_html_()
    assert "lazy; model.report counts them" in page
    assert "Sizes" not in page


def test_names_in_a_model_are_escaped(tmp_path):
    pandas = pytest.importorskip("pandas")
    folder = str(tmp_path / BAD.replace("/", "|"))
    model = fit(storage=folder).fit(pandas.DataFrame(BLOBS, columns=[BAD, "b"]))
    model._record.seconds.append((BAD, 1.0))
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "alert(" in page
        assert not re.search(r"<script>alert", page)
    assert not re.search(r"<script>alert", fit(storage=folder)._repr_html_())
