"""U-SPEC from given representatives and rep-clusters to labels; uspec_usenc_2019, section 3.1."""

from tests.reference import affinity, cut, lloyd, neighbors


def embed(rows, representatives, n_neighbors, k, rep_clusters=None, n_candidates=None):
    """Embedding (N, k) of the rows, eq. (12) with rows at unit length; without rep-clusters the search is exact.

    Returns the embedding, the k eigenvalues of eq. (9), and sigma.
    """
    if rep_clusters is None:
        nearest = neighbors.exact(rows, representatives, n_neighbors)
    else:
        centers = neighbors.rep_cluster_centers(representatives, rep_clusters)
        nearest = neighbors.approximate(rows, representatives, rep_clusters, centers, n_candidates, n_neighbors)
    B, sigma = affinity.cross_affinity(rows, representatives, nearest)
    linked = B.sum(axis=0) > 0  # a representative without objects is no node of the graph
    eigenvalues, v = cut.small_cut(B[:, linked], k)
    return cut.unit_rows(cut.lift(B[:, linked], eigenvalues, v)), eigenvalues, sigma


def uspec(rows, representatives, n_neighbors, k, uniforms, rep_clusters=None, n_candidates=None):
    """Labels (N,): the embedding, k-means++ by given random numbers, and Lloyd's iteration until no label changes."""
    embedding, _, _ = embed(rows, representatives, n_neighbors, k, rep_clusters, n_candidates)
    weights = [1.0] * len(rows)
    starts = embedding[lloyd.plus_plus(embedding, weights, uniforms)]
    return lloyd.lloyd(embedding, weights, starts, n_iter=100)[1]
