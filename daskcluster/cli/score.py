"""`score`: two labelings compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from .cluster import Job, job_options
from .inputs import open_labels
from .options import PATH
from .report import show

__all__ = ["METRICS", "compare", "score", "score_lines"]

#: Name of a score -> its function in `metrics`, and what it is.
METRICS = {
    "NMI": ("normalized_mutual_info", "normalized mutual information"),
    "ACC": ("clustering_accuracy", "accuracy under the best matching"),
    "purity": ("purity", "share of rows in the majority class of their cluster"),
    "RI": ("rand_index", "Rand index"),
    "ARI": ("adjusted_rand_index", "adjusted Rand index"),
}


@click.command(short_help="Compare two labelings.")
@click.argument("true", metavar="TRUE.zarr", type=PATH)
@click.argument("pred", metavar="PRED.zarr", type=PATH)
@job_options(writes=False)
def score(true: str, pred: str, job: Job) -> None:
    """Compare the labels PRED.zarr with the classes TRUE.zarr, in one pass.

    Names of labels do not matter. -1 counts as a label like the others.
    """
    with job.running():
        scores = compare(open_labels(true), open_labels(pred))
    show({"command": "score", **scores}, job.as_json, f"{pred} against {true}", score_lines(scores))


def compare(true: Any, pred: Any) -> dict[str, float]:
    """Compare two labelings by every score, in one pass."""
    from .. import metrics

    table = metrics.contingency_matrix(true, pred)
    return {name: float(getattr(metrics, f"{function}_from_table")(table)) for name, (function, _) in METRICS.items()}


def score_lines(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Show scores with what they are."""
    return [(name, f"{value:.4f}  {METRICS[name][1]}") for name, value in scores.items()]
