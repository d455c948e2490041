"""Base clusterings as hypergraphs, and the partitioners of others that the cluster ensembles of 2002 call."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from daskcluster.runtime.seeding import root_seed
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["IMBALANCE", "agreement", "hyperedges", "imported", "partition_graph", "small_seed"]

#: A part may be heavier than an equal share by so much.
IMBALANCE = 0.05


def imported(name: str, what: str) -> Any:
    """A module of the extra `reproduction`, or an error that names the extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{what} needs {name}: install daskcluster[reproduction]") from error


def small_seed(random_state: Seed) -> int:
    """A seed as partitioners take it."""
    return root_seed(random_state) % 2**31


def hyperedges(labels: Any) -> NDArray[np.float64]:
    """The hypergraph H (n, c) of base clusterings (n, m): a hyperedge a base cluster; -1 is in none.

    Raises
    ------
    ValueError
        If labels are no whole numbers >= -1, or a row has none.
    """
    labels = np.asarray(labels)
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be whole numbers (n, m), got shape {labels.shape} and dtype {labels.dtype}")
    if labels.min(initial=0) < -1:
        raise ValueError(f"labels must be >= -1, got {labels.min()}")
    without = np.flatnonzero((labels < 0).all(axis=1))
    if len(without):
        raise ValueError(f"labels must have one a row at least, got none in row {without[0]}")
    values = [np.unique(column[column >= 0]) for column in labels.T]
    return np.hstack([(column[:, None] == of).astype(float) for column, of in zip(labels.T, values, strict=True)])


def agreement(labels: Any) -> NDArray[np.float64]:
    """Share (n, n) of the base clusterings (n, m) in which two rows have the same label; -1 agrees with nothing."""
    H = hyperedges(labels)
    return np.asarray(H @ H.T / np.asarray(labels).shape[1])


def partition_graph(
    weights: NDArray[np.integer], n_parts: int, random_state: Seed, vertex_weights: NDArray[np.integer] | None = None
) -> NDArray[np.int32]:
    """METIS: parts (n,) of about equal weight between which the links weigh little.

    Parameters
    ----------
    weights : (n, n) int
        Symmetric; the diagonal does not count.
    n_parts : int
    random_state : int, RandomState, Generator or None
    vertex_weights : (n,) int, optional
        All alike without.
    """
    check_integer("n_parts", n_parts, 1)
    pymetis = imported("pymetis", "partitioning a graph")
    if n_parts == 1:
        return np.zeros(len(weights), np.int32)
    links = scipy.sparse.csr_array(weights - np.diag(np.diag(weights)))
    _, parts = pymetis.part_graph(
        n_parts,
        pymetis.CSRAdjacency(links.indptr.tolist(), links.indices.tolist()),
        eweights=links.data.astype(int).tolist(),
        vweights=None if vertex_weights is None else vertex_weights.astype(int).tolist(),
        options=pymetis.Options(seed=small_seed(random_state), ufactor=int(1000 * IMBALANCE)),
    )
    return np.asarray(parts, np.int32)
