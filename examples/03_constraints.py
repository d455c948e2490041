"""Cluster with what is known of some rows: partial labels, pairs, and how much of them a result keeps.

    python examples/03_constraints.py

DASKCLUSTER_EXAMPLE_ROWS sets the number of rows. All files go to the current folder.
"""

import os

import dask.array as da
import numpy as np

import daskcluster as dc

N_ROWS = int(os.environ.get("DASKCLUSTER_EXAMPLE_ROWS", "1_000_000"))


def main() -> None:
    # A uniform square has no clusters of its own; knowledge of a few rows says where to cut it.
    X = da.random.default_rng(0).random((N_ROWS, 2), chunks=(250_000, 2))
    y = (X[:, 0] > 0.5).astype(np.int8) + 2 * (X[:, 1] > 0.5).astype(np.int8)
    X.to_zarr("square.zarr")

    # Partial labels, lazy and as long as the data: one row in a hundred is known, -1 stands for the others.
    numbers = da.arange(N_ROWS, chunks=250_000)
    known = da.where(numbers % 100 == 0, y.astype(int), -1)
    for name, labels in (("without labels", None), ("with labels", known)):
        model = dc.FastCSC(n_clusters=4, random_state=0).fit("square.zarr", labels)
        print(f"{name:<15} accuracy {dc.metrics.clustering_accuracy(y, model.labels_):.3f}")
    kept = dc.Constraints.from_labels(known).satisfaction(model.labels_)
    print(f"{kept.must_link:.1%} of {kept.n_must_link:,} must-links kept, ", end="")
    print(f"{kept.cannot_link:.1%} of {kept.n_cannot_link:,} cannot-links")

    # Pairs, with doubt: weights in (0, 1]. What follows from them, and what contradicts them.
    pairs = dc.Constraints.from_pairs(
        must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)], must_link_weight=[1.0, 0.6], n_samples=N_ROWS
    )
    print("implied cannot-links", pairs.closure().cannot_link.tolist())
    wrong = dc.Constraints.from_pairs(must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    for contradiction in wrong.contradictions():
        print("contradiction:", contradiction)

    # The model is a few small arrays, and labels new rows by their features alone.
    model.save("square-model.zarr")
    print("new rows:", dc.load_model("square-model.zarr").predict(np.array([[0.1, 0.1], [0.9, 0.9]])))


# The guard is for clusters of worker processes, which import this file.
if __name__ == "__main__":
    main()
