"""Constraints -> layers of a multi-layer graph, and their subspaces on the Grassmann manifold.

Layer 1 is the affinity graph of the rows, layer 2 the must-links, eq. (9) of csp_ml_and_fast_csp_ml_2019, and layer 3
all pairs but the cannot-links, eq. (10). Everything here works on normalized adjacencies A = D^-1/2 W D^-1/2 = I - L:
the first eigenvectors of a Laplacian are the largest of A. Diagonals are zero, and a row without edges in a layer stays
zero in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import dask
import dask.array as da
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..kernels.rows import finite_rows
from ..linalg import largest_eigenpairs
from ..pipeline.rows import RowForm, Rows
from ..runtime.execution import compute, map_to_objects, reduce_blocks
from ..runtime.seeding import stream
from ..runtime.threads import one_blas_thread
from .constraints import Links, RowConstraints

__all__ = [
    "Layer",
    "SampledLayers",
    "affinity_layer",
    "constraint_layers",
    "embed_rows",
    "multilayer_embedding",
    "sample_layers",
    "unit_rows",
]

Matrix = NDArray[np.float64]

#: Up to so many rows the modified adjacency is formed, 8 n**2 bytes, and its eigenvectors are exact.
FORMED_ROWS = 4096
#: Rows that are compared with the sampled rows at a time.
TILE_ROWS = 2**11
#: Eigenvalues below carry no direction.
LEAST_EIGENVALUE = 1e-9
#: The iteration above `FORMED_ROWS`: spare vectors, products between two restarts, restarts, residual.
SPARE_VECTORS = 8
KRYLOV_STEPS = 15
MOST_RESTARTS = 60
RESIDUAL = 1e-7


class Layer(Protocol):
    """An adjacency matrix W that is applied, not stored."""

    degrees: Matrix  # (n,)

    def apply(self, vectors: Matrix) -> Matrix:
        """W V of (n, q)."""
        ...


class MatrixLayer:
    """A layer whose W is in memory: dense, or sparse.

    Parameters
    ----------
    matrix : (n, n)
        Symmetric, zero diagonal.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.degrees: Matrix = np.asarray(matrix.sum(axis=1), np.float64).ravel()

    def apply(self, vectors: Matrix) -> Matrix:
        """W V."""
        return np.asarray(self.matrix @ vectors)


class ClassLayer:
    """Must-links of partial labels: w_i w_j between rows of one class, as the product of (n, T) memberships.

    Parameters
    ----------
    members : sparse (n, T)
        w_i at the class of row i.
    """

    def __init__(self, members: Any) -> None:
        self.members = members
        self.own: Matrix = np.asarray(members.multiply(members).sum(axis=1), np.float64).ravel()
        self.degrees: Matrix = np.maximum(self.apply(np.ones((members.shape[0], 1)))[:, 0], 0.0)

    def apply(self, vectors: Matrix) -> Matrix:
        """W V; O(n q)."""
        return np.asarray(self.members @ (self.members.T @ vectors)) - self.own[:, None] * vectors


class ComplementLayer:
    """All pairs but the cannot-links: ones minus a sparse or low-rank matrix, O(n q) a product.

    Parameters
    ----------
    apart : Layer or None
        Weights of the cannot-links.
    n_rows : int
    """

    def __init__(self, apart: Layer | None, n_rows: int) -> None:
        self.apart = apart
        self.degrees: Matrix = self.apply(np.ones((n_rows, 1)))[:, 0]
        self.degrees[self.degrees < 1e-9 * n_rows] = 0.0  # rounding of a row that is apart from every other

    def apply(self, vectors: Matrix) -> Matrix:
        """W V."""
        product = vectors.sum(axis=0) - vectors
        return product if self.apart is None else product - self.apart.apply(vectors)


class _ApartClasses:
    """Cannot-links of partial labels: w_i w_j between rows of different classes."""

    def __init__(self, members: Any, same: ClassLayer) -> None:
        self.same = same
        self.weights: Matrix = np.asarray(members.sum(axis=1), np.float64).ravel()
        self.degrees = self.apply(np.ones((members.shape[0], 1)))[:, 0]

    def apply(self, vectors: Matrix) -> Matrix:
        """W V."""
        together = self.same.apply(vectors) + self.same.own[:, None] * vectors
        return self.weights[:, None] * (self.weights @ vectors) - together


