"""Constraints: the options that name them, and files of pairs of rows."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import click

from .failures import InputError
from .options import PATH, bundled, combined
from .rasters import Raster

__all__ = ["Known", "constraint_options", "read_pairs"]

ENCODING = "utf-8-sig"  # utf-8, with the mark before it that some programs write


@dataclass(frozen=True)
class Known:
    """What a user knows about rows, as the options say."""

    partial_labels: str | None
    must_link: str | None
    cannot_link: str | None
    groups: str | None

    def __post_init__(self) -> None:
        """Refuse two forms at once."""
        pairs = self.must_link is not None or self.cannot_link is not None
        if self.groups is not None and (pairs or self.partial_labels is not None):
            raise click.UsageError("give --groups, --partial-labels, or --must-link and --cannot-link")
        if self.partial_labels is not None and pairs:
            raise click.UsageError("give --partial-labels, or --must-link and --cannot-link")

    def paths(self) -> dict[str, str | None]:
        """The files that are read, by option."""
        return {
            "--partial-labels": self.partial_labels,
            "--must-link": self.must_link,
            "--cannot-link": self.cannot_link,
            "--groups": self.groups,
        }

    def constraints(self, estimator: Any, n_samples: int, raster: Raster | None = None) -> Any:
        """Read the constraints for the fit of an estimator to `n_samples` rows; None when no option names any.

        Labels that are a raster themselves need the `raster` of the rows, on whose grid they must lie.
        """
        if self.partial_labels is self.must_link is self.cannot_link is self.groups is None:
            return None
        if not _takes_constraints(estimator):
            given = "--groups needs" if self.groups else "--partial-labels, --must-link and --cannot-link need"
            raise click.UsageError(f"{given} --algorithm fastcsc, or --algorithm ensemble with --base fastcsc")
        from .. import Constraints

        if self.partial_labels is not None:
            on_grid = None if raster is None else raster.column("--partial-labels", self.partial_labels)
            return Constraints.from_labels(self.partial_labels if on_grid is None else on_grid)
        if self.groups is not None:
            return Constraints.from_groups(self.groups)
        must, must_weight = read_pairs("must-link", self.must_link)
        cannot, cannot_weight = read_pairs("cannot-link", self.cannot_link)
        return Constraints.from_pairs(must, cannot, must_weight, cannot_weight, n_samples)


#: The command gets a `Known` as its argument `known`.
constraint_options = combined(
    click.option(
        "--partial-labels",
        type=PATH,
        metavar="LABELS.zarr",
        help="Known labels of the rows, or of the pixels on the grid of X, -1 for unknown; with --algorithm fastcsc, "
        "or an ensemble with --base fastcsc.",
    ),
    click.option(
        "--must-link",
        type=PATH,
        metavar="FILE",
        help="csv or npy file of pairs of row numbers that belong together, with an optional third column of weights.",
    ),
    click.option("--cannot-link", type=PATH, metavar="FILE", help="The same of pairs that do not belong together."),
    click.option(
        "--groups",
        type=PATH,
        metavar="GROUPS.zarr",
        help="Numbers of groups, -1 for none: no two rows of one group belong together.",
    ),
    bundled("known", Known),
)


def _takes_constraints(estimator: Any) -> bool:
    """Tell whether a fit uses constraints: itself, or the base clusterings of an ensemble."""
    import inspect

    used = getattr(estimator, "base", None) or estimator
    return all("constraints" in inspect.signature(part.fit).parameters for part in (estimator, used))


def read_pairs(option: str, path: str | None) -> tuple[Any, Any]:
    """Read pairs (m, 2) and their weights (m,) or None from an npy or csv file."""
    import numpy as np

    if path is None:
        return None, None
    if not os.path.isfile(path):
        raise InputError(f"--{option}: no file at {path!r}")
    if path.endswith(".npy"):
        try:
            table = np.load(path, allow_pickle=False)
        except ValueError as error:
            raise InputError(f"--{option}: {path!r} is no table of numbers: {error}") from error
    else:
        table = _read_csv(option, path)
    if table.size == 0:
        return None, None
    if table.ndim != 2 or table.shape[1] not in (2, 3) or table.dtype.kind not in "iuf":
        raise InputError(
            f"--{option}: expected two columns of row numbers, and a third of weights or none, "
            f"got shape {table.shape} and dtype {table.dtype} in {path!r}"
        )
    return table[:, :2], table[:, 2] if table.shape[1] == 3 else None


def _read_csv(option: str, path: str) -> Any:
    """Read a csv file of two or three columns of numbers, with a line of names above them or none."""
    import numpy as np

    with open(path, encoding=ENCODING, errors="replace") as lines:
        header = _is_header(lines.readline())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an empty file, which is no pairs
            table = np.loadtxt(path, delimiter=",", ndmin=2, skiprows=int(header), encoding=ENCODING)
        if table.size == 0 or table.shape[1] in (2, 3):
            return table
        reason = ""
    except ValueError as error:
        reason = f": {error}"
    _refuse_line(option, path, header)
    raise InputError(f"--{option}: {path!r} is no table of numbers{reason}")


def _refuse_line(option: str, path: str, header: bool) -> None:
    """Refuse the first line of a csv file that is no pair, if there is one."""
    width = 0
    with open(path, encoding=ENCODING, errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            cells = line.partition("#")[0].strip().split(",")
            if cells == [""] or (number == 1 and header):
                continue
            width = width or len(cells)
            if len(cells) not in (2, 3) or len(cells) != width or not all(map(_is_number, cells)):
                raise InputError(
                    f"--{option}: {path!r}, line {number}: expected two row numbers, and a weight or none, "
                    f"separated by commas{' as on the lines above' if len(cells) != width else ''}, "
                    f"got {line.rstrip()!r:.100}"
                )


def _is_header(line: str) -> bool:
    """Tell whether the first line of a csv file holds names: no cell begins as a number does."""
    cells = [cell.strip() for cell in line.split(",")]
    return len(cells) in (2, 3) and not any(cell[:1].isdigit() or cell[:1] in ("+", "-", ".") for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
