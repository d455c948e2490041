"""Projected Laplacians -> the constrained cut: one eigenproblem of the representatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..linalg import largest_eigenpairs
from ..pipeline.bipartite import BipartiteGraph, linked_rows
from ..pipeline.cut import TransferCut, graph_bytes, pack_matrix
from ..pipeline.parts import joining_edges, parts_of, without_specks
from ..runtime.execution import FAN_IN
from ..runtime.forecast import Cost, Sizes
from ..runtime.stages import Run, Stage
from ..runtime.threads import one_blas_thread
from ..validation import check_real
from .laplacian import Projection, project_constraints
from .present import present_constraints
from .row_constraints import RowConstraints

__all__ = ["ConstrainedCut", "constrained_cut", "largest_of_pencil", "n_directions"]

#: Directions that carry less than this share of a representative's affinities carry nothing but rounding, which is a
#: few units of 2e-16. A direction that is dropped is missing in Theorem 4: at 1e-9 its eigenvalues were off by 2 %.
LEAST_EIGENVALUE = 1e-12
#: Added to the diagonal of the left-hand matrix, relative to its largest entry: rounding of the sums lies below.
RIDGE = 1e-12
#: Normalized affinities below this are no link: the ridge hides them.
LEAST_LINK = 1e3 * RIDGE
#: Eigenvalues below this share of the largest one are found without it: beside it they would lose their digits.
NEAR_LARGEST = 1e-6
#: The k-th nontrivial eigenvector is left out where its eigenvalue is so many times that of the one before: k - 1 tell
#: k clusters apart, and then it cuts through one of them.
OPEN_GAP = 10.0
#: Directions that cost less than this share of their affinities are there for constraints however few they are: the
#: graph all but falls apart along them.
FREE_COST = 0.02
#: So many constrained rows a cluster leave the graph's own directions as they are: they can do little more than name
#: the clusters. Beyond, each makes room for `direction_factor` others.
NAMING_ROWS = 4


@dataclass(frozen=True)
class ConstrainedCut(Stage):
    """Steps 2 and 3 of Algorithm 1: the first generalized eigenvectors of the constrained graph.

    Attributes
    ----------
    method : str
        Name of the estimator, for messages.
    n_clusters : int
    alpha : float
        Trust in the must-links against the data's own graph.
    direction_factor : float or None
        Directions among which a constrained row lets the cut choose; None for all.
    """

    title = "constrained cut"
    method: str
    n_clusters: int
    alpha: float
    direction_factor: float | None = None

    def check(self) -> None:
        """Refuse a negative trust or number."""
        check_real("alpha", self.alpha, 0.0)
        if self.direction_factor is not None:
            check_real("direction_factor", self.direction_factor, 0.0)

    def __call__(self, run: Run, graph: BipartiteGraph, found: Any) -> TransferCut:
        """Cut the graph with the constraints that the scan has in `known`."""
        known = present_constraints(self.method, found.known, graph.held, linked_rows, found, run.products)
        return TransferCut(**run.products.small("cut", lambda: vars(self._cut(graph, known))))

    def _cut(self, graph: BipartiteGraph, known: RowConstraints) -> TransferCut:
        projection = project_constraints(graph, known)
        cut = constrained_cut(projection, self.n_clusters, self.alpha, graph.points, self.direction_factor)
        return cut.with_graph(pack_matrix(np.triu(projection.gram)))

    def cost(self, sizes: Sizes) -> Cost:
        """Two passes, with labels of as many classes as clusters; see `project_constraints` for a task's sums."""
        p, k, block = sizes.n_right, self.n_clusters, sizes.block_rows
        partial_bytes = 32 * p * p + 8 * k * p
        n_parts = min(sizes.n_blocks, FAN_IN)
        task = block * (sizes.held_bytes + 48) + sizes.tile_rows * 24 * sizes.n_edges + (n_parts + 1) * partial_bytes
        return sizes.over_held(
            task,
            times=2,
            written_bytes=4 * sizes.n_samples,
            held=(4 * sizes.n_samples,),
            eager_bytes=12 * 8 * p * p,
            small_bytes=16 * p * k + graph_bytes(sizes),
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """The classes, when there are labels, and the cut."""
        return ("classes", "cut")


def constrained_cut(
    projection: Projection,
    n_components: int,
    alpha: float,
    points: NDArray[np.float64] | None = None,
    direction_factor: float | None = None,
) -> TransferCut:
    """The first nontrivial generalized eigenvectors of eq. (12) of fast_csc_and_secrp_2017, ready for the lift.

    Parameters
    ----------
    projection : Projection
    n_components : int
        k. When the representatives span no more directions, k - 1 are taken: columns of equal length that are a basis
        of the whole space would put all rows equally far apart.
    alpha : float
        Trust in the must-links against the data's own graph.
    points : (p, d) float64, optional
        Where the representatives are.
    direction_factor : float, optional
        Directions among which a constrained row lets the cut choose, see `n_directions`; by default all are open, and
        the columns are the eigenvectors as they are.

    Returns
    -------
    TransferCut
        Vectors D^-1/2 y at unit length in x = Zhat^T y, so that the lift gives step 5's embedding; eigenvalues lambda
        of L_CGD y = lambda L_CCL y, ascending.

    Notes
    -----
    With G = Zhat Zhat^T, eq. (13) is L_CGD = G - G**2 + alpha Zhat L_ML Zhat^T. The demand graph K / n with
    K_ij = d_i d_j / vol of Cucuringu et al., AISTATS 2016, is added to the cannot-link graph: the landmark graph has
    unit degrees, so it adds (G - g g^T / n) / n to L_CCL, with g = Zhat 1. Without it L_CCL is singular, and zero
    without cannot-links. At y = sqrt(masses), where x = 1, both sides vanish: this trivial vector is deflated by a
    Householder reflection. What is left is written in an orthonormal basis of the vectors x (the eigenvectors of G,
    those below `LEAST_EIGENVALUE` dropped), in which G is I, so that the sides are I - S + alpha ... and I / n + ...,
    and the largest mu = 1 / lambda of B y = mu (A + ridge I) y are found by `largest_of_pencil`. As y is orthogonal to
    g, x has mean zero; the scale of each column is 1 in the D-norm (D = I), as step 5 asks.

    Departures where the cut would be open or go through clusters. While the graph with its must-links has more unlinked
    parts than clusters wanted, specks are left out and the nearest parts that no cannot-link holds apart are joined, as
    in `transfer_cut`. And the k-th nontrivial vector is left out where the eigenvalues leap before it, see `OPEN_GAP`:
    k - 1 of them tell k clusters apart, and at unit length in D it would count as much as they do.

    With a `direction_factor` the problem is solved among the first `n_directions` eigenvectors of G only. A vector that
    is tied to a few constrained rows serves many cannot-links at a moderate cost, so that few labels took the k vectors
    away from clusters that the graph shows. And the columns are then an orthonormal basis, in x, of what was found: the
    one that is nearest to the first eigenvectors of G, so that constraints which change nothing leave it unchanged.

    Eager, 8 p**2 bytes a matrix and six of them. Representatives without affinities are dropped.
    """
    linked, joined = _without_open_parts(projection, n_components, alpha, points)
    masses = projection.masses[linked]
    n = float(masses.sum())
    roots = np.sqrt(masses)
    vectors = np.zeros((len(projection.masses), max(1, min(n_components, len(linked) - 1))))
    if len(linked) < 2:
        return TransferCut(vectors, np.zeros(1), len(linked))

    def projected(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        return _deflate(matrix[np.ix_(linked, linked)] / roots[:, None] / roots, reflector)

    reflector = roots / np.sqrt(n)
    reflector[0] += 1.0 if reflector[0] >= 0 else -1.0
    reflector /= np.linalg.norm(reflector)
    with one_blas_thread():
        spectrum, basis = largest_eigenpairs(projected(projection.gram), len(linked) - 1)
        kept = spectrum > LEAST_EIGENVALUE
        kept[0] = True
        spectrum, basis = spectrum[kept], basis[:, kept]
        n_all, n_open = len(spectrum), len(spectrum)
        if direction_factor is not None:
            n_open = n_directions(spectrum, n_components, projection.n_constrained, n, direction_factor)
            spectrum, basis = spectrum[:n_open], basis[:, :n_open]
        basis /= np.sqrt(np.maximum(spectrum, LEAST_EIGENVALUE))  # (p - 1, q): columns y with x^T x = 1
        left = alpha * (basis.T @ projected(projection.must_link) @ basis)
        if joined:
            left += basis.T @ projected(_links(joined, projection)) @ basis
        left[np.diag_indices_from(left)] += np.maximum(1.0 - spectrum, 0.0)
        left[np.diag_indices_from(left)] += RIDGE * max(1.0, float(left.diagonal().max()))
        right = basis.T @ projected(projection.cannot_link) @ basis
        right[np.diag_indices_from(right)] += 1.0 / n
        n_found = n_components if n_components < n_all else min(max(1, n_components - 1), n_all)
        mu, solutions = largest_of_pencil(right, left, n_found)
        if n_found == n_components > 1 and mu[-2] > OPEN_GAP * mu[-1]:
            mu, solutions = mu[:-1], solutions[:, :-1]
        if direction_factor is not None:
            solutions = _nearest_basis(solutions)
        y = np.vstack([np.zeros((1, solutions.shape[1])), basis @ solutions])
        y -= 2.0 * np.outer(reflector, reflector @ y)
    vectors = vectors[:, : y.shape[1]]
    vectors[linked] = y / roots[:, None]
    return TransferCut(vectors, 1.0 / np.maximum(mu, np.finfo(np.float64).tiny), len(linked))


def n_directions(
    spectrum: NDArray[np.float64], n_clusters: int, n_constrained: int, n_rows: float, direction_factor: float
) -> int:
    """Eigenvectors of G among which constraints choose: at least one a cluster.

    All that cost less than `FREE_COST`; `direction_factor` for each constrained row beyond the first `NAMING_ROWS` a
    cluster; and the same share of all as rows are constrained, which matters where there are few rows.
    """
    free = int((1.0 - spectrum < FREE_COST).sum())
    earned = n_clusters + direction_factor * max(0, n_constrained - NAMING_ROWS * n_clusters)
    share = len(spectrum) * n_constrained / n_rows
    return int(min(len(spectrum), max(free, earned, share)))


def _nearest_basis(solutions: NDArray[np.float64]) -> NDArray[np.float64]:
    """The orthonormal basis of the columns' span (q, k) that is nearest to the first k axes."""
    basis = np.linalg.qr(solutions)[0]
    left, _, right = np.linalg.svd(basis[: basis.shape[1]].T)
    return np.asarray(basis @ (left @ right))


def _without_open_parts(
    projection: Projection, n_clusters: int, alpha: float, points: NDArray[np.float64] | None
) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """Representatives to cut, and the pairs of representatives that join its parts, when they are too many."""
    linked = np.flatnonzero(projection.masses > 0)
    inside = np.ix_(linked, linked)
    roots = np.sqrt(projection.masses[linked])
    held = projection.gram[inside] / roots[:, None] / roots > LEAST_LINK
    if alpha > 0:
        held |= projection.must_link[inside] != 0
    parts = parts_of(held)
    if points is None or parts.max(initial=0) < n_clusters:
        return linked, []
    cannot = projection.cannot_link[inside]
    large = without_specks(parts, projection.masses[linked], n_clusters, cannot.diagonal() > 0)
    linked, cannot = linked[large], cannot[np.ix_(large, large)]
    parts = np.unique(parts[large], return_inverse=True)[1].astype(np.int32)
    apart = np.zeros((parts.max() + 1,) * 2, bool)
    one, other = np.nonzero(cannot)
    apart[parts[one], parts[other]] = True
    np.fill_diagonal(apart, False)
    return linked, [(linked[i], linked[j]) for i, j in joining_edges(parts, points[linked], n_clusters, apart)]


def _links(pairs: list[tuple[int, int]], projection: Projection) -> NDArray[np.float64]:
    """Laplacian (p, p) of links between the rows around pairs of representatives, each as firm as the weaker's mass.

    Between their mean rows: at a representative itself, away from all rows, x may be anything.
    """
    masses, laplacian = projection.masses, np.zeros_like(projection.gram)
    for i, j in pairs:
        apart = projection.gram[i] / masses[i] - projection.gram[j] / masses[j]
        laplacian += min(masses[i], masses[j]) * np.outer(apart, apart)
    return laplacian


def _deflate(matrix: NDArray[np.float64], reflector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The matrix (p - 1, p - 1) on the complement of the vector that the reflection takes to the first axis."""
    rotated = matrix - 2.0 * np.outer(reflector, reflector @ matrix)
    rotated -= 2.0 * np.outer(rotated @ reflector, reflector)
    inside = rotated[1:, 1:]
    return np.ascontiguousarray((inside + inside.T) / 2)


def largest_of_pencil(
    right: NDArray[np.float64], left: NDArray[np.float64], n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest mu of B y = mu A y, descending, and their y (q, n_components) at unit length.

    Parameters
    ----------
    right, left : (q, q) float64
        B and A, symmetric positive definite; overwritten.

    Notes
    -----
    By a Cholesky factor of A. Rounding moves every mu by about 2e-16 of the largest one, and where the graph falls into
    components that no must-link joins, the largest one is 1 / ridge: beside 1e11 a mu of 1 keeps four digits. So only
    those within `NEAR_LARGEST` of the largest are taken at a time. They are deflated, and the rest is solved again
    without them: with y^T B y = 1 and b = B y, other eigenvectors are orthogonal to b, so that B - b b^T and A plus
    anything in the directions b have the same other eigenpairs. In B what was found is then 0, and in A no longer tiny.
    """
    size = float(left.diagonal().max())
    found: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    missing = n_components
    while True:
        factor = _cholesky(left)
        reduced = scipy.linalg.solve_triangular(factor, right, trans="T", check_finite=False)
        reduced = scipy.linalg.solve_triangular(factor, reduced.T, trans="T", check_finite=False)
        mu, solutions = largest_eigenpairs((reduced + reduced.T) / 2, missing)
        solutions = scipy.linalg.solve_triangular(factor, solutions, check_finite=False)  # (q, k)
        n_near = max(1, int((mu >= NEAR_LARGEST * mu[0]).sum()))
        near = solutions[:, :n_near] / np.linalg.norm(solutions[:, :n_near], axis=0)
        found.append((mu[:n_near], near))
        missing -= n_near
        if not missing:
            break
        images = right @ near
        images /= np.sqrt(np.einsum("ij,ij->j", near, images))
        right -= images @ images.T
        directions = np.linalg.qr(images)[0]
        left += size * (directions @ directions.T)
    return np.concatenate([part[0] for part in found]), np.hstack([part[1] for part in found])


def _cholesky(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Upper factor; the diagonal grows until there is one."""
    largest = max(1.0, float(matrix.diagonal().max()))
    for ridge in (0.0, RIDGE, 1e2 * RIDGE, 1e4 * RIDGE, 1e6 * RIDGE):
        try:
            return scipy.linalg.cholesky(matrix + ridge * largest * np.eye(len(matrix)), check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
    raise ArithmeticError("the must-link matrix is not positive semidefinite: weights beyond the range of float64")
