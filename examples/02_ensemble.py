"""Ensembles: U-SENC on a Zarr store, doubtful rows, and the consensus of labelings that are there already.

    python examples/02_ensemble.py

DASKCLUSTER_EXAMPLE_ROWS sets the number of rows. All files go to the current folder.
"""

import os

import dask.array as da
import numpy as np

import daskcluster as dc

N_ROWS = int(os.environ.get("DASKCLUSTER_EXAMPLE_ROWS", "200_000"))


def main() -> None:
    X, y = dc.datasets.make_circles_gaussians(N_ROWS, chunks=100_000, random_state=0)
    X.to_zarr("circles.zarr")

    # Ten spectral clusterings of four graphs, each with its own number of clusters, then their bipartite cut. With a
    # named store a run that is killed goes on at the first graph whose clusterings are not there.
    model = dc.USENC(n_clusters=11, n_base_clusterings=10, random_state=0, storage="usenc-run.zarr").fit("circles.zarr")
    print(f"U-SENC: NMI {dc.metrics.normalized_mutual_info(y, model.labels_):.3f}")
    print("clusters of the base clusterings:", *model.base_n_clusters_)

    # How far the base clusterings agree with the consensus, for each row: here the doubtful ones lose their label.
    doubtful = model.agreement_ < 0.5
    masked = da.where(doubtful, -1, model.labels_)
    print(f"{int(doubtful.sum()):,} of {N_ROWS:,} rows are doubtful; labels kept: {np.unique(masked.compute())}")

    # The base clusterings are an array like any other: other consensus functions take them, or yours. -1 is no label.
    model.base_labels_.to_zarr("base.zarr")
    for consensus in (dc.BipartiteCut(11, random_state=0), dc.SEC(11, random_state=0)):
        labels = consensus.fit("base.zarr").labels_
        print(f"{type(consensus).__name__}: NMI {dc.metrics.normalized_mutual_info(y, labels):.3f}")

    # Any clusterer may be the base. Here each sees a random half of the rows, and labels the others by `predict`.
    halves = dc.Ensemble(
        n_clusters=11,
        base=dc.KMeans(),
        consensus=dc.SEC(),
        n_base_clusterings=8,
        k_range=(20, 60),
        sample_rate=0.5,
        predict_unsampled=True,
        random_state=0,
    ).fit("circles.zarr")
    print(f"k-means and SEC: NMI {dc.metrics.normalized_mutual_info(y, halves.labels_):.3f}")

    # A model labels rows that it has never seen: by its base clusterers, then by the consensus.
    model.save("usenc-model.zarr")
    X_new, y_new = dc.datasets.make_circles_gaussians(10_000, chunks=10_000, random_state=1)
    predicted = dc.load_model("usenc-model.zarr").predict(X_new)
    print(f"NMI of new rows {dc.metrics.normalized_mutual_info(y_new, predicted):.3f}")


# The guard is for clusters of worker processes, which import this file.
if __name__ == "__main__":
    main()
