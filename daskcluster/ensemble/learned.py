"""Base clusterings -> what ISEC learns of them, on all rows or on some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pipeline.discretize import Discretize
from ..pipeline.kmeans import center_starts
from ..pipeline.lloyd import Centers, best_of_starts
from ..runtime.forecast import Cost, Sizes
from ..runtime.limits import memory_limit
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..validation import check_integer, check_option, check_real
from .agreement import Rule
from .bipartite import SMALL_BYTES
from .distinct import LabelsOfRows
from .incidence import Coded
from .lowrank import co_association, low_rank_bytes, low_rank_representation, spectral_rows, unit_rows

__all__ = ["PARTITIONS", "DiscretizeLearned", "Learned", "LowRank"]

#: What is partitioned.
PARTITIONS = ("H", "Z")
#: Where the partition starts.
STARTS = ("spectral", "random")


@dataclass(frozen=True)
class Learned:
    """What was learned on some rows.

    Attributes
    ----------
    codes : (s, m) int
        These rows.
    embedding : (s, k) float64
        At unit length.
    history : (n_iter,) float64
        Relative error after every round.
    """

    codes: NDArray[Any]
    embedding: NDArray[np.float64]
    history: NDArray[np.float64]


@dataclass(frozen=True)
class LowRank(Stage):
    """Learn the low-rank representation and the partition; isec_2020, eq. (5) to (17).

    Attributes
    ----------
    n_clusters : int
    n_representatives : int or None
        Rows to learn on; None for all.
    partition : {"H", "Z"}
    lambda_1, lambda_2 : float
    max_iter : int
    tol : float
    init : {"spectral", "random"}
    """

    title = "low-rank representation"
    n_clusters: int
    n_representatives: int | None
    partition: str
    lambda_1: float
    lambda_2: float
    max_iter: int
    tol: float
    init: str = "spectral"

    def check(self) -> None:
        """Refuse fewer representatives than clusters, an unknown partition or start, and numbers out of range."""
        if self.n_representatives is not None:
            check_integer("n_representatives", self.n_representatives, self.n_clusters)
        check_option("partition", self.partition, PARTITIONS)
        check_option("init", self.init, STARTS)
        check_real("lambda_1", self.lambda_1, 0.0)
        check_real("lambda_2", self.lambda_2, 0.0)
        check_integer("max_iter", self.max_iter, 1)
        check_real("tol", self.tol, 0.0)

    def _n_learned(self, n_labelled: int) -> int:
        return n_labelled if self.n_representatives is None else min(self.n_representatives, n_labelled)

    def check_size(self, n_samples: int) -> None:
        """Refuse more rows with a label than fit into memory."""
        p = self._n_learned(n_samples)
        need = low_rank_bytes(p)
        if need > SMALL_BYTES and need > memory_limit() // 2:
            raise MemoryError(
                f"ISEC on {p} rows needs {need / 2**30:.1f} GiB, more than half of the memory "
                f"({memory_limit() / 2**30:.1f} GiB): give n_representatives, at most "
                f"{int(p * np.sqrt(memory_limit() / 2 / need))} here"
            )

    def __call__(self, run: Run, coded: Coded) -> Learned:
        """Learn."""
        with run.products.making("learned-rows", stays=True):
            rows = coded.draw(self._n_learned(coded.n_labelled), stream(run.seed, "learned rows"))
        made = run.products.small("low-rank", lambda: self._learn(rows, coded, run.seed))
        return Learned(rows, made["embedding"], np.atleast_1d(made["history"]))

    def _learn(self, learned: NDArray[Any], coded: Coded, seed: int) -> dict[str, Any]:
        found = low_rank_representation(
            co_association(learned, coded.book),
            self.n_clusters,
            lambda_1=self.lambda_1,
            lambda_2=self.lambda_2,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=stream(seed, "partition") if self.init == "random" else None,
        )
        rows = found.partition if self.partition == "H" else spectral_rows(found.representation, self.n_clusters)
        # Rows with equal labels are one: vectors of repeated eigenvalues may tell them apart, by rounding.
        _, same = np.unique(learned, axis=0, return_inverse=True)
        same = same.ravel()
        sums = np.zeros((int(same.max()) + 1, rows.shape[1]))
        np.add.at(sums, same, rows)
        return {"history": found.history, "embedding": unit_rows((sums / np.bincount(same)[:, None])[same])}

    def cost(self, sizes: Sizes) -> Cost:
        """One pass for the rows; then matrices of s**2 numbers."""
        p = self._n_learned(sizes.n_samples)
        return sizes.over_held(
            0, eager_bytes=low_rank_bytes(p) + 4 * p * sizes.n_right, small_bytes=p * (8 * self.n_clusters + 64)
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """Embedding and history."""
        return ("low-rank",)


@dataclass(frozen=True)
class DiscretizeLearned(Discretize):
    """k-means over all rows through their base clusters, or on the learned rows when these are all.

    Attributes
    ----------
    learns_all : bool
    """

    learns_all: bool = False

    def __call__(self, run: Run, *results: Any) -> Any:
        """Centres; and with `learns_all`, where the one result is the `Learned`, the rule of these rows besides."""
        if not self.learns_all:
            return super().__call__(run, *results)
        return self._on_learned(run, *results)

    def _on_learned(self, run: Run, learned: Learned) -> tuple[Centers, Rule]:
        rngs = (stream(run.seed, "discretize", number) for number in range(self.n_init))
        starts = (center_starts(learned.embedding, self.n_clusters, rng) for rng in rngs)
        centers, labels = best_of_starts(learned.embedding, starts, max_iter=self.max_iter)
        return centers, Rule(LabelsOfRows(learned.codes, labels))

    def cost(self, sizes: Sizes) -> Cost:
        """As for any embedding, or in memory."""
        if not self.learns_all:
            return super().cost(sizes)
        return Cost(eager_bytes=sizes.n_samples * (16 * self.n_clusters + 24 + 2 * sizes.held_bytes))

    @property
    def kept(self) -> tuple[str, ...]:
        """The centres, where they come from passes over all rows."""
        return () if self.learns_all else super().kept
