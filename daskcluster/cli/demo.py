"""`demo`: the whole job, on made data or on a store of the user's."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import asdict, replace
from pathlib import Path

import click

from .cluster import Job, job_options
from .data import DataSet, store_dataset
from .failures import InputError
from .fit import FitOutputs, fit_and_keep
from .inputs import open_array
from .options import COUNT_FROM_1, PATH, Count, seed_option
from .outputs import check_outputs
from .report import memory_lines, path_lines, peak_memory, seconds_text, show, size_lines
from .score import compare, score_lines

__all__ = ["demo"]

DEMO_ROWS = 2_000_000
DEMO_CLUSTERS = 13


@click.command(short_help="Cluster two million rows, or a store of your own.")
@click.argument("store", metavar="[STORE.zarr]", type=PATH, required=False)
@click.argument("clusters", metavar="[K]", type=COUNT_FROM_1, required=False)
@click.option(
    "-n",
    "n_rows",
    type=Count(),
    metavar="ROWS",
    help=f"Rows of the flower data, when no store is given.  [default: {DEMO_ROWS}]",
)
@click.option("--directory", type=PATH, default="daskcluster-demo", show_default=True, help="Folder of all outputs.")
@seed_option
@job_options(writes=False)
def demo(store: str | None, clusters: int | None, n_rows: int | None, directory: str, seed: int, job: Job) -> None:
    """Show the whole job: rows in a Zarr store, clustered by U-SPEC, with labels, model and picture.

    Without arguments the flower data are made and stored first. With STORE.zarr and K your own store is clustered.
    Outputs of an earlier demo in the same folder are replaced.
    """
    _check_arguments(store, clusters, n_rows, directory)
    folder = Path(directory)
    outputs = FitOutputs(str(folder / "labels.zarr"), str(folder / "model.zarr"), _picture(folder, store))
    made = {name: str(folder / name) for name in ("flower.zarr", "classes.zarr")} if store is None else {}
    rows = made["flower.zarr"] if store is None else store
    check_outputs(
        True,
        {"the input": store},
        {
            "picture": outputs.picture,
            **made,
            **{"labels.zarr": outputs.labels, "model.zarr": outputs.model},
            **job.outputs(),
        },
    )
    job = replace(job, overwrite=True)
    with job.running():
        if made:
            store_dataset(DataSet("flower", n_rows or DEMO_ROWS, seed), rows, made["classes.zarr"], job)
        from ..estimators import USPEC

        estimator = USPEC(clusters or DEMO_CLUSTERS, random_state=seed, verbose=not job.quiet)
        found = fit_and_keep(estimator, rows, outputs, job)
        scores = compare(made["classes.zarr"], outputs.labels) if made else None
    shape = open_array(rows).shape
    result = {"command": "demo", "rows": rows, "n_samples": shape[0], "n_features": shape[1], **found}
    result |= {"scores": scores, **peak_memory(job.cluster)}
    lines = [("rows", f"{shape[0]:,} x {shape[1]} in {rows}"), ("clusters", str(result["n_clusters"]))]
    lines += size_lines(result["cluster_sizes"], estimator) if scores is None else score_lines(scores)
    lines += [("clustering", seconds_text(result["seconds"])), *memory_lines(result), *path_lines(asdict(outputs))]
    show(result, job.as_json, "daskcluster demo", lines)


def _check_arguments(store: str | None, clusters: int | None, n_rows: int | None, directory: str) -> None:
    """Refuse arguments that do not go together, and a file as the folder."""
    if (store is None) != (clusters is None):
        raise click.UsageError("give both STORE.zarr and K, or none of them")
    if store is not None and n_rows is not None:
        raise click.UsageError("-n is for the flower data; a store has the rows that it has")
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise InputError(f"--directory {directory!r} is not a folder")


def _picture(folder: Path, store: str | None) -> str | None:
    """Return where the picture is to be; None, with the reason on stderr, when it cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        click.echo("no picture: matplotlib is not installed (pip install 'daskcluster[plot]')", err=True)
        return None
    if store is not None and (shape := open_array(store).shape)[1:] < (2,):
        click.echo(f"no picture: {store!r} has fewer than two features, shape {shape}", err=True)
        return None
    return str(folder / "picture.png")
