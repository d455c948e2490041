"""What `ci/reproduce` does with draws that are there: keep, compare, mark, print."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskcluster as dc
from ci.reproduction import __main__ as command
from ci.reproduction.compare import compare, find_reason, load_reasons, mark_of
from ci.reproduction.ensembles import kmeans_pool
from ci.reproduction.papers.fast_csc_and_secrp_2017 import SampledFastCSC
from ci.reproduction.papers.uspec_usenc_2019 import Settings, settings_of
from ci.reproduction.pictures import draw_figure
from ci.reproduction.plan import draws_of, efforts_of, load_plan
from ci.reproduction.printed import printed
from ci.reproduction.records import Record, Records
from ci.reproduction.report import cells_of, count, summary, text_of, write_index, write_page
from ci.reproduction.scores import scores
from ci.reproduction.values import Experiment, Paper, Published, Table, set_of
from ci.reproduction.worker import load_paper
from tests.reproduction.small_table import nothing, table

PAPERS = command.paper_names()
ROOT = Path(__file__).parents[2]


def test_printed_values():
    found = printed("X 66.66±1.76 0.5 N/A\nY — 1 2", ("a", "b", "c"))
    assert found == {
        ("a", "X"): Published(66.66, 1.76),
        ("b", "X"): Published(0.5),
        ("b", "Y"): Published(1.0),
        ("c", "Y"): Published(2.0),
    }
    with pytest.raises(ValueError, match="longer"):
        printed("X 1 2", ("a",))


def test_marks():
    fifty = Published(50.0, 1.0)
    assert mark_of(None, None, fifty, "", 2) == "."
    assert mark_of(None, None, fifty, "time limit", 2) == "x"
    assert mark_of(None, None, None, "time limit", 2) == "x"
    assert mark_of(None, None, None, "", 2, none=True) == "N"
    assert mark_of(40.0, 1.0, None, "", 2, none=True) == "o"
    assert mark_of(40.0, 1.0, None, "", 2) == "o"
    assert mark_of(50.0, None, fifty, "", 2) == "1"
    assert mark_of(51.9, 1.0, fifty, "", 2) == "="
    assert mark_of(52.1, 1.0, fifty, "", 2) == "+"
    assert mark_of(47.9, 1.0, fifty, "", 2) == "-"
    assert mark_of(50.004, 0.0, fifty, "", 2) == "="  # the same when printed
    assert mark_of(50.006, 0.0, fifty, "", 2) == "+"


def test_draws_are_kept_and_torn_lines_are_not(tmp_path):
    records = Records(tmp_path, "paper", "methods")
    records.add(Record("a", "X", 1, False, {"NMI": 0.5}))
    records.add(Record("a", "X", 0, False, failed="time limit (1 s)"))
    with records.path.open("a") as file:
        file.write('{"system": "a", "col')
    again = Records(tmp_path, "paper", "methods")
    again.add(Record("a", "X", 0, False, {"NMI": 0.4}))
    found = Records(tmp_path, "paper", "methods").of("a", "X", False)
    assert [record.draw for record in found] == [0, 1]
    assert found[0].metrics == {"NMI": 0.4}
    assert Records(tmp_path, "paper", "methods").of("a", "X", True) == []


def filled(folder: Path, values: list[float], **more: Any) -> Any:
    records = Records(folder, "paper", "methods")
    for number, value in enumerate(values):
        records.add(Record("a", "TB-1M", number, False, {"NMI": value, "accuracy": 0.3, "seconds": 2.0, "cost": 2.0}))
    records.add(Record("b", "TB-1M", 0, False, failed="out of memory"))
    return compare(table(**more), records, False, {"a | *": "an experiment"})


def test_a_cell_by_hand(tmp_path):
    """46, 48, 50: mean 48, deviation 2, standard error 2 / sqrt(3); 50 is sqrt(3) of it away."""
    a, b, c = filled(tmp_path, [0.46, 0.48, 0.50], also=("accuracy",))
    assert (a.ours, a.spread, a.draws, a.seconds) == (pytest.approx(48), pytest.approx(2), 3, pytest.approx(2))
    assert a.errors == pytest.approx(-(3**0.5))
    assert (a.mark, b.mark, c.mark) == ("=", "x", ".")
    assert a.also == {"accuracy": pytest.approx(30)}


def test_how_far_a_cell_is_apart(tmp_path):
    """Ten errors are said, a thousand are not: of few draws the error may be next to nothing."""
    near, far = filled(tmp_path / "near", [0.40, 0.42])[0], filled(tmp_path / "far", [0.40, 0.4001])[0]
    assert [cells_of(table(), cell)[5] for cell in (near, far)] == ["-9.0", "beyond -50"]
    alike = filled(tmp_path / "alike", [0.50003, 0.50004])[0]  # 50.0035 is 50.00, though seven errors away
    assert (cells_of(table(), alike)[5], alike.mark) == ("", "=")


def test_reasons():
    reasons = {"a | X": "cell", "a | *": "row", "* | X": "column"}
    assert [find_reason(reasons, *cell) for cell in (("a", "X"), ("a", "Y"), ("b", "X"), ("b", "Y"))] == [
        "cell",
        "row",
        "column",
        "",
    ]


def test_a_section_of_several_tables(tmp_path):
    (file := tmp_path / "reasons.toml").write_text('["p/4, 5"]\n"a | X" = "both"\n["p/5"]\n"b | X" = "one"\n')
    assert load_reasons(file) == {"p/4": {"a | X": "both"}, "p/5": {"a | X": "both", "b | X": "one"}}


def test_reasons_name_cells_that_there_are():
    for section, cells in load_reasons(command.HERE / "reasons.toml").items():
        paper, _, number = section.removesuffix(command.FULL).partition("/")
        tables = [one for one in load_paper(paper).tables if one.number == number]
        assert tables, section
        for cell in cells:
            system, _, column = cell.partition(" | ")
            assert cells[cell].partition(":")[0] in ("reached", "in part", "not settled", "not explained"), cell
            assert system in {"*", *(name for one in tables for name in one.systems)}, cell
            assert column in {"*", *(name for one in tables for name in one.columns)}, cell


def test_draws_by_the_plan():
    plan = {"p/e": {"a | X @ 1": 4, "a | X": 5, "* | X @ 1": 6, "* | X": 7, "a | *": 8, "*": 9}}
    cells = [("a", "X @ 1"), ("a", "X @ 2"), ("b", "X @ 1"), ("b", "X @ 2"), ("a", "Y"), ("b", "Y")]
    assert [draws_of(plan, "p", "e", *cell) for cell in cells] == [4, 5, 6, 7, 8, 9]
    assert draws_of(plan, "p", "other", "a", "X") == 3


def test_the_plan_names_what_there_is():
    """A misspelt name would leave a cell with the draws of all others."""
    for section, cells in load_plan(command.HERE / "plan.toml").items():
        name, _, experiment = section.partition("/")
        tables = [one for one in load_paper(name).tables if one.experiment.name == experiment]
        systems = {"*", *(system for one in tables for system in one.systems)}
        columns = {column for one in tables for column in one.columns}
        columns |= {"*", *map(set_of, columns)}
        assert tables, section
        for cell in cells:
            system, _, column = cell.partition(" | ")
            assert system in systems, cell
            assert (column or "*") in columns, cell


def test_what_falls_short_says_why_or_that_nobody_knows(tmp_path):
    cells = filled(tmp_path, [0.40, 0.41])
    assert (cells[0].mark, cells[0].reason) == ("-", "an experiment")
    within = filled(tmp_path / "within", [0.46, 0.48, 0.50])
    assert (within[0].mark, within[0].reason) == ("=", "")
    unexplained = compare(table(), Records(tmp_path, "paper", "methods"), False, {})
    assert unexplained[0].reason == "not explained"


def test_pages(tmp_path):
    paper = Paper("paper", "A paper", (table(),), {"Y": "a public name"})
    cells = filled(tmp_path, [0.46, 0.48, 0.50])
    shown = text_of(paper, (table(), cells))
    assert "50.00 ± 1.00" in shown
    assert "48.00 ± 2.00" in shown
    assert "Not run: TB-1M: c." in shown
    left = compare(table(none={("c", "TB-1M")}), Records(tmp_path, "paper", "methods"), False, {})
    assert text_of(paper, (table(), left)).splitlines()[-1] == "Not run, nor in the paper: TB-1M: c."
    assert not any(line.startswith(".") for line in text_of(paper, (table(metric="seconds"), cells)).splitlines())
    assert summary([(table(), cells)]).startswith("3 cells: 1 within two standard errors of ours; 1 no labels")
    write_page(tmp_path, paper, [(table(), cells)], [])
    plan = {"paper/methods": {"c | *": 0}}
    write_index(tmp_path, [(paper, [(table(), cells)])], {"paper": efforts_of(paper, plan, tmp_path)})
    page = (tmp_path / "paper.md").read_text()
    assert "| TB-1M | a | 50.00 ± 1.00 | 48.00 ± 2.00 | 3 | -1.7 | 2.00 |  | = |" in page
    assert "Y (a public name)" in page
    assert "| {doc}`paper` | 3 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 1 |" in (index := (tmp_path / "index.md").read_text())
    assert "| paper | methods | table 4 | 2 | 1 | 6 | 1 |" in index  # a: three draws of 2 s; b: a draw without seconds


def test_draws_at_the_papers_sizes_stand_beside_those_of_few_rows(tmp_path, monkeypatch):
    reasons = {"paper/4": {"a | *": "reached: few"}, "paper/4 at the paper's sizes": {"a | *": "reached: many"}}
    monkeypatch.setattr(command, "load_reasons", lambda path: reasons)
    paper = Paper("paper", "A paper", (table(), table(number="5", metric="purity")))
    filled(tmp_path, [0.40, 0.42])
    for number in range(2):
        Records(tmp_path, "paper", "methods").add(Record("a", "TB-1M", number, True, {"NMI": 0.45}))
    found = command.filled_in_full(paper, tmp_path)
    assert [(one.number, one.full, len(cells)) for one, cells in found] == [
        ("4", False, 3),
        ("4", True, 2),
        ("5", False, 3),
    ]
    write_index(tmp_path, [(paper, found)], {})
    index = (tmp_path / "index.md").read_text()
    assert "| {doc}`paper` | 6 | 0 | 0 | 1 |" in index
    assert "Of the cells below 2 reached." in index
    assert "| {doc}`paper`, synthetic sets at the paper's sizes | 2 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |" in index
    assert [found[0][1][0].ours, found[1][1][0].ours] == pytest.approx([41, 45])
    assert [found[0][1][0].reason, found[1][1][0].reason] == ["reached: few", "reached: many"]


def test_a_cell_counts_once(tmp_path):
    """In a table and a figure of the same draws, with the value that is printed; sizes of sets are no result."""
    cells = filled(tmp_path, [0.46, 0.48, 0.50])
    figure = replace(table(), kind="figure", number="1", published={})
    bare = compare(figure, Records(tmp_path, "paper", "methods"), False, {})
    sizes = replace(table(), result=False, metric="size"), cells
    assert [cell.mark for cell in bare] == ["o", "x", "."]
    expected = {"=": 1, "x": 1, ".": 1}
    assert count([(table(), cells), (figure, bare), sizes]) == expected
    assert count([(figure, bare), sizes, (table(), cells)]) == expected
    in_full = replace(table(), full=True), cells[:1]
    assert count([(table(), cells), in_full]) == expected | {"=": 2}


def test_a_figure_over_two_parameters_is_a_grid(tmp_path):
    columns = tuple(f"X @ {first}, {second}" for first in (0.1, 1) for second in (2, 3))
    figure = Table("2", "", Experiment("methods", nothing), "NMI", ("a",), columns, kind="figure", grid=("one", "two"))
    records = Records(tmp_path, "paper", "methods")
    for number, column in enumerate(columns[:3]):
        records.add(Record("a", column, 0, False, {"NMI": number / 8}))
    assert draw_figure(tmp_path, Paper("paper", "", (figure,)), figure, compare(figure, records, False, {}))
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "paper-figure-2.svg").read_text())
    assert drawn == ["2", "3", "two", "0.1", "1", "one", "0.00", "12.50", "25.00", "a, X: NMI x 100"]


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_is_complete(name):
    """Published cells have a row and a column; no two tables or experiments share a name by mistake."""
    paper = load_paper(name)
    assert paper.name == name
    experiments: dict[str, Experiment] = {}
    for one in paper.tables:
        assert one.kind in ("table", "figure")
        for system, column in (*one.published, *one.paper_seconds):
            assert column in one.columns
            assert system in one.systems or one.metric == "seconds" or (system, column) in one.paper_seconds
        assert experiments.setdefault(one.experiment.name, one.experiment) == one.experiment
    named = [(one.kind, one.number) for one in paper.tables]
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("name", PAPERS)
def test_values_are_shown_with_the_digits_that_the_paper_prints(name):
    for one in load_paper(name).tables:
        if one.published:
            decimals = [repr(value.mean).partition(".")[2].rstrip("0") for value in one.published.values()]
            assert max(map(len, decimals)) == one.digits, one.number


def test_some_published_cells():
    uspec, sec, isec = (load_paper(name) for name in ("uspec_usenc_2019", "sec_2015", "isec_2020"))
    assert uspec.tables[0].published["LSC-K", "SF-2M"] == Published(66.45, 6.15)
    assert uspec.tables[4].published["ECC", "CC-5M"] == Published(62.71, 5.38)
    assert ("SC", "Covertype") not in uspec.tables[0].published
    assert ("SC", "Covertype") in uspec.tables[0].none
    assert sec.tables[0].published["HCC", "mm"] == Published(-0.0006)
    assert isec.tables[1].published["RCE", "breast_w"] == Published(0.8064)
    assert ("RCE", "pendigits") not in isec.tables[1].published
    assert isec.tables[1].none == {("RCE", "pendigits"), ("RCE", "MNIST4K")}


def test_settings_of_varied_cells():
    assert settings_of("U-SPEC-R", "MNIST") == ("U-SPEC", Settings(selection="random"))
    assert settings_of("U-SENC(E)", "TB-1M") == ("U-SENC", Settings(neighbors="exact"))
    assert settings_of("LSC-K", "MNIST @ K=2") == ("LSC-K", Settings(K=2))
    assert settings_of("KCC", "SF-2M @ m=40") == ("KCC", Settings(m=40))


def test_scores_of_a_labeling():
    found = scores(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 7]), 1.5)
    assert (found["purity"], found["accuracy"], found["seconds"]) == (0.75, 0.75, 1.5)
    assert found["ARI"] == 0


def test_base_clusterings(monkeypatch):
    monkeypatch.setattr(
        "ci.reproduction.ensembles.load_ensemble_set", lambda *_: (np.random.default_rng(0).random((60, 2)), None)
    )
    kmeans_pool.cache_clear()
    base, _ = kmeans_pool("drawn", 0, False, 4, 2, 5, share=0.5)
    kmeans_pool.cache_clear()
    assert base.shape == (60, 4)
    assert ((base >= 0).sum(axis=0) == 30).all()
    assert base.max(axis=0).min() >= 1
    assert base.max() <= 4


def test_the_sample_rate_of_a_figure_is_the_one_that_is_asked_for():
    """The library's k-means would see all of 2,000 rows, as they are fewer than it samples."""
    X = np.random.default_rng(0).normal(size=(2000, 2))
    few, all_rows = (
        SampledFastCSC(3, n_representatives=50, sample_rate=rate, random_state=0).fit(X) for rate in (0.01, 1.0)
    )
    library = dc.FastCSC(3, n_representatives=50, sample_rate=0.01, random_state=0).fit(X)
    np.testing.assert_array_equal(library.labels_, all_rows.labels_)
    assert (few.labels_ != all_rows.labels_).any()


