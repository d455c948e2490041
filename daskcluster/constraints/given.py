"""What a fit was given: constraints by one of two arguments, brought into the row blocks by its first stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..errors import StorageMismatchError
from ..io.identity import identity_of
from ..kernels.rows import finite_rows
from ..pipeline.scan import RowScan, Scan
from ..runtime.forecast import Cost, Sizes
from ..runtime.stages import Run
from .constraints import Constraints
from .laplacian import check_grouped_rows, check_n_classes
from .present import present_constraints
from .row_constraints import RowConstraints, say_empty

__all__ = ["ConstrainedScan", "ScanConstrained", "ScanPresent", "given_constraints"]


def given_constraints(y: Any, constraints: Constraints | None) -> Constraints | None:
    """The constraints of a `fit`, from one of its two arguments; None when there are none.

    Raises
    ------
    TypeError, ValueError
        If both are given, or `constraints` is something else.
    """
    if constraints is not None and not isinstance(constraints, Constraints):
        raise TypeError(
            "constraints must be made by Constraints.from_labels or from_pairs, or from_groups, "
            f"got a {type(constraints).__name__}"
        )
    if isinstance(y, Constraints):
        raise TypeError("y must be partial labels, got Constraints: give them by name, fit(X, constraints=...)")
    if y is None:
        return constraints
    if constraints is not None:
        raise ValueError("y and constraints are two forms of the same knowledge: give one of them")
    return Constraints.from_labels(y)


@dataclass(frozen=True)
class ConstrainedScan(RowScan):
    """What the first pass found, with the constraints on the rows in `known`."""

    known: RowConstraints


@dataclass(frozen=True)
class ScanConstrained(Scan):
    """Stage 0 with constraints: check both, and open the named store for both.

    Attributes
    ----------
    method : str
        Name of the estimator, for messages.
    n_representatives : int or None
        Representatives on which labels are to be projected, which limits their classes.
    quiet : bool
        Leave it to others to say that there are no constraints.
    """

    method: str = "fit"
    n_representatives: int | None = None
    quiet: bool = False

    def __call__(self, run: Run, y: Any = None, constraints: Constraints | None = None) -> ConstrainedScan:
        """Scan the rows, and bring partial labels or constraints into their blocks."""
        given = given_constraints(y, constraints)
        parts = () if given is None else given.parts
        with run.products.scanning(partial(identity_of, run.rows.source, *parts)):
            known, found = self._scan_both(run, given)
        try:
            run.products.open(f"{found.fingerprint}-{known.fingerprint}")
        except StorageMismatchError as error:
            raise StorageMismatchError(f"{error} (the data are X, and y or constraints)") from None
        return ConstrainedScan(**vars(found), known=known)

    def _scan_both(self, run: Run, given: Constraints | None) -> tuple[RowConstraints, RowScan]:
        known = (given or Constraints.from_pairs()).on_rows(run.rows, fingerprint=run.products.hashes)
        if self.n_representatives is not None and known.apart:
            check_grouped_rows(known.n_coded)
        elif self.n_representatives is not None:
            check_n_classes(known.n_classes, min(self.n_representatives, run.rows.n_samples))
        if not self.quiet:
            say_empty(self.method, known, given is not None)
        return known, self._scan(run)


@dataclass(frozen=True)
class ScanPresent(ScanConstrained):
    """The same, and the constraints without those on missing rows."""

    def __call__(self, run: Run, y: Any = None, constraints: Constraints | None = None) -> ConstrainedScan:
        """Scan the rows, and keep the constraints on those that are there."""
        found = super().__call__(run, y, constraints)
        known = present_constraints(self.method, found.known, run.rows.blocks, finite_rows, found, run.products)
        return replace(found, known=known)

    def cost(self, sizes: Sizes) -> Cost:
        """As without constraints, and the classes, which stay."""
        classes = sizes.over_held(0, written_bytes=4 * sizes.n_samples, held=(4 * sizes.n_samples,))
        return super().cost(sizes) + replace(classes, passes=0)

    @property
    def kept(self) -> tuple[str, ...]:
        """The classes, when there are labels."""
        return ("classes",)
