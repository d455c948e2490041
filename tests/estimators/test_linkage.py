"""EAC and PTGP, which take the distinct rows of labels, through their public interface."""

from __future__ import annotations

import numpy as np
import pytest

import daskcluster as dc
from tests.estimators.test_consensus import draw, fit
from tests.reference import eac


@pytest.mark.parametrize("weights", ["none", "local", "wct"])
@pytest.mark.parametrize("linkage", ["average", "complete", "single"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_eac_is_linkage_of_all_rows(weights, linkage, missing):
    labels, _ = draw(1, n_rows=22, n_columns=4, noise=0.3, missing=missing)
    options = {"weights": weights, "theta": 0.5, "decay": 0.7}
    model = fit(dc.EAC(3, linkage=linkage, **options), labels)
    assert model.n_distinct_ < (labels >= 0).any(axis=1).sum()
    np.testing.assert_array_equal(model.labels_, eac.clusters(labels, 3, linkage, **options))


def test_eac_by_hand():
    """{0, 1, 2} and {3, 4} agree in two of three; 2 and 3 in one, which single linkage does not need."""
    labels = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 1, 2]])
    for linkage in ("average", "complete", "single"):
        model = dc.EAC(2, linkage=linkage).fit(labels)
        assert model.labels_.tolist() == [0, 0, 0, 1, 1]
        assert model.n_distinct_ == 4
    # Of two base clusters the first row's has 2, 1 and 2 rows in the first cluster, of 3.
    assert model.transform(labels[:1])[0] == pytest.approx([(1 + 1 + 2 / 3) / 3, 0])


@pytest.mark.parametrize("weights", ["none", "local", "wct"])
def test_eac_transforms_into_mean_likeness(weights):
    labels, _ = draw(3, n_rows=40, n_columns=5, noise=0.4)
    model = fit(dc.EAC(3, weights=weights, theta=0.5, decay=0.7), labels)
    alike = eac.likeness(labels, weights, 0.5, 0.7)
    expected = np.stack([alike[:, model.labels_ == k].mean(axis=1) for k in range(3)], axis=1)
    assert model.transform(labels) == pytest.approx(expected)


@pytest.mark.parametrize("model", [dc.EAC(3), dc.EAC(3, weights="wct"), dc.PTGP(3, random_state=0)], ids=repr)
def test_new_rows_of_labels_go_to_the_likest_cluster(model):
    labels, _ = draw(4, n_rows=60, n_columns=4, noise=0.2)
    fit(model, labels)
    every = np.stack(np.meshgrid(*[np.arange(-1, 3)] * 4), axis=-1).reshape(-1, 4)
    found, means = model.predict(every), model.transform(every)
    known = {tuple(row): label for row, label in zip(labels.tolist(), model.labels_, strict=True)}
    assert len(known) < len(every) - 1
    for row, label, mean in zip(every.tolist(), found, means, strict=True):
        if tuple(row) in known:
            assert label == known[tuple(row)]
        elif max(row) < 0:
            assert label == -1
        else:
            assert mean[label] == pytest.approx(mean.max())


@pytest.mark.parametrize("n_apart", [1, 4])
def test_rows_that_agree_with_none_leave_the_others_as_they_are(n_apart):
    truth = np.arange(400) % 3
    labels = truth[:, None] * 4 + np.random.default_rng(n_apart).integers(4, size=(400, 8))
    apart = np.broadcast_to(100 + np.arange(n_apart)[:, None], (n_apart, 8))
    model = dc.PTGP(3, random_state=0).fit(np.concatenate([labels, apart]))
    assert dc.metrics.adjusted_rand_index(truth, model.labels_[:400]) == 1
    assert model.labels_[400:].min() >= 0
    assert dc.PTGP(2, random_state=0).fit([[0, 0], [1, 1], [2, 2], [0, 0]]).labels_.tolist() == [0, 0, 1, 0]


def test_linkage_is_refused_before_pairs_are_made(monkeypatch):
    labels, _ = draw(7, n_rows=200, n_columns=8, noise=0.6)
    made = []
    monkeypatch.setattr("daskcluster.ensemble.linkage.row_likeness", lambda *given: made.append(given))
    for cls in (dc.EAC, dc.PTGP):
        with pytest.raises(ValueError, match=r"about \d+ distinct rows of labels, more than max_distinct=50"):
            cls(3, max_distinct=50).fit(labels)
    monkeypatch.setattr("daskcluster.ensemble.distinct.memory_limit", lambda: 2**10)
    monkeypatch.setattr("daskcluster.ensemble.distinct.SMALL_BYTES", 0)
    for cls in (dc.EAC, dc.PTGP):
        with pytest.raises(MemoryError, match=rf"{cls.__name__} on \d+ distinct rows of labels needs .* GiB"):
            cls(3).fit(labels)
    assert not made
