"""The library's messages in the words of the command line."""

from __future__ import annotations

import pytest

from daskcluster.cli import main
from daskcluster.cli.algorithms import ESTIMATOR_OPTIONS
from daskcluster.cli.wording import LONGEST, in_options, shortened


@pytest.mark.parametrize(
    ("command", "said", "expected"),
    [
        ("fit", "X has NaN; pass missing='label' to give -1", "X has NaN; give --missing label to give -1"),
        ("predict", "X has NaN; pass missing='label' to give -1", "X has NaN; give `fit` --missing label to give -1"),
        ("fit", "'a' exists; pass overwrite=True to replace it", "'a' exists; give --overwrite to replace it"),
        ("convert", "give format= (npy, npz)", "give --format (npy, npz)"),
        ("convert", "say which with header=True or header=False", "say which with --header or --no-header"),
        ("convert", "choose others with columns=", "choose others with --columns"),
        ("convert", "member: no array 'x'", "--member: no array 'x'"),
        ("fit", "n_clusters must be at most 3, got n_clusters=8", "--clusters must be at most 3, got --clusters 8"),
        ("fit", "random_state must be None", "--seed must be None"),
        ("fit", "n_components must be >= 1", "--consensus-components must be >= 1"),
        ("consensus", "n_components must be >= 1", "--components must be >= 1"),
        ("fit", "neighbors must be one of 'exact'", "--neighbor-search must be one of 'exact'"),
        ("fit", "y must have one entry a row", "--partial-labels must have one entry a row"),
        ("score", "labels_true has 2, labels_pred has 1", "TRUE.zarr has 2, PRED.zarr has 1"),
        # What users wrote, and words that are no parameters, stay.
        ("fit", "no array at '/tmp/n_clusters'", "no array at '/tmp/n_clusters'"),
        ("fit", "no array at 'missing=1/x'", "no array at 'missing=1/x'"),
        ("fit", "a missing chunk of n_samples=9 rows", "a missing chunk of n_samples=9 rows"),
        ("fit", "take numpy.ma.filled", "take numpy.ma.filled"),
    ],
)
def test_parameters_become_options(command, said, expected):
    assert in_options(said, main.commands[command], main) == expected


def test_every_option_of_an_estimator_is_known_by_its_parameter():
    for option in ESTIMATOR_OPTIONS:
        name = option.parameter.removeprefix("consensus__")
        if name not in ("n_components", "n_representatives"):  # the consensus's own and the estimator's
            assert in_options(f"{name} must be other", main.commands["fit"], main) == f"{option.flag} must be other"


def test_messages_are_one_line_of_bounded_length():
    assert shortened("a\n  b") == "a b"
    assert len(shortened("word " * 10_000)) < LONGEST + 50