def affinity_layer(rows: NDArray[np.floating], gamma: float) -> MatrixLayer:
    """Layer 1: Gaussian affinities exp(-gamma sqdist) of all pairs of rows (n, d); 8 n**2 bytes."""
    points: Matrix = np.asarray(rows, np.float64)
    affinities = np.concatenate([gaussian_columns(points[tile], points, gamma) for tile in _tiles(len(points))])
    affinities = (affinities + affinities.T) / 2
    np.fill_diagonal(affinities, 0.0)
    return MatrixLayer(affinities)


def gaussian_columns(rows: Matrix, landmarks: Matrix, gamma: float) -> Matrix:
    """Gaussian affinities (n, l) of rows to landmarks."""
    sqdist = (rows * rows).sum(axis=1)[:, None] + (landmarks * landmarks).sum(axis=1)
    with one_blas_thread():
        sqdist -= 2.0 * (rows @ landmarks.T)
    np.maximum(sqdist, 0.0, out=sqdist)
    sqdist *= -gamma
    return np.exp(sqdist, out=sqdist)


def constraint_layers(constraints: RowConstraints, n_rows: int) -> list[Layer]:
    """Layers 2 and 3 of constraints on rows in memory.

    Notes
    -----
    A cannot-link of weight t leaves 1 - t in layer 3, which the paper's text does not say and its hard case, 0, asks
    for. A layer without edges is left out: no must-links, or cannot-links between all rows.
    """
    together: Layer | None = None
    apart: Layer | None = None
    if constraints.codes is not None and constraints.n_classes:
        members = _memberships(constraints)
        together = same = ClassLayer(members)
        apart = _ApartClasses(members, same)
    if len(constraints.must_link):
        together = MatrixLayer(_symmetric(constraints.must_link, n_rows))
    if len(constraints.cannot_link):
        apart = MatrixLayer(_symmetric(constraints.cannot_link, n_rows))
    layers = [layer for layer in (together, ComplementLayer(apart, n_rows)) if layer is not None]
    return [layer for layer in layers if (layer.degrees > 0).any()]


def _memberships(constraints: RowConstraints) -> Any:
    codes, confidences = compute(constraints.codes, constraints.confidences)
    rows = np.flatnonzero(codes >= 0)
    weights = np.ones(len(rows)) if confidences is None else confidences[rows].astype(np.float64)
    return scipy.sparse.csr_array((weights, (rows, codes[rows])), shape=(len(codes), constraints.n_classes))


def _symmetric(links: Links, n_rows: int) -> Any:
    half = scipy.sparse.csr_array((links.weights, (links.first, links.second)), shape=(n_rows, n_rows))
    return (half + half.T).tocsr()


def _tiles(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, TILE_ROWS):
        yield slice(start, min(start + TILE_ROWS, n_rows))


def _inverse_roots(degrees: Matrix) -> Matrix:
    """1 / sqrt(degree), 0 for rows without edges."""
    there = degrees > 0
    return np.where(there, 1.0 / np.sqrt(np.where(there, degrees, 1.0)), 0.0)


def unit_rows(embedding: Matrix) -> Matrix:
    """Rows at unit length; rows of zeros stay."""
    norms = np.linalg.norm(embedding, axis=1, keepdims=True)
    return embedding / np.where(norms > 0, norms, 1.0)


