"""The layers of a multi-layer graph through sampled columns: Nystroem's method, row block by row block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..io.inputs import Rows
from ..kernels.rows import finite_rows
from ..linalg import largest_eigenpairs
from ..pipeline.rows import RowForm
from ..runtime.execution import add_parts
from ..runtime.passes import mapped, reduced
from ..runtime.pieces import as_column, once
from ..runtime.threads import one_blas_thread
from .embedding import LEAST_EIGENVALUE, inverse_roots, unit_rows
from .layers import gaussian_columns, row_tiles
from .links import NO_LINKS, Links, named_rows
from .row_constraints import RowConstraints

__all__ = ["SampledLayers", "embed_rows", "sample_layers"]

Matrix = NDArray[np.float64]
NO_CLASSES = np.empty(0, np.bool_)
#: What is left of an eigenvalue without the diagonal of neutral rows, at least, as a share of that.
LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class SampledLayers:
    """Columns S of the layers, made row block by row block, and the map from a row of them to its embedding.

    Attributes
    ----------
    form : RowForm
    gamma : float
        In the units of the prepared rows.
    landmarks : (l, d) float64
        The sampled rows, prepared.
    sampled : (l,) int64
        Their numbers, ascending.
    codes, confidences : (l,)
        Their classes and weights; codes of -1 without labels.
    must, cannot : sparse (n, l) or None
        Columns of the pairs.
    column_scales : (3, l) float64
        sqrt(l / n) Delta of eq. (14).
    maps : (3, l, k) float64, or None before they are known
        From the scaled rows of the layers to the embedding.
    neutral_scales : (k,) float64, or None
        Factors of the embedding of rows without must-links, which layer 2 is not to penalize.
    linked_classes : (T,) bool
        Classes of two rows or more.
    linked_rows : (m,) int64
        Rows that the must-links of pairs name, ascending.
    apart : bool
        Whether codes are of groups whose rows must not meet, not of classes.
    """

    form: RowForm
    gamma: float
    landmarks: Matrix
    sampled: NDArray[np.int64]
    codes: NDArray[np.int32]
    confidences: NDArray[np.float32]
    must: Any
    cannot: Any
    column_scales: Matrix
    maps: Matrix | None = None
    neutral_scales: Matrix | None = None
    linked_classes: NDArray[np.bool_] = field(default_factory=lambda: NO_CLASSES)
    linked_rows: NDArray[np.int64] = field(default_factory=lambda: NO_LINKS.first)
    apart: bool = False

    @property
    def n_constrained(self) -> int:
        """Sampled rows that a constraint names: without any, layers 2 and 3 know nothing."""
        named = self.codes >= 0
        for pairs in (self.must, self.cannot):
            if pairs is not None:
                named = named | (np.asarray((pairs != 0).sum(axis=0)).ravel() > 0)
        return int(named.sum())

    def rows_of(
        self, block: NDArray[Any], start: int, codes: NDArray[np.int32], confidences: NDArray[np.float32]
    ) -> Iterator[Matrix]:
        """Rows of sqrt(l / n) D W_i(:, S) Delta (n', l) of finite raw rows, one layer after the other.

        `start` is the first row's number, and the block's rows follow each other.
        """
        first, last = np.searchsorted(self.sampled, [start, start + len(block)])
        own = (self.sampled[first:last] - start, np.arange(first, last))
        links = (codes[:, None] >= 0) & (self.codes >= 0)
        weights = np.where(links, confidences[:, None].astype(np.float64) * self.confidences, 0.0)
        same = codes[:, None] == self.codes
        must = np.where(same & (not self.apart), weights, 0.0)
        apart = np.where(same != self.apart, 0.0, weights)
        if self.must is not None:
            must += self.must[start : start + len(block)].toarray()
        if self.cannot is not None:
            apart += self.cannot[start : start + len(block)].toarray()
        rows = self.form.prepare_points(np.asarray(block, np.float64))
        layers: list[Callable[[], Matrix]] = [
            lambda: gaussian_columns(rows, self.landmarks, self.gamma),
            lambda: must,
            lambda: 1.0 - apart,
        ]
        for make, scales in zip(layers, self.column_scales, strict=True):
            layer = make()
            layer[own] = 0.0
            yield inverse_roots(layer.sum(axis=1))[:, None] * layer * scales

    def linked(self, start: int, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of the rows that begin at number `start` have a must-link."""
        linked = np.zeros(len(codes), np.bool_)
        if len(self.linked_classes):
            there = codes >= 0
            linked[there] = self.linked_classes[codes[there]]
        low, high = np.searchsorted(self.linked_rows, [start, start + len(codes)])
        linked[self.linked_rows[low:high] - start] = True
        return linked

    def embed(
        self, block: NDArray[Any], start: int, codes: NDArray[np.int32], confidences: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Embedding (n', k) of a raw block, rows at unit length; NaN for rows that are not finite."""
        assert self.maps is not None
        embedded = np.empty((len(block), self.maps.shape[2]), np.float32)
        for tile in row_tiles(len(block)):
            raw = np.asarray(block[tile])
            finite = finite_rows(raw)
            if finite is not None:
                raw = np.where(finite[:, None], raw, 0)
            total: Any = 0.0
            with one_blas_thread():
                parts = self.rows_of(raw, start + tile.start, codes[tile], confidences[tile])
                for rows, mapped in zip(parts, self.maps, strict=True):
                    total = total + rows @ mapped
            if self.neutral_scales is not None:
                alone = ~self.linked(start + tile.start, codes[tile])
                total[alone] *= self.neutral_scales
            embedded[tile] = unit_rows(total)
            if finite is not None:
                embedded[tile][~finite] = np.nan
        return embedded


def sample_layers(
    rows: Rows,
    form: RowForm,
    sample: NDArray[Any],
    sampled: NDArray[np.int64],
    n_valid: int,
    constraints: RowConstraints,
    gamma: float,
    n_components: int,
    alpha: float,
    *,
    neutral: bool = False,
) -> tuple[SampledLayers, Matrix]:
    """Nystroem approximation of the multi-layer graph; Algorithm 4 of csp_ml_and_fast_csp_ml_2019.

    Parameters
    ----------
    rows : Rows
    form : RowForm
    sample : (l, d)
        Raw sampled rows, the same for all layers.
    sampled : (l,) int64
        Their numbers, ascending.
    n_valid : int
        n, rows that take part.
    constraints : RowConstraints
    gamma : float
        Of exp(-gamma sqdist), in the units of the input.
    n_components : int
        k.
    alpha : float
    neutral : bool
        Whether layer 2 is not to penalize rows without must-links: A_ii = 1 there.

    Returns
    -------
    layers : SampledLayers
        Its `embed` gives the rows of U.
    eigenvalues : (k',) float64
        Of the modified adjacency, n / l times those of the sampled one, descending.

    Notes
    -----
    One pass over the rows, for the column sums Delta, eq. (14), of layer 1; those of the constraint layers follow from
    the classes' sums or the pairs. C_i = sqrt(l / n) D W_i(:, S) Delta, Q_i = sym(C_i(S, :)), and with its largest
    eigenpairs U_i = sqrt(l / n) C_i U_Q Sigma^+. The sampled modified adjacency sum C_i + alpha sum U_i U_i(S, :)^T,
    eq. (15) and (16), is treated in the same way. All of it is linear in the rows of the C_i, so that a block's rows
    are computed, mapped to the k columns of U by three (l, k) matrices, and dropped: O(n l (d + k)) in all, and memory
    for one tile of 2,048 rows.

    Departures: the normalized adjacency stands for the Laplacian, whose wanted eigenvalues are the small ones, which
    Nystroem's method does not approximate; diagonals are zero; a layer's
    subspace has the eigenvectors of positive eigenvalues only. With `neutral` a row without must-links has 1 on the
    diagonal of A_2, of which a sampled problem sees l / n: an eigenvector u of value s has s u_i = sum_j C_ij u_j +
    (l / n) u_i there, so such rows of the embedding are multiplied by s / (s - l / n).
    """
    n_sampled, n = len(sampled), n_valid
    landmarks = form.prepare_points(np.asarray(sample, np.float64))
    scaled_gamma = gamma / form.scale / form.scale if not form.unit_length else gamma
    codes, confidences, masses, linked_classes = _sampled_labels(rows, sampled, constraints)
    must, cannot = (
        _sampled_columns(links, sampled, rows.n_samples) for links in (constraints.must_link, constraints.cannot_link)
    )
    task = partial(_column_sums_block, form=form, landmarks=landmarks, gamma=scaled_gamma)
    sums = np.empty((3, n_sampled))
    sums[0] = reduced(task, add_parts, rows.blocks, name="dc-columns")["sums"]
    sums[0] -= np.diagonal(gaussian_columns(landmarks, landmarks, scaled_gamma))
    known = codes >= 0
    own = np.where(known, confidences.astype(np.float64), 0.0)
    in_class = np.where(known, masses[np.where(known, codes, 0)], 0.0) if len(masses) else np.zeros(n_sampled)
    sums[1] = 0.0 if constraints.apart else own * (in_class - own)
    sums[2] = (n - 1) - own * (in_class - own if constraints.apart else masses.sum() - in_class)
    if must is not None:
        sums[1] += np.asarray(must.sum(axis=0)).ravel()
    if cannot is not None:
        sums[2] -= np.asarray(cannot.sum(axis=0)).ravel()
    sums[np.abs(sums) < 1e-12 * n] = 0.0  # rounding
    scales = np.sqrt(n_sampled / n) * inverse_roots(np.maximum(sums, 0.0))
    layers = SampledLayers(
        form,
        scaled_gamma,
        landmarks,
        sampled,
        codes,
        confidences,
        must,
        cannot,
        scales,
        linked_classes=linked_classes,
        linked_rows=named_rows(constraints.must_link),
        apart=constraints.apart,
    )
    at_sampled = _rows_at(layers, sample)
    with one_blas_thread():
        ratio = np.sqrt(n_sampled / n)
        total = np.zeros((n_sampled, n_sampled))
        subspaces = []
        for columns in at_sampled:
            total += columns
            if alpha > 0:
                to_subspace, _ = _nystroem_map(columns, n_components, ratio, positive=True)
                subspace = columns @ to_subspace  # U_i(S, :)
                subspaces.append((to_subspace, subspace))
                total += alpha * subspace @ subspace.T
        neutral = neutral and bool(linked_classes.any() or len(layers.linked_rows))
        if neutral:
            alone = ~np.concatenate([layers.linked(at, codes[i : i + 1]) for i, at in enumerate(sampled.tolist())])
            total[np.diag_indices_from(total)] += ratio**2 * alone
        final, values = _nystroem_map(total, n_components, ratio, positive=False)
        maps = [final] * 3
        if alpha > 0:
            maps = [final + alpha * to_subspace @ (subspace.T @ final) for to_subspace, subspace in subspaces]
    scale_alone = None
    if neutral:
        apart = values - ratio**2
        scale_alone = values / np.copysign(np.maximum(np.abs(apart), LEAST_SHARE * ratio**2), apart)
    return replace(layers, maps=np.stack(maps), neutral_scales=scale_alone), values / ratio**2


def _nystroem_map(columns: Matrix, n_components: int, ratio: float, *, positive: bool) -> tuple[Matrix, Matrix]:
    """sqrt(l / n) U_Q Sigma^+ (l, k') of the sampled columns at the sampled rows, and the eigenvalues (k',)."""
    values, vectors = largest_eigenpairs((columns + columns.T) / 2, min(n_components, len(columns)))
    carrying = values if positive else np.abs(values)
    kept = carrying > LEAST_EIGENVALUE * max(1.0, float(values[0]))
    if not kept.any():  # a layer without edges
        return np.zeros((len(columns), 1)), np.zeros(1)
    return ratio * vectors[:, kept] / values[kept], values[kept]


def _rows_at(layers: SampledLayers, sample: NDArray[Any]) -> Matrix:
    """The scaled columns (3, l, l) at the sampled rows themselves."""
    found = np.empty((3, len(sample), len(sample)))
    for i in range(len(sample)):
        parts = layers.rows_of(
            sample[i : i + 1], int(layers.sampled[i]), layers.codes[i : i + 1], layers.confidences[i : i + 1]
        )
        for number, part in enumerate(parts):
            found[number, i] = part[0]
    return found


def _column_sums_block(
    block: NDArray[Any], form: RowForm, landmarks: Matrix, gamma: float
) -> dict[str, NDArray[np.float64]]:
    sums = np.zeros(len(landmarks))
    for tile in row_tiles(len(block)):
        raw = np.asarray(block[tile])
        finite = finite_rows(raw)
        rows = form.prepare_points(np.asarray(raw if finite is None else raw[finite], np.float64))
        sums += gaussian_columns(rows, landmarks, gamma).sum(axis=0)
    return {"sums": sums}


def _sampled_labels(
    rows: Rows, sampled: NDArray[np.int64], constraints: RowConstraints
) -> tuple[NDArray[np.int32], NDArray[np.float32], Matrix, NDArray[np.bool_]]:
    """Classes and weights of the sampled rows, the classes' sums of weights, and which classes make must-links."""
    if constraints.codes is None or not constraints.n_classes:
        return np.full(len(sampled), -1, np.int32), np.ones(len(sampled), np.float32), np.empty(0), NO_CLASSES
    columns = as_column(constraints.codes)
    parts = mapped(
        _look_up_block,
        columns,
        name="dc-classes",
        weights=constraints.confidences,
        sampled=sampled,
        size=rows.block_rows,
    )
    masses, counts = np.zeros((2, constraints.n_classes))
    for part in parts:
        masses[part["classes"]] += part["masses"]
        counts[part["classes"]] += part["counts"]
    codes, confidences = (np.concatenate([part[key] for part in parts]) for key in ("codes", "confidences"))
    return codes, confidences, masses, NO_CLASSES if constraints.apart else counts > 1


def _look_up_block(
    block: NDArray[np.int32],
    number: int,
    sampled: NDArray[np.int64],
    size: int,
    weights: NDArray[np.float32] | None = None,
) -> dict[str, Any]:
    codes = block[:, 0]
    confidences = np.ones(len(codes), np.float32) if weights is None else weights[:, 0]
    low, high = np.searchsorted(sampled, [number * size, number * size + len(codes)])
    there, places = codes >= 0, sampled[low:high] - number * size
    classes, place = np.unique(codes[there], return_inverse=True)
    return {
        "classes": classes,
        "masses": np.bincount(place.ravel(), confidences[there], len(classes)).astype(np.float64),
        "counts": np.bincount(place.ravel(), minlength=len(classes)),
        "codes": codes[places],
        "confidences": confidences[places],
    }


def _sampled_columns(links: Links, sampled: NDArray[np.int64], n_rows: int) -> Any:
    """Columns S (n, l) of the symmetric matrix of pairs; None when no pair has a row in S."""
    first, second = np.concatenate([links.first, links.second]), np.concatenate([links.second, links.first])
    weights = np.concatenate([links.weights, links.weights])
    inside = np.isin(second, sampled)
    if not inside.any():
        return None
    columns = np.searchsorted(sampled, second[inside])
    return scipy.sparse.csr_array((weights[inside], (first[inside], columns)), shape=(n_rows, len(sampled)))


def embed_rows(rows: Rows, layers: SampledLayers, constraints: RowConstraints) -> da.Array:
    """Embedding of all rows, lazy (n, k) float32; NaN for rows that are missing."""
    assert layers.maps is not None
    others = [as_column(part) for part in (constraints.codes, constraints.confidences) if part is not None]
    k = layers.maps.shape[2]
    return da.map_blocks(
        _embed_block,
        rows.blocks,
        *others,
        token="dc-embed",
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
        chunks=(rows.blocks.chunks[0], (k,)),
        layers=once(layers, "layers", pure=True),
        size=rows.block_rows,
    )


def _embed_block(
    block: NDArray[Any],
    codes: NDArray[np.int32] | None = None,
    confidences: NDArray[np.float32] | None = None,
    *,
    layers: SampledLayers,
    size: int,
    block_id: tuple[int, ...] = (0,),
) -> NDArray[np.float32]:
    known = np.full(len(block), -1, np.int32) if codes is None else codes[:, 0]
    trust = np.ones(len(block), np.float32) if confidences is None else confidences[:, 0]
    return layers.embed(block, block_id[0] * size, known, trust)