def test_names_of_columns():
    assert set_of("MNIST @ p=200") == "MNIST"
    assert set_of("TB-1M") == "TB-1M"


def test_the_command_names_the_papers_it_knows(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["reproduce", "nothing"])
    with pytest.raises(SystemExit):
        command.main()
    assert f"no paper nothing; there are {', '.join(PAPERS)}" in capsys.readouterr().err


def test_absent_sets_are_named_and_pages_written(monkeypatch, capsys, tmp_path):
    """Without data, and without running anything; papers that have no draws at all get no page."""
    monkeypatch.setenv("DASKCLUSTER_DATA", str(tmp_path))
    folders = ["--results", str(tmp_path / "draws"), "--docs", str(tmp_path / "docs")]
    monkeypatch.setattr("sys.argv", ["reproduce", "isec_2020", "--table", "2", "--report-only", *folders])
    command.main()
    said = capsys.readouterr().out
    assert (
        "isec_2020: 144 cells: 2 the paper did not run it either, or could not; 142 not run. Absent sets: COIL20, Dslr"
        in said
    )
    assert not (tmp_path / "docs").exists()
    for name in PAPERS:
        (tmp_path / "draws" / name).mkdir(parents=True)
    command.main()
    assert {f"{name}.md" for name in [*PAPERS, "index"]} == {path.name for path in (tmp_path / "docs").iterdir()}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("uspec_usenc_2019 --table 99", "--table: there is no 99; there are 4, 5, 6"),
        ("uspec_usenc_2019 --figure 1", "--figure: there is no 1; there are none"),
        ("uspec_usenc_2019 --sets Iris", "--sets: there is no Iris; there are PenDigits, USPS"),
        ("uspec_usenc_2019 --table 4 --systems KCC", "--systems: there is no KCC; there are k-means, SC"),
        ("isec_2020 --data nowhere", "there is no folder of data nowhere"),
    ],
)
def test_names_that_there_are_not_are_refused(arguments, said, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["reproduce", *arguments.split(), "--report-only"])
    with pytest.raises(SystemExit):
        command.main()
    assert said in capsys.readouterr().err


def test_a_part_is_shown_alone(monkeypatch, capsys):
    """Of the draws of this repository, as nobody named others."""
    asked = "reproduce uspec_usenc_2019 --table 4 --sets USPS --systems U-SPEC k-means --report-only"
    monkeypatch.setattr("sys.argv", asked.split())
    command.main()
    said = capsys.readouterr().out
    assert [line.split()[:2] for line in said.splitlines() if line.startswith("USPS")] == [
        ["USPS", "k-means"],
        ["USPS", "U-SPEC"],
    ]
    assert "uspec_usenc_2019: 2 cells: " in said
