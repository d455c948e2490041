"""Outputs: refused before any work is done when they could not be written, and written when it is."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from .cluster import Job
from .failures import InputError

if TYPE_CHECKING:
    from ..files.atomic import OutputKind

__all__ = ["about_estimator", "check_outputs", "check_picture", "draw", "write_labels", "write_rows"]


#: Outputs that are no arrays.
_KINDS: dict[str, OutputKind] = {"model": "model", "model.zarr": "model", "picture": "file", "report": "file"}


def check_outputs(
    overwrite: bool,
    inputs: Mapping[str, str | None],
    outputs: Mapping[str, str | None],
    storage: str | None = None,
    *,
    on_grid: bool = False,
) -> None:
    """Refuse outputs that could not be written, or would harm something, before any work is done.

    Parameters
    ----------
    overwrite : bool
        Replace outputs that exist, of the same kind.
    inputs : mapping of str
        What each is called, such as ``"the input"`` or ``"--partial-labels"``, -> path.
    outputs : mapping of str
        Name of each, that of its option without dashes -> path.
    storage : str, optional
        The named store, which has to be apart from all of them.
    on_grid : bool
        Whether labels are a group on the grid of a raster.
    """
    from ..files import check_apart, check_output, check_outside, place_at

    named = {name if name.isupper() or "." in name else f"--{name}": path for name, path in outputs.items()}
    check_apart({"--storage": storage}, inputs)
    check_apart(named, {**inputs, "--storage": storage})
    kinds: dict[str, OutputKind] = {**_KINDS, "labels": "group"} if on_grid else _KINDS
    for name, path in outputs.items():
        if path is not None:
            check_outside(place_at(path), path)
            check_output(path, overwrite=overwrite, kind=kinds.get(name, "array"))


def check_picture(path: str | None, rows: Any) -> None:
    """Refuse a picture that could not be drawn in the end."""
    if path is None:
        return
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--picture needs matplotlib, which is not installed: pip install 'daskcluster[plot]'")
    suffix = Path(path).suffix.lower()
    if suffix not in ("", ".png", ".pdf", ".svg", ".jpg", ".jpeg"):
        raise InputError(f"--picture: expected a .png, .pdf, .svg or .jpg file, got {path!r}")
    if len(rows.shape) != 2 or rows.shape[1] < 2:
        raise InputError(f"--picture needs rows with two features or more, got an array {rows.shape}")


def about_estimator(estimator: Any, **more: Any) -> dict[str, Any]:
    """Tell what made an output: class, parameters (and more of them) and version, as JSON takes them."""
    parameters = estimator.get_params(deep=False)
    del parameters["verbose"]
    plain = {name: repr(value) if hasattr(value, "get_params") else value for name, value in parameters.items()}
    return {"class": type(estimator).__name__, "parameters": plain | more, "version": __version__}


def write_rows(kind: str, values: Any, path: str, about: Mapping[str, Any], job: Job) -> None:
    """Store one value a row, of a kind that the attributes tell."""
    from ..io import write_array

    with job.stage(f"write {kind}"):
        attributes = {"daskcluster": {"kind": kind, **about}}
        write_array(values, path, shards=job.shards, overwrite=job.overwrite, attributes=attributes)


def write_labels(labels: Any, path: str, about: Mapping[str, Any], job: Job) -> dict[str, int]:
    """Store labels, and count the rows of each."""
    from ..metrics import count_labels

    write_rows("labels", labels, path, about, job)
    values, counts = count_labels(path)
    return {str(label): int(count) for label, count in zip(values.tolist(), counts.tolist(), strict=True)}


def draw(rows: Any, labels: Any, path: str, job: Job) -> None:
    """Save a picture of labels; the file's suffix says in which format."""
    from ..io import atomic_path
    from ..plotting import plot_labels

    with job.stage("draw"), atomic_path(path, overwrite=job.overwrite, kind="file") as temporary:
        figure: Any = plot_labels(rows, labels).figure
        figure.savefig(temporary, format=Path(path).suffix.lstrip(".") or "png", dpi=150, bbox_inches="tight")
