"""`n-clusters`: how many clusters there are."""

from __future__ import annotations

import click

from .cluster import Job, job_options
from .options import PATH, seed_option
from .report import show

__all__ = ["n_clusters"]


@click.command("n-clusters", short_help="Look for the number of clusters.")
@click.argument("x", metavar="X.zarr", type=PATH)
@click.option("--k-max", type=click.IntRange(min=2), default=30, show_default=True, help="Clusters at most.")
@click.option("--fits", type=click.IntRange(min=2), default=3, show_default=True, help="Graphs that are compared.")
@seed_option
@job_options(writes=False)
def n_clusters(x: str, k_max: int, fits: int, seed: int, job: Job) -> None:
    """Look for the number of clusters of the rows of X.zarr.

    Gaps between the eigenvalues of several U-SPEC graphs, and how far their clusters agree. Where no number is clear
    the answer says so.
    """
    from ..estimators import select_n_clusters

    with job.running():
        found = select_n_clusters(x, k_max, n_fits=fits, random_state=seed)
    values = {
        "command": "n-clusters",
        "n_clusters": found.n_clusters,
        "candidates": found.candidates[:3],
        "relative_gaps": found.relative_gaps.tolist(),
        "stability": [None, *found.stability[1:].tolist()],
    }
    lines = [
        (f"{k} clusters", f"gap {found.relative_gaps[k - 1]:.2f}, stability {found.stability[k - 1]:.2f}")
        for k in found.candidates[:5]
    ]
    show(values, job.as_json, found.summary, lines)
