"""What the two papers on constraints are given, and what is typed of their tables."""

from __future__ import annotations

import numpy as np
import pytest

import daskcluster as dc
from ci.reproduction.constrained import constraints_between, draw_labels, draw_pairs
from ci.reproduction.papers import csp_ml_and_fast_csp_ml_2019, fast_csc_and_secrp_2017

PAPERS = [csp_ml_and_fast_csp_ml_2019.PAPER, fast_csc_and_secrp_2017.PAPER]
TRUTH = np.arange(60) % 3


def wrong_and_right(constraints: dc.Constraints) -> tuple[int, int]:
    """Pairs that contradict the classes, and pairs that do not."""
    must, cannot = (np.asarray(pairs) for pairs in (constraints.must_link, constraints.cannot_link))
    wrong = int((TRUTH[must[:, 0]] != TRUTH[must[:, 1]]).sum() + (TRUTH[cannot[:, 0]] == TRUTH[cannot[:, 1]]).sum())
    return wrong, len(must) + len(cannot) - wrong


@pytest.mark.parametrize(("kind", "wrong"), [("inconsistent", 2), ("noise", 90), ("soft", 0)])
def test_kinds_of_constraints(kind, wrong):
    rng = np.random.default_rng(0)
    known = draw_labels(TRUTH, 25, rng)
    assert (known >= 0).sum() == 25
    np.testing.assert_array_equal(known[known >= 0], TRUTH[known >= 0])
    made = constraints_between(known, kind, rng)
    assert wrong_and_right(made) == (wrong, 300 - wrong)  # 25 * 24 / 2 pairs, 0.08 * 25 and 30 % of them wrong
    weights = np.concatenate([made.must_link_weight, made.cannot_link_weight])
    assert weights.min() >= (0.7 if kind == "soft" else 1.0)
    assert weights.max() <= 1.0
    assert (len(set(weights)) > 1) == (kind == "soft")


def test_other_kinds():
    known = np.where(np.arange(60) < 9, TRUTH, -1)
    labels = constraints_between(known, "labels", np.random.default_rng(0)).labels
    np.testing.assert_array_equal(np.asarray(labels), known)
    assert wrong_and_right(draw_pairs(TRUTH, 40, np.random.default_rng(0))) == (0, 40)
    with pytest.raises(ValueError, match="no kind of constraints 'hard'"):
        constraints_between(known, "hard", np.random.default_rng(0))


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_published_values_have_a_cell(paper):
    for table in paper.tables:
        cells = {(system, column) for system in table.systems for column in table.columns}
        assert set(table.paper_seconds) <= cells
        if table.kind == "table":
            assert set(table.published) <= cells


def test_typed_values_at_their_places():
    """The corners of the tables: a shift of a row or of a column would move them."""
    by_number = {table.number: table.published for table in PAPERS[0].tables if table.kind == "table"}
    assert by_number["2a"]["CSP", "glass @ 30 labels"].mean == 0.68
    assert by_number["2a"]["SL", "ionosphere @ 165 labels"].mean == 0.55
    assert by_number["2b"]["CSP", "glass @ 30 labels"].mean == 0.36
    assert by_number["2b"]["SL", "ionosphere @ 165 labels"].mean == 0.06
    assert [len(by_number[number]) for number in ("2a", "2b", "3")] == [48, 48, 60]
    assert by_number["3"]["FAST-CSP-ML", "covertype @ ten features, 10 %"].mean == 0.59
    assert by_number["3"]["FAST-CSP-ML, 30 % noise", "Postures @ 90 %"].mean == 0.72
    typed = {table.number: table.published for table in PAPERS[1].tables if table.kind == "table"}
    assert typed["2"]["SECRP", "Letters @ rd=10"].mean == 2.44
    assert typed["2"]["SECRP", "Covertype @ rd=100"].mean == 7.44
