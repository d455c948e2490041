"""Cluster a Zarr store out of core: plan, fit, look, save, and label new rows.

    python examples/01_uspec_on_zarr.py

DASKCLUSTER_EXAMPLE_ROWS sets the number of rows. All files go to the current folder.
"""

import os

import daskcluster as dc

N_ROWS = int(os.environ.get("DASKCLUSTER_EXAMPLE_ROWS", "1_000_000"))


def main() -> None:
    # Data of any size: the rows are made block by block, as they are written.
    X, y = dc.datasets.make_flower(N_ROWS, chunks=250_000, random_state=0)
    X.to_zarr("flower.zarr")

    # With a named store, a run that is killed goes on where it stopped: start the program again.
    model = dc.USPEC(n_clusters=13, random_state=0, storage="flower-run.zarr", verbose=True)
    print(model.plan("flower.zarr"))  # passes, bytes and peak memory, before anything runs

    model.fit("flower.zarr")
    print(f"{model.n_clusters_} clusters, bandwidth {model.bandwidth_:.3g}")
    print("eigenvalues", *(f"{value:.1e}" for value in model.eigenvalues_))

    # Labels of chunked data are a lazy dask array: nothing of length n is in memory, here or below.
    model.labels_.to_zarr("flower-labels.zarr")
    print(f"NMI      {dc.metrics.normalized_mutual_info(y, model.labels_):.3f}")
    print(f"accuracy {dc.metrics.clustering_accuracy(y, model.labels_):.3f}")

    # The model is a few small arrays. It labels rows that it has never seen.
    model.save("flower-model.zarr")
    X_new, y_new = dc.datasets.make_flower(10_000, chunks=10_000, random_state=1)
    predicted = dc.load_model("flower-model.zarr").predict(X_new)
    print(f"NMI of new rows {dc.metrics.normalized_mutual_info(y_new, predicted):.3f}")


# The guard is for clusters of worker processes, which import this file.
if __name__ == "__main__":
    main()
