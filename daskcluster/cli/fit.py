"""`fit` a model to rows, `predict` labels of others with it, `plan` what a fit will cost."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

import click

from .. import __version__
from .algorithms import ChosenEstimator, estimator_options
from .cluster import Job, job_options
from .failures import InputError
from .inputs import open_array, open_part, open_rows_for
from .options import PATH, Part, bundled, shards_option
from .outputs import about_estimator, check_outputs, check_picture, draw, write_labels
from .pairs import Known, constraint_options
from .rasters import GridChoice, Raster, open_raster, raster_options, write_grid
from .report import memory_lines, path_lines, peak_memory, seconds_text, show, size_lines
from .scale import SCALES, fit_scaler

__all__ = ["FitOutputs", "fit", "fit_and_keep", "plan", "predict"]


@dataclass(frozen=True)
class FitOutputs:
    """Where to keep what a fit finds."""

    labels: str | None = None
    model: str | None = None
    picture: str | None = None


@click.command(short_help="Cluster stored rows.")
@click.argument("rows", metavar="X.zarr", type=PATH)
@estimator_options
@constraint_options
@click.option("--labels", type=PATH, metavar="OUT.zarr", help="Store the labels here.")
@click.option("--model", type=PATH, metavar="M.zarr", help="Store the model here, for `predict`.")
@click.option("--scale", type=click.Choice(list(SCALES)), help="Scale the features first; part of the model.")
@click.option("--picture", type=PATH, metavar="FILE.png", help="Draw the first two features, coloured by label.")
@shards_option
@raster_options
@job_options(writes=True)
@bundled("outputs", FitOutputs)
def fit(
    rows: str,
    chosen: ChosenEstimator,
    known: Known,
    scale: str | None,
    outputs: FitOutputs,
    grid: GridChoice,
    job: Job,
) -> None:
    """Cluster the rows of the Zarr array X.zarr, or the pixels of a raster that xarray opens.

    Outputs appear when they are complete. An array inside a group is named by its path, group.zarr/X. In its place
    stands a parquet file or a folder of them, an npy file, or a dataset of an HDF5 file, file.h5/name. Labels of a
    raster are a group on its grid.
    """
    if outputs == FitOutputs():
        raise click.UsageError("nothing would be kept: give --labels, --model or --picture")
    raster = open_raster(rows, grid)
    array: Any = open_array(rows, sparse=True) if raster is None else raster
    if raster is None:
        check_picture(outputs.picture, array)
    else:
        _check_raster({"--scale": scale, "--picture": outputs.picture, "--shards": job.shards}, outputs.labels)
    inputs = {"the input": rows, **known.paths()}
    storage = chosen.parameters.get("storage")
    paths = {**asdict(outputs), **job.outputs()}
    check_outputs(job.overwrite, inputs, paths, storage, on_grid=raster is not None)
    estimator = chosen.make(verbose=not job.quiet)
    shape = array.shape
    constraints = known.constraints(estimator, shape[0], raster)
    with job.running():
        found = fit_and_keep(estimator, raster or rows, outputs, job, scale=scale, constraints=constraints)
    result = {"command": "fit", "n_samples": shape[0], "n_features": shape[1], **found}
    result |= peak_memory(job.cluster)
    lines = [("rows", f"{shape[0]:,} x {shape[1]}"), ("clusters", str(result["n_clusters"]))]
    lines += [] if result["cluster_sizes"] is None else size_lines(result["cluster_sizes"], estimator)
    for kind, kept in (result["constraints"] or {}).items():
        lines.append((f"{kind.replace('_', '-')}s kept", f"{kept['kept']:.2%} of {kept['count']:,}"))
    lines += [("seconds", seconds_text(result["seconds"])), *memory_lines(result), *path_lines(asdict(outputs))]
    show(result, job.as_json, f"{type(estimator).__name__} of {rows}", lines)


def _check_raster(unknown: dict[str, Any], labels: str | None) -> None:
    """Refuse options that a raster has no use for."""
    given = [name for name, value in unknown.items() if value is not None]
    if given:
        raise click.UsageError(f"{given[0]} is not for rasters; leave it out")
    if labels is not None and "://" in labels:
        raise InputError(f"--labels: labels of a raster are written to a path on this file system, got {labels!r}")


def fit_and_keep(
    estimator: Any,
    rows: str | Raster,
    outputs: FitOutputs,
    job: Job,
    *,
    scale: str | None = None,
    constraints: Any = None,
) -> dict[str, Any]:
    """Fit an estimator, and store what was asked for: first the model, the smallest, from which all can be made."""
    from ..io import save_model

    start = time.perf_counter()
    model = _fit(estimator, rows, job, scale, constraints)
    about = about_estimator(estimator, scale=scale)
    if outputs.model is not None:
        save_model(model, outputs.model, overwrite=job.overwrite)
    write = write_grid if isinstance(rows, Raster) else write_labels
    sizes = None if outputs.labels is None else write(estimator.labels_, outputs.labels, about, job)
    seconds = time.perf_counter() - start
    labels = outputs.labels or estimator.labels_  # stored labels are read, others are made once more
    if isinstance(rows, Raster):
        labels = estimator.labels_.data.ravel()
    kept = None if constraints is None else _kept(constraints, labels)
    if outputs.picture is not None:
        draw(rows, labels, outputs.picture, job)
    return {
        "class": about["class"],
        "parameters": about["parameters"],
        "n_clusters": int(estimator.n_clusters_),
        "cluster_sizes": sizes,
        "constraints": kept,
        "seconds": seconds,
        **asdict(outputs),
    }


def _fit(estimator: Any, rows: str | Raster, job: Job, scale: str | None, constraints: Any) -> Any:
    """Fit an estimator, to scaled rows when asked for; return what is to be stored, the scaler included."""
    model: Any = estimator
    X: Any = rows
    keywords: dict[str, Any] = {} if constraints is None else {"constraints": constraints}
    if isinstance(rows, Raster):
        X = rows.data
        keywords |= rows.keywords
    elif scale is not None:
        from sklearn.pipeline import Pipeline

        with job.stage("scale"):
            scaler, X = fit_scaler(scale, rows, estimator.missing)
        model = Pipeline([("scale", scaler), ("cluster", estimator)])
    estimator.fit(X, **keywords)
    estimator.set_params(verbose=False)  # progress is this command's matter, not the model's
    return model


def _kept(constraints: Any, labels: Any) -> dict[str, dict[str, Any]]:
    """Tell which share of the constraints labels keep."""
    found = constraints.satisfaction(labels)
    return {
        "must_link": {"kept": found.must_link, "count": found.n_must_link},
        "cannot_link": {"kept": found.cannot_link, "count": found.n_cannot_link},
    }


@click.command(short_help="Label new rows with a model.")
@click.argument("rows", metavar="X.zarr", type=PATH)
@click.option("--model", type=PATH, metavar="M.zarr", required=True, help="The model that `fit` stored.")
@click.option("--labels", type=PATH, metavar="OUT.zarr", required=True, help="Store the labels here.")
@click.option("--part", type=Part(), metavar="I/N", help="Label the I-th of N parts of the rows, counted from 0.")
@shards_option
@raster_options
@job_options(writes=True)
def predict(rows: str, model: str, labels: str, part: tuple[int, int] | None, grid: GridChoice, job: Job) -> None:
    """Label the rows of the Zarr array X.zarr, or a raster, with a stored model, scaled as the rows of its fit were."""
    from ..io import load_model

    raster = open_raster(rows, grid)
    n_samples = (open_array(rows, sparse=True) if raster is None else raster).shape[0]
    if raster is not None:
        _check_raster({"--shards": job.shards, "--part": part}, labels)
    inputs, outputs = {"the input": rows, "--model": model}, {"labels": labels, **job.outputs()}
    check_outputs(job.overwrite, inputs, outputs, on_grid=raster is not None)
    estimator = load_model(model)
    if raster is not None and hasattr(estimator, "steps"):
        raise InputError(f"--model: {model!r} scales its rows, which is not for rasters; fit one without --scale")
    begun = time.perf_counter()
    with job.running():
        about: dict[str, Any] = {"model": model, "version": __version__}
        X: Any = open_rows_for(estimator, rows) if raster is None else None
        if part is not None:
            start, X = open_part(rows, part)
            n_samples = X.shape[0]
            about["rows"] = [start, start + n_samples]
        if raster is None:
            sizes = write_labels(estimator.predict(X), labels, about, job)
        else:
            sizes = write_grid(estimator.predict(raster.data, **raster.keywords), labels, about, job)
    seconds = time.perf_counter() - begun
    result = {"command": "predict", "n_samples": n_samples, "cluster_sizes": sizes, "seconds": seconds}
    result |= {"labels": labels, **peak_memory(job.cluster)}
    lines = [("rows", f"{n_samples:,}"), *size_lines(sizes, estimator), ("seconds", seconds_text(seconds))]
    lines += [*memory_lines(result), ("labels", labels)]
    show(result, job.as_json, f"labels of {rows}", lines)


@click.command(short_help="State what a fit will cost.")
@click.argument("rows", metavar="X.zarr", type=PATH)
@estimator_options
@raster_options
@job_options(writes=False)
def plan(rows: str, chosen: ChosenEstimator, grid: GridChoice, job: Job) -> None:
    """State passes, tasks, bytes and peak memory of `fit` with the same options, before anything runs."""
    raster = open_raster(rows, grid)
    if raster is None:
        open_array(rows, sparse=True)  # refused before a scheduler starts
    with job.running():
        estimator = chosen.make()
        forecast = estimator.plan(rows) if raster is None else estimator.plan(raster.data, **raster.keywords)
    click.echo(json.dumps(forecast.to_dict(), allow_nan=False) if job.as_json else str(forecast))
