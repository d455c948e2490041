"""Rasters on the command line: stores and files that xarray opens, and labels that it opens on the same grid."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import click

from .cluster import Job
from .failures import InputError
from .options import bundled, combined

__all__ = ["GridChoice", "Raster", "describe_raster", "open_raster", "raster_options", "write_grid"]

#: Suffix -> engine of xarray's, the package that brings it, and what to do without that.
_FILES = {
    **dict.fromkeys((".nc", ".nc4"), ("h5netcdf", "h5netcdf", "pip install 'daskcluster[raster]'")),
    **dict.fromkeys((".tif", ".tiff", ".vrt"), ("rasterio", "rioxarray", "pip install 'daskcluster[raster]'")),
}


@dataclass(frozen=True)
class GridChoice:
    """What of a raster store is meant."""

    variable: str | None = None
    sample_dims: str | None = None
    feature_dim: str | None = None


@dataclass(frozen=True)
class Raster:
    """A raster that was opened, and the keywords with which an estimator takes it."""

    data: Any
    keywords: dict[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Pixels and features."""
        from ..io.rasters import grid_rows

        found = grid_rows(self.data, **self.keywords)
        if found is None:
            raise InputError(
                f"expected a raster with features, got the dimensions {self.data.dims}; say --feature-dim DIM"
            )
        rows, columns = found.rows.shape
        return int(rows), int(columns)

    def column(self, option: str, path: str) -> Any:
        """Labels of the raster at a path as a column in the order of the pixels; None where there is none."""
        from ..io.rasters import grid_rows

        found, labels = grid_rows(self.data, **self.keywords), open_raster(path, GridChoice())
        if found is None or labels is None:
            return None
        named = labels.data
        if hasattr(named, "data_vars"):
            if len(named.data_vars) != 1:
                variables = ", ".join(map(str, named.data_vars))
                raise InputError(f"{option}: expected one variable of labels in {path!r}, got {variables}")
            (named,) = named.data_vars.values()
        try:
            return found.grid.column(option, named.squeeze(drop=True))
        except ValueError as error:
            raise InputError(str(error)) from error


