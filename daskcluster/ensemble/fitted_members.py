"""Any clusterer, m seeds -> base clusterings (n, m), by fitting it m times."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..errors import collected_warnings
from ..io.inputs import Rows
from ..io.models import can_be_saved, load_model, write_model
from ..kernels.rows import finite_rows
from ..kernels.sparse_rows import is_sparse
from ..pipeline.scan import RowScan
from ..runtime.execution import compute, map_rows
from ..runtime.forecast import Cost, Sizes, place_products
from ..runtime.pieces import array_pieces, recut
from ..runtime.stages import Run
from ..validation import check_flag, check_real, most_clusters
from .members import (
    MOST_NUMBER,
    MakeMembers,
    Member,
    Members,
    label_dtype,
    like_labels,
    member_name,
    member_seeds,
    takes,
)
from .row_sample import RowSample, rows_seen

__all__ = ["FittedMembers", "predict_finite"]


#: Constrained base clusterings differ from k by so much with ``k_range=None``, as in section 5.3 of
#: fast_csc_and_secrp_2017: from k - 5 to k + 4.
FEWER, MORE = 5, 4


@dataclass(frozen=True)
class FittedMembers(MakeMembers):
    """Base clusterings by fitting clones of a clusterer.

    Attributes
    ----------
    base : estimator
        With `fit_predict`.
    lazy : bool
        Whether the clusterer is of this package and takes chunked rows; else it gets the finite ones in memory.
    sample_rate : float
        Share of the rows of every block that each base clustering sees, drawn anew for each: the row segmentation of
        sec_2015, section 5.
    predict_unsampled : bool
        Give the other rows the label that the fitted clusterer predicts, not -1.
    base_cost : callable or None
        Sizes -> cost of one fit, if the clusterer says.
    """

    base: Any = None
    lazy: bool = False
    sample_rate: float = 1.0
    predict_unsampled: bool = False
    base_cost: Callable[[Sizes], Cost] | None = None

    def check(self) -> None:
        """Refuse a share of rows that is none, and a range for a clusterer without a number of clusters."""
        super().check()
        if not 0 < check_real("sample_rate", self.sample_rate, 0.0) <= 1:
            raise ValueError(f"sample_rate must be above 0 and at most 1, got {self.sample_rate}")
        check_flag("predict_unsampled", self.predict_unsampled)
        if self.k_range is not None and not self._numbered:
            raise ValueError(
                f"k_range must be None for a base without n_clusters ({type(self.base).__name__}), got {self.k_range!r}"
            )

    @property
    def _numbered(self) -> bool:
        return "n_clusters" in self.base.get_params(deep=False)

    def _asked(self, n_seen: int) -> tuple[int, int] | None:
        if not self._numbered:
            return None
        if self.k_range is None and takes(self.base, "constraints"):
            k = self.n_clusters
            low, high = max(min(2, k), k - FEWER), k + MORE
        else:
            low, high = super()._asked(n_seen) or (1, MOST_NUMBER)
        most = most_clusters(self.base)
        return (low, high) if most is None else (min(low, most), min(high, most))

    def __call__(
        self, run: Run, found: RowScan, guide: Callable[[RowSample | None], dict[str, Any]] | None = None
    ) -> Members:
        """Make them.

        Parameters
        ----------
        run : Run
            Products ``base-000-labels`` and so on; what a named store has is not made again. Beside them the models
            ``base-000``, of clusterers of this package that label new rows.
        found : RowScan
        guide : callable, optional
            RowSample, or None for all rows -> what else the clusterer's fit gets.
        """
        seeds = member_seeds(run.seed, self.n_base_clusterings)
        with run.products.making("seen-rows", stays=True):
            n_seen = rows_seen(run.rows, self.sample_rate, seeds, found.n_valid)
        least = self.n_clusters if self._numbered else 1
        if n_seen < least:
            raise ValueError(
                f"sample_rate must leave each base clusterer {least} rows at least, got "
                f"sample_rate={self.sample_rate}: {n_seen} rows without NaN or infinity, and "
                f"n_clusters={self.n_clusters}"
            )
        k_range, numbers, seeds = self._drawn(n_seen, self._n_labelled(found.n_valid), run.seed)
        # A model comes before its labels: where they are, it is too.
        keeps = self.lazy and hasattr(self.base, "predict") and can_be_saved(self.base)
        made = []
        for i, (number, seed) in enumerate(zip(numbers, seeds, strict=True)):
            run.detail(f"{i + 1} of {len(numbers)}")
            stored = self._stored(run, i, keeps)
            made.append(stored or self._fit(run, i, number, seed, keeps, guide or unguided))
        run.products.sweep("base-")
        members, labels = zip(*made, strict=True)
        return Members(list(members), list(labels), k_range, numbers, seeds)

    def _n_labelled(self, n_valid: int) -> int:
        """Rows with a label in some base clustering, as many as are likely."""
        if self.sample_rate >= 1 or self.predict_unsampled:
            return n_valid
        return int(n_valid * (1 - (1 - self.sample_rate) ** self.n_base_clusterings))

    def _stored(self, run: Run, i: int, keeps: bool) -> tuple[Member, da.Array] | None:
        name, products = member_name(i), run.products
        labels = products.kept_rows(f"{name}-labels", like_labels(run.rows, 1))
        if labels is None or not keeps:
            return None if labels is None else (Member(None), labels)
        model = products.kept(name, partial(load_model, classes=(type(self.base),)))
        return None if model is None else (Member(model), labels)

    def _fit(
        self, run: Run, i: int, number: Any, seed: int, keeps: bool, guide: Callable[..., Any]
    ) -> tuple[Member, da.Array]:
        from ..errors import FewerClustersWarning  # imports scikit-learn

        clusterer = _prepared(self.base, number, seed)
        taken = None if self.sample_rate >= 1 else RowSample(self.sample_rate, seed, run.rows)
        # Whoever fits an ensemble hears once of what its base clusterers say m times.
        # What another package's clusterer fits inside may be other rows in each run.
        with run.products.inner(member_name(i)) if self.lazy else nullcontext():
            with collected_warnings() as said:
                labels = _fit_one(run.rows, clusterer, taken, self.lazy, self.predict_unsampled, guide(taken))
            if keeps and run.products.named:
                run.products.discard(member_name(i))  # of a run that was stopped before the labels, or damaged
                write_model(clusterer, run.products.path(member_name(i)))
            held, _ = run.products.rows(f"{member_name(i)}-labels", labels)
        # The number of clusters was drawn, nobody asked for it.
        warned = [warning for warning in said if not issubclass(warning.category, FewerClustersWarning)]
        return Member(clusterer if hasattr(clusterer, "predict") else None, warned), held

    def cost(self, sizes: Sizes) -> Cost:
        """M times a fit: of its own stages, which may hold products meanwhile, or on all rows in memory."""
        m, n = self.n_base_clusterings, sizes.n_samples
        held = (2 * n,) * m
        if self.base_cost is None:
            one = sizes.over_input(0, eager_bytes=3 * sizes.input_bytes)
            return replace(one * m, written_bytes=2 * m * n, held=held)
        one = self.base_cost(sizes)
        _, in_memory, _ = place_products(None, one.held)
        eager = one.eager_bytes + in_memory + one.small_bytes
        return replace(one * m, eager_bytes=eager, held=held, small_bytes=one.small_bytes * m)

    @property
    def kept(self) -> tuple[str, ...]:
        """The labels of each."""
        return tuple(f"{member_name(i)}-labels" for i in range(self.n_base_clusterings))


def unguided(taken: RowSample | None) -> dict[str, Any]:
    """What a `fit` without constraints gets beside the rows."""
    return {}


def _prepared(base: Any, number: int | None, seed: int) -> Any:
    from sklearn.base import clone  # takes a second, which processes that only work do without

    clusterer = clone(base)
    known = clusterer.get_params(deep=False)
    if number is not None:
        clusterer.set_params(n_clusters=number)
    if "random_state" in known:
        clusterer.set_params(random_state=seed)
    return clusterer


def _fit_one(
    rows: Rows,
    clusterer: Any,
    taken: RowSample | None,
    lazy: bool,
    predict_unsampled: bool,
    fit_parameters: dict[str, Any],
) -> da.Array:
    """Fit one clusterer; its labels (n,), lazy, of the smallest integer dtype that holds them."""
    blocks = rows.blocks if taken is None else taken.take(rows.blocks)
    predicted = predict_unsampled and taken is not None
    if lazy:
        clusterer.fit(blocks, **fit_parameters)
        labels = clusterer.predict(rows.blocks) if predicted else clusterer.labels_
        labels = labels.astype(label_dtype(clusterer.n_clusters_))
        del clusterer.labels_
    else:
        found = _fit_in_memory(blocks, clusterer, fit_parameters)
        if predicted:
            # A clusterer may predict labels that its own rows did not get.
            dtype = np.promote_types(found.dtype, np.int32)
            labels = map_rows(
                predict_finite,
                rows.blocks,
                name="dc-predict",
                columns=None,
                dtype=dtype,
                clusterer=clusterer,
                as_dtype=dtype,
            )
        else:
            labels = array_pieces(found, (rows.block_rows,), "labels")
    if taken is None or predicted:
        return recut(labels, (rows.blocks.chunks[0],))
    return taken.spread(labels)


def _fit_in_memory(blocks: da.Array, clusterer: Any, fit_parameters: dict[str, Any]) -> NDArray[np.signedinteger[Any]]:
    raw = compute(blocks)[0]
    finite = finite_rows(raw)
    inside = raw if finite is None else raw[finite]
    if finite is not None and fit_parameters:
        raise ValueError(
            f"constraints name rows of the whole, but {type(clusterer).__name__} gets only the {len(inside)} of "
            f"{len(raw)} rows without NaN or infinity"
        )
    found = _checked_labels(clusterer.fit_predict(_as_others_take_it(inside), **fit_parameters), len(inside), clusterer)
    labels = np.full(len(raw), -1, label_dtype(int(found.max(initial=0)) + 1))
    labels[slice(None) if finite is None else finite] = found
    return labels


def _as_others_take_it(rows: Any) -> Any:
    return rows.matrix if is_sparse(rows) else np.asarray(rows)


def _checked_labels(found: Any, n_rows: int, clusterer: Any) -> NDArray[np.int64]:
    """Labels as a clusterer of another package gives them, as int64; -1 for all negative ones."""
    found = np.asarray(found)
    if found.shape != (n_rows,) or found.dtype.kind not in "iub":
        raise TypeError(
            f"base must give one whole number a row, got shape {found.shape} and dtype {found.dtype} "
            f"from {type(clusterer).__name__} for {n_rows} rows"
        )
    if found.dtype == np.uint64 and n_rows and found.max() >= 2**63:
        raise ValueError(f"base must give labels below 2**63, got {found.max()} from {type(clusterer).__name__}")
    return np.maximum(found.astype(np.int64), -1)


def predict_finite(block: NDArray[Any], clusterer: Any, as_dtype: Any = np.int64) -> NDArray[np.signedinteger[Any]]:
    """Labels of a raw block by a clusterer that takes finite rows in memory; -1 for the others."""
    finite = finite_rows(block)
    labels = np.full(len(block), -1, as_dtype)
    inside = block if finite is None else block[finite]
    if len(inside):
        found = _checked_labels(clusterer.predict(_as_others_take_it(inside)), len(inside), clusterer)
        if found.max() > np.iinfo(as_dtype).max:
            raise ValueError(
                f"base must predict labels like those that it gave in fit, got {found.max()} from "
                f"{type(clusterer).__name__}"
            )
        labels[slice(None) if finite is None else finite] = found
    return labels
