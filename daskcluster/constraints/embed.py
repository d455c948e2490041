"""Rows and constraints -> embedding on the multi-layer graph (n, k), exact or by sampled columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..errors import warn_user
from ..io.inputs import Rows
from ..kernels.rows import finite_rows
from ..pipeline.kmeans import sample_size
from ..runtime.forecast import Cost, Sizes
from ..runtime.pieces import array_pieces
from ..runtime.seeding import draw_ranks, stream
from ..runtime.stages import Run, Stage
from ..validation import check_integer, check_option, check_real
from .embedding import FORMED_ROWS, multilayer_embedding
from .given import ConstrainedScan
from .layers import TILE_ROWS, Layer, affinity_layer, constraint_layers, unlinked_rows
from .present import on_valid_rows, valid_rows
from .sampled import embed_rows, sample_layers
from .sampling import gather_rows
from .widths import QUERIES, following_gamma, neighbor_widths, warn_unsuited_gamma

__all__ = ["MOST_ROWS", "EmbedAll", "EmbedSampled", "EmbedLayers", "Embedded"]

#: Rows whose affinities are formed at most: 8 n**2 bytes are 1.2 GB.
MOST_ROWS = 12_000
#: What the must-link layer says of rows without must-links: L_ii = 1, or 0.
UNLINKED = ("penalized", "neutral")
#: Rows from whose distances the width of affinities follows, at least, where all are too many.
WIDTH_ROWS = 1024


@dataclass(frozen=True)
class Embedded:
    """An embedding of the rows.

    Attributes
    ----------
    held : dask array (n, k) float32
        NaN for missing rows.
    eigenvalues : (k,) float64
    landmarks : (l, d) float64
        Sampled rows; (0, d) for none.
    gamma : float
        Width of the affinities, in the units of the input.
    """

    held: da.Array
    eigenvalues: NDArray[np.float64]
    landmarks: NDArray[np.float64]
    gamma: float

    def draw(self, n_clusters: int, seed: int) -> NDArray[np.float32]:
        """Sampled rows of it on which the discretisation starts."""
        drawn = draw_ranks(stream(seed, "starts"), self.held.shape[0], sample_size(n_clusters))
        return gather_rows(self.held, drawn, name="dc-sample")


@dataclass(frozen=True)
class EmbedLayers(Stage):
    """What the two ways to embed rows share: the parameters of the layers.

    Attributes
    ----------
    method : str
        Name of the estimator, for messages.
    n_clusters : int
    alpha : float
    gamma : float or None
        None for one that follows the rows.
    unlinked : {"penalized", "neutral"}
        What the must-link layer says of a row without must-links: L_ii = 1 or 0.
    """

    title = "embedding"
    method: str
    n_clusters: int
    alpha: float
    gamma: float | None
    unlinked: str

    def check(self) -> None:
        """Refuse a negative weight of subspaces, a width that is not above 0, and an unknown reading."""
        check_real("alpha", self.alpha, 0.0)
        if self.gamma is not None and check_real("gamma", self.gamma, 0.0) == 0:
            raise ValueError("gamma must be above 0, got 0")
        check_option("unlinked", self.unlinked, UNLINKED)

    def _gamma(self, prepared: NDArray[np.float64], scale: float) -> float:
        """Width in the units of the input, from its prepared rows or some of them."""
        widths, unit = neighbor_widths(prepared, self.n_clusters), scale * scale
        if self.gamma is None:
            return following_gamma(widths, unit)
        warn_unsuited_gamma(self.method, self.gamma, widths, unit)
        return float(self.gamma)


@dataclass(frozen=True)
class EmbedAll(EmbedLayers):
    """Steps 1 to 4 of Algorithm 3: the exact embedding of rows that fit in memory."""

    def check_size(self, n_samples: int) -> None:
        """Refuse more rows than can be compared in pairs."""
        if n_samples > MOST_ROWS:
            raise ValueError(
                f"CSPML compares all pairs of rows, and takes at most {MOST_ROWS} rows, got {n_samples}; use FastCSPML"
            )

    def __call__(self, run: Run, found: ConstrainedScan) -> Embedded:
        """Embed the rows, all of which are in the scan's sample."""
        rows: Rows = run.rows
        with run.products.making("valid-rows", stays=True):
            valid = valid_rows(rows.blocks, finite_rows, found)
        made = run.products.small("eigenvectors", lambda: self._embed(found, valid, rows.n_samples, run.seed))
        embedding = np.full((rows.n_samples, made["vectors"].shape[1]), np.nan, np.float32)
        embedding[valid] = made["vectors"]
        lazy = array_pieces(embedding, (rows.blocks.chunks[0], (embedding.shape[1],)), "embedding")
        held, _ = run.products.rows("embedding", lazy)
        return Embedded(held, made["values"], np.empty((0, rows.n_features)), float(made["gamma"]))

    def _embed(self, found: ConstrainedScan, valid: NDArray[np.int64], n_samples: int, seed: int) -> dict[str, Any]:
        inside = on_valid_rows(found.known, valid, n_samples)
        scale = found.form.scale
        prepared = found.form.prepare_points(found.sample)
        gamma = self._gamma(prepared, scale)
        layers: list[Layer] = [affinity_layer(prepared, gamma / scale / scale), *constraint_layers(inside, len(valid))]
        linked = [layer for layer in layers if (layer.degrees > 0).any()]
        neutral = unlinked_rows(inside, len(valid)) if self.unlinked == "neutral" else None
        if not linked:  # one row
            return {"vectors": np.zeros((len(valid), 1)), "values": np.zeros(1), "gamma": gamma}
        vectors, values = multilayer_embedding(linked, self.n_clusters, self.alpha, seed, neutral)
        return {"vectors": vectors, "values": values, "gamma": gamma}

    def cost(self, sizes: Sizes) -> Cost:
        """Eager: matrices of n**2 numbers, eight where they are formed, else three and the Krylov vectors."""
        n, k = sizes.n_samples, self.n_clusters
        matrices = 8 * n * n * (8 if n <= FORMED_ROWS else 3) + 8 * n * (k + 8) * 40
        return Cost(
            tasks=sizes.n_blocks,
            written_bytes=4 * k * n,
            held=(4 * k * n,),
            eager_bytes=matrices + 3 * 8 * n * sizes.n_features,
            small_bytes=8 * n * k,
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """Eigenvectors of the rows that are there, and the embedding of all."""
        return ("eigenvectors", "embedding")


@dataclass(frozen=True)
class EmbedSampled(EmbedLayers):
    """The embedding of `multilayer_embedding` for any number of rows, by Nystroem's method.

    Attributes
    ----------
    n_landmarks : int
        l.
    """

    n_landmarks: int

    @property
    def n_drawn(self) -> int:
        """Rows of the scan's sample."""
        return max(self.n_landmarks, WIDTH_ROWS)

    def check(self) -> None:
        """Refuse fewer than one landmark, and what the layers do not take."""
        check_integer("n_landmarks", self.n_landmarks, 1)
        super().check()

    def __call__(self, run: Run, found: ConstrainedScan) -> Embedded:
        """Embed the rows: landmarks are some of the scan's sample, whose distances decide the width."""
        ranks = draw_ranks(stream(run.seed, "sample"), found.n_valid, self.n_drawn)
        chosen = draw_ranks(stream(run.seed, "landmarks"), len(ranks), self.n_landmarks)
        landmarks = found.sample[chosen]
        known = found.known
        gamma = self._gamma(found.form.prepare_points(found.sample), found.form.scale)
        with run.products.making("layers", stays=True):
            sampled = valid_rows(run.rows.blocks, finite_rows, found, ranks[chosen])
            layers, values = sample_layers(
                run.rows,
                found.form,
                landmarks,
                sampled,
                found.n_valid,
                known,
                gamma,
                self.n_clusters,
                self.alpha,
                neutral=self.unlinked == "neutral",
            )
        if not known.empty and not layers.n_constrained:
            warn_user(
                f"{self.method}: 0 of {len(sampled)} sampled rows are constrained; the result is that of the "
                "unconstrained method. Raise n_landmarks, label more rows, or use FastCSC"
            )
        held, _ = run.products.rows("embedding", embed_rows(run.rows, layers, known))
        return Embedded(held, values, landmarks.astype(np.float64), gamma)

    def cost(self, sizes: Sizes) -> Cost:
        """Two passes over the input; for a tile eight arrays of l numbers a row."""
        n, k, sampled = sizes.n_samples, self.n_clusters, min(self.n_landmarks, sizes.n_samples)
        tile = min(TILE_ROWS, sizes.block_rows) * (8 * sampled * 8 + 3 * 8 * sizes.n_features)
        return sizes.over_input(
            sizes.block_rows * (4 * k + 16) + tile,
            times=2,
            reduced=True,
            written_bytes=4 * k * n,
            held=(4 * k * n,),
            eager_bytes=8 * sampled * sampled * 12 + 8 * min(self.n_drawn, n) * (3 * QUERIES + 2 * sizes.n_features),
            small_bytes=8 * sampled * (sizes.n_features + 3 * k + 12 * sampled),
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """The embedding."""
        return ("embedding",)