def raster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a `GridChoice`, which the command gets as its argument `grid`."""
    return combined(
        click.option("--variable", metavar="NAME", help="Of a raster store: the variable to take. By default all."),
        click.option("--sample-dims", metavar="Y,X", help="Of a raster: the dimensions of its pixels, in order."),
        click.option("--feature-dim", metavar="BAND", help="Of a raster: the dimension of its features."),
        bundled("grid", GridChoice),
    )(command)


def open_raster(path: str, choice: GridChoice) -> Raster | None:
    """Open a Zarr group that xarray wrote, a NetCDF file or a GeoTIFF, lazily; None for anything else, as an array.

    Raises
    ------
    InputError
        If options of rasters are given for something else, there is no such variable, or a package is not installed.
    """
    from ..io.rasters import feature_dims

    opened = _open(path)
    if opened is None:
        if choice != GridChoice():
            raise InputError(
                f"--variable, --sample-dims and --feature-dim are for rasters that xarray opens; {path!r} is none"
            )
        return None
    # Variables without dimensions, such as spatial_ref, tell of the others.
    opened = opened.set_coords([name for name, variable in opened.data_vars.items() if not variable.ndim])
    names = list(opened.data_vars)
    data: Any = opened
    feature = choice.feature_dim
    if choice.variable is not None:
        if choice.variable not in names:
            raise InputError(f"--variable: {path!r} has no variable {choice.variable!r}; it has {', '.join(names)}")
        data = opened[choice.variable]
    elif len(names) == 1:
        named = feature_dims(opened[names[0]].dims) if choice.sample_dims is None else []
        if opened[names[0]].ndim > 2 or feature is not None or named:
            data = opened[names[0]]
            feature = str(named[0]) if feature is None and len(named) == 1 else feature
    dims = choice.sample_dims
    keywords = {
        "sample_dims": None if dims is None else tuple(part.strip() for part in dims.split(",")),
        "feature_dim": feature,
    }
    return Raster(data, keywords)


def describe_raster(path: str) -> dict[str, Any] | None:
    """What `info` says of a raster: its dimensions, variables, chunks, and the rows that a fit takes; None for others.

    Rows are not said where it is not clear which dimension holds the features.
    """
    opened = _open(path)
    if opened is None:
        return None
    with opened:
        variables = {
            str(name): {
                "dims": list(map(str, each.dims)),
                "shape": list(map(int, each.shape)),
                "dtype": str(each.dtype),
                "chunks": None if each.chunks is None else [max(lengths) for lengths in each.chunks],
                "attributes": {key: value for key, value in each.attrs.items() if isinstance(value, str | int | float)},
            }
            for name, each in opened.data_vars.items()
            if each.ndim  # those without, such as spatial_ref, tell of the others
        }
        about = {
            "dims": {str(dim): int(length) for dim, length in opened.sizes.items()},
            "coordinates": list(map(str, opened.coords)),
            "variables": variables,
        }
    try:
        raster = open_raster(path, GridChoice())
        shape = None if raster is None else list(raster.shape)
    except (InputError, ValueError):
        shape = None
    return {**about, "shape": shape}


def _open(path: str) -> Any:
    suffix = PurePath(path).suffix.lower()
    if suffix not in _FILES and not _is_xarrays(path):
        return None
    engine, package, advice = _FILES.get(suffix, ("zarr", "xarray", "pip install 'daskcluster[raster]'"))
    for needed in ("xarray", package):
        if importlib.util.find_spec(needed) is None:
            raise InputError(f"{path!r} is read with {needed}, which is not installed: {advice}")
    import xarray

    from ..io.rasters import cut_stored

    if engine == "rasterio":
        return xarray.open_dataarray(path, engine=engine, chunks={}).to_dataset(name="band_data")
    opened = xarray.open_dataset(path, engine=engine, chunks={})
    if engine != "h5netcdf":
        return opened
    stored = xarray.open_dataset(path, engine=engine)
    whole = [name for name, each in opened.data_vars.items() if set(map(len, each.chunks or ())) == {1}]
    return opened.assign({name: cut for name in whole if (cut := cut_stored(stored[name])).chunks})


def _is_xarrays(path: str) -> bool:
    """Whether a path is a Zarr group whose arrays have named dimensions, and no saved model."""
    import zarr

    from ..files.nodes import open_node

    try:
        node = open_node(path)
    except (OSError, ValueError, KeyError, ImportError):
        return False  # the caller opens it as an array, and says what stands there
    if not isinstance(node, zarr.Group) or "daskcluster" in node.attrs:
        return False
    arrays = [array for _, array in node.arrays()]
    named = [
        getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS") for array in arrays
    ]
    return any(array.ndim for array in arrays) and all(
        name for name, array in zip(named, arrays, strict=True) if array.ndim
    )


def write_grid(labels: Any, path: str, about: Mapping[str, Any], job: Job) -> dict[str, int]:
    """Store labels on their grid as a group that xarray opens, and count the pixels of each."""
    import zarr

    from ..io import atomic_path
    from ..metrics import count_labels

    labels.attrs["daskcluster"] = {"kind": "labels", **about}
    with job.stage("write labels"), atomic_path(path, overwrite=job.overwrite, kind="group") as temporary:
        # Chunks of label 0 alone are written, too: one that is not there may as well be lost.
        labels.to_dataset().to_zarr(str(temporary), consolidated=False, write_empty_chunks=True)
        with warnings.catch_warnings():  # not in the specification of format 3 yet, but what xarray looks for first
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(str(temporary))
    values, counts = count_labels(_labels_at(path))
    return {str(label): int(count) for label, count in zip(values.tolist(), counts.tolist(), strict=True)}


def _labels_at(path: str) -> Any:
    """Labels of a stored grid as a lazy column; their order does not matter to counts."""
    import xarray

    return xarray.open_dataset(path, engine="zarr", chunks={})["labels"].data.ravel()
