"""The table of options is that of the estimators, and what is given reaches them."""

from __future__ import annotations

import inspect
from typing import Any

import click
import pytest

from daskcluster import estimators
from daskcluster.cli.algorithms import ALGORITHMS, CONSENSUS, CONSENSUS_PARAMETERS, CONSENSUS_VALUES, ESTIMATOR_OPTIONS
from tests.cli.calls import as_json, fail, succeed


def test_tables_agree_with_the_estimators():
    own = [option for option in ESTIMATOR_OPTIONS if "__" not in option.parameter]
    for algorithm, name in ALGORITHMS.items():
        parameters = inspect.signature(getattr(estimators, name)).parameters
        for option in own:
            if algorithm in option.defaults:
                assert parameters[option.parameter].default == option.defaults[algorithm], option.flag
            else:
                assert option.parameter not in parameters, option.flag
        offered = {option.parameter for option in own if algorithm in option.defaults}
        assert offered | {"n_clusters", "random_state", "storage", "verbose"} == set(parameters)
    inside = [option.parameter for option in ESTIMATOR_OPTIONS if option not in own]
    assert inside == [f"consensus__{parameter}" for parameter in CONSENSUS_PARAMETERS]
    for parameter, methods in CONSENSUS_PARAMETERS.items():
        for method, name in CONSENSUS.items():
            assert (parameter in inspect.signature(getattr(estimators, name)).parameters) == (method in methods)


def test_values_of_consensus_options_are_those_of_each():
    from daskcluster.ensemble.overlaps import WEIGHTS
    from daskcluster.estimators.consensus import eac

    assert CONSENSUS_VALUES == {"weights": {"cut": WEIGHTS, "eac": eac.WEIGHTS}}


def test_choices_agree_with_the_estimators():
    from daskcluster.estimators.base import MISSING
    from daskcluster.pipeline.kmeans import INITS
    from daskcluster.pipeline.neighbors import NEIGHBORS
    from daskcluster.pipeline.representatives import SELECTIONS
    from daskcluster.pipeline.scan import METRICS

    options = {option.parameter: option.type for option in ESTIMATOR_OPTIONS}
    for parameter, choices in {
        "init": INITS,
        "metric": METRICS,
        "missing": MISSING,
        "neighbors": NEIGHBORS,
        "selection": SELECTIONS,
    }.items():
        kind = options[parameter]
        assert isinstance(kind, click.Choice)
        assert sorted(kind.choices) == sorted(choices)


def test_fit_passes_every_option_on(stores, tmp_path, monkeypatch):
    made: dict[str, Any] = {}
    original = estimators.USPEC.fit

    def recorded(self, X):
        made.update(self.get_params(deep=False))
        return original(self, X)

    monkeypatch.setattr(estimators.USPEC, "fit", recorded)
    expected = {
        "--representatives": ("n_representatives", 50),
        "--neighbors": ("n_neighbors", 4),
        "--selection": ("selection", "random"),
        "--neighbor-search": ("neighbors", "exact"),
        "--candidate-factor": ("candidate_factor", 5),
        "--neighbor-factor": ("neighbor_factor", 6),
        "--affinity": ("affinity", "adaptive"),
        "--metric": ("metric", "cosine"),
        "--n-init": ("n_init", 2),
        "--max-iter": ("max_iter", 7),
        "--missing": ("missing", "label"),
        "--storage": ("storage", str(tmp_path / "storage")),
        "--seed": ("random_state", 9),
        "--clusters": ("n_clusters", 2),
    }
    options = [part for flag, (_, value) in expected.items() for part in (flag, value)]
    succeed("fit", stores / "x.zarr", *options, "--labels", tmp_path / "out.zarr", "--quiet")
    assert made == {**dict(expected.values()), "verbose": False}
    about = as_json("info", tmp_path / "storage")
    assert about["kind"] == "storage"
    assert about["method"] == "USPEC"
    assert "labels" in about["products"]
    assert "complete" in succeed("info", tmp_path / "storage").stdout


FIT = ["fit", "X.zarr", "-k", 3, "--labels", "o.zarr"]
ENSEMBLE = [*FIT, "--algorithm", "ensemble"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            [*FIT, "--algorithm", "kmeans", "--representatives", 9],
            "--representatives does not apply to --algorithm kmeans",
        ),
        ([*FIT, "--base", "kmeans"], "--base does not apply"),
        ([*FIT, "--consensus-components", 9], "does not apply to --algorithm"),
        ([*ENSEMBLE, "--consensus-components", 9], "--consensus-components does not apply to --consensus cut"),
        ([*ENSEMBLE, "--consensus", "sec", "--consensus-weights", "local"], "does not apply to --consensus sec"),
        ([*ENSEMBLE, "--consensus", "sec", "--consensus-representatives", 9], "does not apply to --consensus sec"),
        ([*FIT, "--algorithm", "usenc", "--k-range", 5, 2], "--k-range"),
    ],
)
def test_options_that_do_not_apply_are_refused(blobs, arguments, match):
    assert match in fail(2, *arguments, "--quiet")
    assert not (blobs / "o.zarr").exists()
