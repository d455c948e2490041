"""Data: `make` a data set, `convert` a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from .cluster import Job, job_options
from .info import array_lines, describe_array
from .options import PATH, Count, ParamType, bundled, json_option, overwrite_option, seed_option, storage_options_option
from .outputs import check_outputs
from .report import show

__all__ = ["DATASETS", "DataSet", "convert", "make", "store_dataset"]

DATASETS = ("two-bananas", "smiling-face", "concentric-circles", "circles-gaussians", "flower")


class _Name(ParamType):
    """A data set by its name, with dashes or underscores."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        name = str(value).replace("_", "-")
        if name not in DATASETS:
            self.fail(f"{value!r} is not one of {', '.join(DATASETS)}", param, ctx)
        return name


@dataclass(frozen=True)
class DataSet:
    """A data set to be made."""

    name: str
    n_rows: int
    seed: int
    chunk_rows: int | None = None


@click.command(short_help="Make a data set.")
@click.argument("name", type=_Name())
@click.argument("out", metavar="OUT.zarr", type=PATH)
@click.option("-n", "n_rows", type=Count(), required=True, metavar="ROWS", help="Rows, such as 2000000, 2e6 or 2M.")
@click.option("--labels", type=PATH, metavar="OUT_y.zarr", help="Store the true classes here.")
@click.option(
    "--chunk-rows", type=Count(), metavar="ROWS", help="Rows of a stored chunk. The data do not depend on it."
)
@seed_option
@job_options(writes=True)
@bundled("dataset", DataSet)
def make(dataset: DataSet, out: str, labels: str | None, job: Job) -> None:
    """Make the data set NAME and store its rows as OUT.zarr.

    NAME is two-bananas, smiling-face, concentric-circles, circles-gaussians or flower. Rows are drawn by their number
    and the seed, so the first rows of a larger set are those of a smaller one.
    """
    check_outputs(job.overwrite, {}, {"OUT": out, "labels": labels, **job.outputs()})
    with job.running():
        result = store_dataset(dataset, out, labels, job)
    lines = [("rows", f"{dataset.n_rows:,} x 2 in {out}")]
    if labels is not None:
        lines.append(("classes", f"in {labels}"))
    show(result, job.as_json, f"made {dataset.name}", lines)


def store_dataset(dataset: DataSet, out: str, labels: str | None, job: Job) -> dict[str, Any]:
    """Make a data set, and store its rows and, when `labels` names a place, its classes."""
    from .. import datasets
    from ..io import write_array

    make_rows = getattr(datasets, f"make_{dataset.name.replace('-', '_')}")
    X, y = make_rows(dataset.n_rows, random_state=dataset.seed)
    about = {"dataset": dataset.name, "seed": dataset.seed}
    with job.stage(f"make {dataset.name}"):
        for values, path in ((X, out), (y, labels)):
            if path is not None:
                write_array(values, path, chunks=dataset.chunk_rows, overwrite=job.overwrite, attributes=about)
    return {"command": "make", "n_samples": dataset.n_rows, "n_features": 2, "rows": out, "labels": labels, **about}


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Split a list of names."""
    return None if value is None else [name.strip() for name in value.split(",")]


@click.command(short_help="Turn a file of rows into a Zarr array.")
@click.argument("source", metavar="IN", type=PATH)
@click.argument("out", metavar="OUT.zarr", type=PATH)
@click.option(
    "--format", type=click.Choice(["npy", "npz", "csv", "parquet", "hdf5"]), help="By default from the file's name."
)
@click.option("--columns", metavar="A,B,...", callback=_names, help="Columns to take, by name or by number from 0.")
@click.option("--member", help="Array of an npz file.")
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of a csv file names the columns; by default its lines tell.",
)
@click.option("--chunk-rows", type=Count(), metavar="ROWS", help="Rows of a stored chunk.")
@click.option("--dtype", help="Type of the stored values, such as float32.")
@overwrite_option
@storage_options_option
@click.option("--quiet", is_flag=True, help="Say nothing but errors; with --json, its line only.")
@json_option
def convert(source: str, out: str, overwrite: bool, quiet: bool, as_json: bool, **how: Any) -> None:
    """Store the rows of the file IN as the Zarr array OUT.zarr, in bounded memory.

    IN is an npy, npz, csv (also tsv, txt, and compressed) or parquet file, or a folder of csv or parquet files, read in
    the order of the numbers in their names, or a dataset of an HDF5 or NetCDF 4 file, file.h5/name. Every column must
    be numeric; choose with --columns. One column of lists of one length is a table of vectors.
    """
    from ..io.convert import convert as convert_file

    check_outputs(overwrite, {"the input": source}, {"OUT": out})
    array = convert_file(source, out, overwrite=overwrite, **how)
    result = {"command": "convert", "source": source, **describe_array(array), "path": out}
    if as_json or not quiet:
        show(result, as_json, f"converted {source}", array_lines(result))