def multilayer_embedding(
    layers: Sequence[Layer], n_components: int, alpha: float, seed: int = 0
) -> tuple[Matrix, Matrix]:
    """Spectral embedding of a multi-layer graph; Algorithm 2 and eq. (5) of csp_ml_and_fast_csp_ml_2019.

    Parameters
    ----------
    layers : sequence of Layer
    n_components : int
        k.
    alpha : float
        Weight of the layers' subspaces, >= 0.
    seed : int
        Of the start of the iteration that serves more than `FORMED_ROWS` rows.

    Returns
    -------
    embedding : (n, k) float64
        Rows at unit length.
    eigenvalues : (k,) float64
        Of the modified adjacency sum A_i + alpha sum U_i U_i^T, descending: m minus those of L_mod.

    Notes
    -----
    L_mod = sum L_i - alpha sum U_i U_i^T, so its first eigenvectors are the largest of the modified adjacency. U_i are
    the largest eigenvectors of A_i, without those whose eigenvalue is not positive: a layer of few classes has fewer
    than k directions, and the others would be arbitrary vectors of its rows without edges.
    """
    scales = [_inverse_roots(layer.degrees)[:, None] for layer in layers]
    n_rows = len(scales[0])
    k = min(n_components, n_rows)

    def normalized(number: int, vectors: Matrix) -> Matrix:
        return scales[number] * layers[number].apply(scales[number] * vectors)

    subspaces = []
    if alpha > 0:
        for number in range(len(layers)):
            values, vectors = leading_eigenvectors(partial(normalized, number), n_rows, k, seed)
            subspaces.append(vectors[:, values > LEAST_EIGENVALUE])

    def modified(vectors: Matrix) -> Matrix:
        total = sum(normalized(number, vectors) for number in range(len(layers)))
        for subspace in subspaces:
            total = total + alpha * (subspace @ (subspace.T @ vectors))
        return np.asarray(total)

    values, vectors = leading_eigenvectors(modified, n_rows, k, seed)
    return unit_rows(vectors), values


def leading_eigenvectors(
    apply: Callable[[Matrix], Matrix], n_rows: int, n_components: int, seed: int
) -> tuple[Matrix, Matrix]:
    """The largest eigenvalues of a symmetric operator, descending, and their vectors.

    Notes
    -----
    Up to `FORMED_ROWS` rows the matrix is formed and solved by LAPACK. Above, a restarted block Krylov iteration with
    full orthogonalization: a block finds the equal eigenvalues that a multi-layer graph has, where ARPACK's single
    vector does not. It ends at a residual of `RESIDUAL`, relative to the largest eigenvalue. 8 n bytes for each of
    (k + 8) * 16 vectors, twice.
    """
    with one_blas_thread():
        if n_rows <= FORMED_ROWS:
            matrix = apply(np.eye(n_rows))
            return largest_eigenpairs((matrix + matrix.T) / 2, n_components)
        width = n_components + SPARE_VECTORS
        block = stream(seed, "krylov").standard_normal((n_rows, width))
        for _ in range(MOST_RESTARTS):
            basis = np.linalg.qr(block)[0]
            images = apply(basis)
            newest = images
            for _ in range(KRYLOV_STEPS):
                for _ in range(3):  # a layer of low rank leaves rounding only, which the first round brings to length 1
                    newest = np.linalg.qr(newest - basis @ (basis.T @ newest))[0]
                basis = np.hstack([basis, newest])
                newest = apply(newest)
                images = np.hstack([images, newest])
            small = basis.T @ images
            values, vectors = largest_eigenpairs((small + small.T) / 2, width)
            block = basis @ vectors
            residual = images @ vectors[:, :n_components] - block[:, :n_components] * values[:n_components]
            if np.linalg.norm(residual, axis=0).max() <= RESIDUAL * max(1.0, abs(float(values[0]))):
                break
        return values[:n_components], np.ascontiguousarray(block[:, :n_components])


# -- sampled columns --------------------------------------------------------------------------------------------------


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
        must = np.where(same, weights, 0.0)
        apart = np.where(same, 0.0, weights)
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
            yield _inverse_roots(layer.sum(axis=1))[:, None] * layer * scales

    def embed(
        self, block: NDArray[Any], start: int, codes: NDArray[np.int32], confidences: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Embedding (n', k) of a raw block, rows at unit length; NaN for rows that are not finite."""
        assert self.maps is not None
        embedded = np.empty((len(block), self.maps.shape[2]), np.float32)
        for tile in _tiles(len(block)):
            raw = np.asarray(block[tile])
            finite = finite_rows(raw)
            if finite is not None:
                raw = np.where(finite[:, None], raw, 0)
            total: Any = 0.0
            with one_blas_thread():
                parts = self.rows_of(raw, start + tile.start, codes[tile], confidences[tile])
                for rows, mapped in zip(parts, self.maps, strict=True):
                    total = total + rows @ mapped
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
    subspace has the eigenvectors of positive eigenvalues only.
    """
    n_sampled, n = len(sampled), n_valid
    landmarks = form.prepare_points(np.asarray(sample, np.float64))
    scaled_gamma = gamma / form.scale / form.scale if not form.unit_length else gamma
    codes, confidences, masses = _sampled_labels(rows, sampled, constraints)
    must, cannot = (
        _sampled_columns(links, sampled, rows.n_samples) for links in (constraints.must_link, constraints.cannot_link)
    )
    task = partial(_column_sums_block, form=form, landmarks=landmarks, gamma=scaled_gamma)
    sums = np.empty((3, n_sampled))
    sums[0] = compute(reduce_blocks(task, _add_sums, rows.blocks, name="dc-columns"))[0]["sums"]
    sums[0] -= np.diagonal(gaussian_columns(landmarks, landmarks, scaled_gamma))
    known = codes >= 0
    own = np.where(known, confidences.astype(np.float64), 0.0)
    in_class = np.where(known, masses[np.where(known, codes, 0)], 0.0) if len(masses) else np.zeros(n_sampled)
    sums[1] = own * (in_class - own)
    sums[2] = (n - 1) - own * (masses.sum() - in_class)
    if must is not None:
        sums[1] += np.asarray(must.sum(axis=0)).ravel()
    if cannot is not None:
        sums[2] -= np.asarray(cannot.sum(axis=0)).ravel()
    sums[np.abs(sums) < 1e-12 * n] = 0.0  # rounding
    scales = np.sqrt(n_sampled / n) * _inverse_roots(np.maximum(sums, 0.0))
    layers = SampledLayers(form, scaled_gamma, landmarks, sampled, codes, confidences, must, cannot, scales)
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
        final, values = _nystroem_map(total, n_components, ratio, positive=False)
        maps = [final] * 3
        if alpha > 0:
            maps = [final + alpha * to_subspace @ (subspace.T @ final) for to_subspace, subspace in subspaces]
    complete = SampledLayers(
        form, scaled_gamma, landmarks, sampled, codes, confidences, must, cannot, scales, np.stack(maps)
    )
    return complete, values / ratio**2


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
    for tile in _tiles(len(block)):
        raw = np.asarray(block[tile])
        finite = finite_rows(raw)
        rows = form.prepare_points(np.asarray(raw if finite is None else raw[finite], np.float64))
        sums += gaussian_columns(rows, landmarks, gamma).sum(axis=0)
    return {"sums": sums}


def _add_sums(parts: list[dict[str, Any]]) -> dict[str, Any]:
    total = parts[0]["sums"].copy()
    for part in parts[1:]:
        total += part["sums"]
    return {"sums": total}


def _sampled_labels(
    rows: Rows, sampled: NDArray[np.int64], constraints: RowConstraints
) -> tuple[NDArray[np.int32], NDArray[np.float32], Matrix]:
    """Classes and weights of the sampled rows, and the classes' sums of weights."""
    if constraints.codes is None or not constraints.n_classes:
        return np.full(len(sampled), -1, np.int32), np.ones(len(sampled), np.float32), np.empty(0)
    columns = constraints.codes[:, None]
    parts = compute(
        map_to_objects(
            _look_up_block,
            columns,
            name="dc-classes",
            weights=constraints.confidences,
            sampled=sampled,
            size=rows.block_rows,
            n_classes=constraints.n_classes,
        )
    )[0]
    masses = np.zeros(constraints.n_classes)
    for part in parts:
        masses += part["masses"]
    codes, confidences = (np.concatenate([part[key] for part in parts]) for key in ("codes", "confidences"))
    return codes, confidences, masses


def _look_up_block(
    block: NDArray[np.int32],
    number: int,
    sampled: NDArray[np.int64],
    size: int,
    n_classes: int,
    weights: NDArray[np.float32] | None = None,
) -> dict[str, Any]:
    codes = block[:, 0]
    confidences = np.ones(len(codes), np.float32) if weights is None else weights[:, 0]
    low, high = np.searchsorted(sampled, [number * size, number * size + len(codes)])
    there, places = codes >= 0, sampled[low:high] - number * size
    return {
        "masses": np.bincount(codes[there], confidences[there], n_classes).astype(np.float64),
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
    others = [part[:, None] for part in (constraints.codes, constraints.confidences) if part is not None]
    k = layers.maps.shape[2]
    return da.map_blocks(
        _embed_block,
        rows.blocks,
        *others,
        token="dc-embed",
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
        chunks=(rows.blocks.chunks[0], (k,)),
        layers=dask.delayed(layers, pure=True, traverse=False),
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
