"""Wrong values of parameters and arguments, in every public function."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.exceptions import NotFittedError

import daskcluster as dc
from daskcluster.io import open_dask, open_rows, write_array
from daskcluster.io.convert import convert
from tests.hostile.case import Case, refused, right
from tests.hostile.rows import B

__all__ = ["CASES"]

T, V = TypeError, ValueError
TRUTH = np.arange(60) % 3
KNOWN = np.where(np.arange(60) < 9, TRUTH, -1)
MADE = dc.Constraints

#: Estimator -> how it is made and fitted, for `parameter`.
FITS: dict[str, Any] = {
    "KMeans": lambda **given: dc.KMeans(**{"n_clusters": 3, "random_state": 0} | given).fit(B),
    "USPEC": lambda **given: dc.USPEC(**{"n_clusters": 3, "random_state": 0} | given).fit(B),
    "USENC": lambda **given: dc.USENC(**{"n_clusters": 3, "n_base_clusterings": 3} | given).fit(B),
    "Ensemble": lambda **given: dc.Ensemble(**{"n_clusters": 3, "base": dc.KMeans()} | given).fit(B),
    "FastCSC": lambda **given: dc.FastCSC(**{"n_clusters": 3} | given).fit(B, KNOWN),
    "CSPML": lambda **given: dc.CSPML(**{"n_clusters": 3} | given).fit(B, KNOWN),
    "FastCSPML": lambda **given: dc.FastCSPML(**{"n_clusters": 3} | given).fit(B, KNOWN),
    "SEC": lambda **given: dc.SEC(**{"n_clusters": 3} | given).fit(np.stack([TRUTH] * 3, axis=1)),
    "KCC": lambda **given: dc.KCC(**{"n_clusters": 3} | given).fit(np.stack([TRUTH] * 3, axis=1)),
    "ECPCS": lambda **given: dc.ECPCS(**{"n_clusters": 3} | given).fit(np.stack([TRUTH] * 3, axis=1)),
    "EAC": lambda **given: dc.EAC(**{"n_clusters": 3} | given).fit(np.stack([TRUTH] * 3, axis=1)),
    "PTGP": lambda **given: dc.PTGP(**{"n_clusters": 3} | given).fit(np.stack([TRUTH] * 3, axis=1)),
    "ISEC": lambda **given: dc.ISEC(**{"n_clusters": 3} | given).fit(np.stack([TRUTH] * 3, axis=1)),
}


def parameter(name: str, parameter: str, value: Any, error: Any, words: str) -> Case:
    """A value of a parameter that a fit refuses."""
    shown = " ".join(repr(value).split())[:40]
    return refused(f"{name}({parameter}={shown})", lambda: FITS[name](**{parameter: value}), error, words)


def counts(name: str, *parameters: str) -> list[Case]:
    """Parameters that are whole numbers of at least 1."""
    return [
        parameter(name, one, value, error, f"^{one} must be an integer >= [1-3], got ")
        for one in parameters
        for value, error in ((0, V), (-1, V), (2.5, T), ("3", T), (None, T))
    ]


def csc(y: Any = None, **given: Any) -> Any:
    return dc.FastCSC(3, n_representatives=20, random_state=0).fit(B, y, **given)


def weighted(weight: Any) -> Any:
    return dc.KMeans(3, random_state=0).fit(B, sample_weight=weight)


def score(true: Any, pred: Any = (0, 1)) -> Any:
    return dc.metrics.adjusted_rand_index(true, pred)


LAZY = da.from_array(B, chunks=20)

CASES: list[Case] = [
    # -- parameters
    *counts("KMeans", "n_clusters", "n_init", "max_iter"),
    *counts("USPEC", "n_representatives", "n_neighbors", "candidate_factor", "neighbor_factor"),
    *counts("Ensemble", "n_base_clusterings"),
    parameter("KMeans", "n_clusters", True, T, "got True$"),
    parameter("KMeans", "n_clusters", np.bool_(True), T, "got np.True_$"),
    parameter("KMeans", "n_clusters", 3.0, T, "got 3.0$"),
    parameter("KMeans", "n_clusters", [3], T, r"got \[3\]$"),
    parameter("KMeans", "n_clusters", np.nan, T, "got nan$"),
    parameter("KMeans", "n_clusters", 61, V, "n_clusters must be at most the number of rows, got n_clusters=61"),
    right("KMeans(n_clusters=np.int64(3))", lambda: FITS["KMeans"](n_clusters=np.int64(3)).n_clusters_, 3),
    parameter("KMeans", "tol", -1, V, "tol must be a number >= 0.0, got -1$"),
    parameter("KMeans", "tol", "a", T, "tol must be a number"),
    parameter("KMeans", "tol", np.inf, V, "tol must be a number"),
    parameter("KMeans", "missing", "drop", V, "missing must be one of 'raise', 'label', got 'drop'$"),
    parameter("KMeans", "missing", None, V, "missing must be one of"),
    parameter("KMeans", "random_state", -1, V, "random_state must be an integer >= 0"),
    parameter("KMeans", "random_state", 1.5, T, "random_state must be None, an integer >= 0, or a numpy"),
    parameter("KMeans", "random_state", "a", T, "random_state must be None"),
    parameter("KMeans", "init", "zzz", V, "init must be one of 'k-means"),
    parameter("KMeans", "init", None, V, "init must be one of"),
    parameter(
        "KMeans",
        "init",
        np.zeros((2, 2)),
        V,
        r"a finite array of shape \(3, 2\), or a function that gives one, got array\(\[\[0",
    ),
    parameter("KMeans", "init", np.full((3, 2), np.nan), V, "a finite array"),
    parameter("KMeans", "storage", 3, T, "storage must be a path or None, got 3$"),
    parameter("KMeans", "storage", b"run", T, "storage must be a path or None, got b'run'$"),
    parameter("KMeans", "storage", "", T, "storage must be a path or None, got ''$"),
    parameter("KMeans", "storage", "text.txt", V, "storage must be a store made by daskcluster, or an empty or new"),
    parameter("KMeans", "storage", "group.zarr", V, "storage must be a store made by daskcluster"),
    parameter("KMeans", "storage", "nope://bucket/run", V, "nope"),
    parameter("USPEC", "selection", "x", V, "selection must be one of 'hybrid', 'random', 'kmeans', got 'x'$"),
    parameter("USPEC", "neighbors", None, V, "neighbors must be one of 'approximate', 'exact', got None$"),
    parameter("USPEC", "metric", "manhattan", V, "metric must be one of 'euclidean', 'cosine', got 'manhattan'$"),
    parameter("USENC", "k_range", 3, V, r"k_range must be a pair \(smallest, largest\)"),
    parameter("USENC", "k_range", (5, 3), V, r"k_range\[1\] must be an integer >= 5, got 3$"),
    parameter("USENC", "k_range", ("a", "b"), T, r"k_range\[0\] must be an integer"),
    parameter("USENC", "k_range", (3.5, 6), T, r"k_range\[0\] must be an integer"),
    parameter(
        "Ensemble", "base", "kmeans", T, "base must be a clusterer of rows, with fit_predict, or None, got 'kmeans'$"
    ),
    parameter("Ensemble", "base", dc.KMeans, T, "base must be a clusterer of rows"),
    parameter("Ensemble", "base", dc.SEC(), T, r"base must be a clusterer of rows, .*got SEC\(\)$"),
    parameter("Ensemble", "consensus", "cut", T, "consensus must be a BipartiteCut"),
    parameter("Ensemble", "consensus", dc.KMeans(), T, "consensus must be a BipartiteCut"),
    parameter("Ensemble", "sample_rate", 0, V, "sample_rate must be above 0 and at most 1, got 0$"),
    parameter("Ensemble", "sample_rate", "a", T, "sample_rate must be a number"),
    parameter("Ensemble", "predict_unsampled", "x", T, "predict_unsampled must be True or False, got 'x'$"),
    parameter("FastCSC", "alpha", -1, V, "alpha must be a number >= 0"),
    parameter("FastCSPML", "n_landmarks", 0, V, "n_landmarks must be an integer >= 1"),
    parameter("SEC", "n_components", 0, V, "n_components must be an integer >= 1"),
    parameter("KCC", "utility", "mutual", V, "utility must be one of 'entropy', 'categorical', 'cosine', 'lp', got"),
    parameter("KCC", "p", 1, V, "p must be above 1, got 1$"),
    parameter("KCC", "p", "x", T, "p must be a number >= 1"),
    parameter("KCC", "tol", -1, V, "tol must be a number >= 0"),
    parameter("EAC", "linkage", "ward", V, "linkage must be one of 'average', 'complete', 'single', got 'ward'$"),
    parameter("EAC", "weights", "lca", V, "weights must be one of 'none', 'local', 'wct', got 'lca'$"),
    parameter("EAC", "theta", 0, V, "theta must be above 0, got 0$"),
    parameter("EAC", "decay", 1.5, V, "decay must be at most 1, got 1.5$"),
    parameter("EAC", "max_distinct", 0, V, "max_distinct must be an integer >= 1, got 0$"),
    parameter("EAC", "max_distinct", 2, V, "about 3 distinct rows of labels, more than max_distinct=2: use fewer"),
    parameter("PTGP", "n_neighbors", 0, V, "n_neighbors must be an integer >= 1, got 0$"),
    parameter("PTGP", "n_steps", 1.5, T, "n_steps must be an integer"),
    parameter("PTGP", "max_distinct", 2, V, "about 3 distinct rows of labels, more than max_distinct=2: use fewer"),
    parameter("ECPCS", "n_steps", 0, V, "n_steps must be an integer >= 1, got 0$"),
    parameter("ECPCS", "n_steps", 2.5, T, "n_steps must be an integer"),
    refused("KMeans(foo=1)", lambda: dc.KMeans(3, foo=1), T, "unexpected keyword argument 'foo'"),  # type: ignore[call-arg]
    # -- partial labels and constraints
    refused(
        "y that is too short", lambda: csc(KNOWN[:9]), V, "y must have one entry for each of the 60 rows of X, got 9$"
    ),
    refused(
        "y of two columns", lambda: csc(np.ones((60, 2))), V, r"y must have one entry a row, .* got shape \(60, 2\)$"
    ),
    refused("y of words", lambda: csc(["a"] * 60), V, "y must hold whole numbers, -1 for unknown, got dtype <U1$"),
    refused("y of halves", lambda: csc(KNOWN + 0.5), V, "y must hold whole numbers .* got 0.5 at row 0$"),
    refused("y below -1", lambda: csc(KNOWN - 1), V, "y must hold whole numbers from 0 up, .* got -2 at row 9$"),
    refused("y of infinity", lambda: csc(np.where(KNOWN < 0, np.inf, KNOWN)), V, "got inf at row 9$"),
    refused("y of complex numbers", lambda: csc(KNOWN * 1j), V, "y must hold whole numbers"),
    refused("y of times", lambda: csc(KNOWN.astype("M8[s]")), V, "y must hold whole numbers"),
    refused("a generator of y", lambda: csc(iter(KNOWN)), T, "^y must be an array with one entry a row"),
    refused("a set of y", lambda: csc({0, 1}), T, "^y must be an array with one entry a row"),
    refused("delayed y", lambda: csc(dask.delayed(KNOWN)), T, "^y must be .* got a dask Delayed: make an array of it"),
    refused("the path of no y", lambda: csc("nothing.zarr"), FileNotFoundError, "no Zarr array at 'nothing.zarr'"),
    refused("a group as y", lambda: csc("group.zarr"), V, "Name one of them, such as 'group.zarr/band'$"),
    right("y with NaN", lambda: csc(np.where(KNOWN < 0, np.nan, KNOWN)).labels_, csc(KNOWN).labels_),
    right("y as a list", lambda: csc(KNOWN.tolist()).labels_, csc(KNOWN).labels_),
    right("y of one column", lambda: csc(KNOWN[:, None]).labels_, csc(KNOWN).labels_),
    refused("y and constraints", lambda: csc(KNOWN, constraints=MADE.from_labels(KNOWN)), V, "two forms of the same"),
    refused(
        "constraints as an array", lambda: csc(constraints=KNOWN), T, "made by Constraints.from_labels or from_pairs"
    ),
    refused("constraints of other rows", lambda: csc(constraints=MADE.from_labels(KNOWN[:9])), V, "of the 60 rows"),
    refused("pairs beyond the rows", lambda: csc(constraints=MADE.from_pairs([[0, 99]])), V, r"the pair \(0, 99\)$"),
    refused("pairs (m,)", lambda: MADE.from_pairs([1, 2]), V, r"must_link must be pairs of rows, shape \(m, 2\), got"),
    refused("pairs (m, 3)", lambda: MADE.from_pairs(np.zeros((2, 3))), V, r"shape \(m, 2\), got shape \(2, 3\)$"),
    refused("pairs below 0", lambda: MADE.from_pairs([[0, -1]]), V, "must_link must name rows from 0 up"),
    refused("pairs of halves", lambda: MADE.from_pairs([[0, 1.5]]), V, "must_link must hold row numbers"),
    refused(
        "pairs of words", lambda: MADE.from_pairs([["a", "b"]]), V, "must_link must hold row numbers, got dtype <U1$"
    ),
    refused("pairs of unequal lengths", lambda: MADE.from_pairs([[0, 1], [2]]), V, r"must_link must be pairs of rows"),
    refused("a row and itself", lambda: MADE.from_pairs([[1, 1]]), V, "must_link must not link a row to itself"),
    refused("a set of pairs", lambda: MADE.from_pairs({(0, 1)}), T, "must_link must be pairs of rows, .* got a set"),
    refused(
        "a generator of pairs", lambda: MADE.from_pairs(iter([(0, 1)])), T, "got a list_iterator, which can be read"
    ),
    refused(
        "weights of other pairs", lambda: MADE.from_pairs([[0, 1]], must_link_weight=[1, 1]), V, "must_link_weight"
    ),
    refused("weights below 0", lambda: MADE.from_pairs([[0, 1]], must_link_weight=-1), V, "above 0 and at most 1"),
    refused("weights of words", lambda: MADE.from_pairs([[0, 1]], must_link_weight="a"), V, "must hold numbers"),
    refused(
        "pairs of -1 rows", lambda: MADE.from_pairs([[0, 1]], n_samples=-1), V, "n_samples must be an integer >= 1"
    ),
    refused("pairs of 3 rows", lambda: MADE.from_pairs([[0, 5]], n_samples=3), V, "must_link must name rows 0 to 2"),
    refused("labels of nothing", lambda: MADE.from_labels(None), T, "^y must be .* got None$"),
    refused(
        "confidences of others", lambda: MADE.from_labels([0, 1], weight=[1]), V, "weight must be one number or have"
    ),
    refused("confidences below 0", lambda: MADE.from_labels([0, 1], weight=-1), V, "weight must be above 0"),
    refused("satisfaction of others", lambda: MADE.from_labels(KNOWN).satisfaction([0]), V, "of the 60 rows, got 1$"),
    # -- weights of rows
    refused(
        "weights that are too few", lambda: weighted([1, 2]), V, r"sample_weight.shape must be \(60,\), got \(2,\)$"
    ),
    refused("weights of two columns", lambda: weighted(np.ones((60, 2))), V, r"must be \(60,\), got \(60, 2\)$"),
    refused("negative weights", lambda: weighted(-np.ones(60)), V, "sample_weight must be finite and >= 0"),
    refused("weights of NaN", lambda: weighted(np.full(60, np.nan)), V, "sample_weight must be finite"),
    refused("lazy weights of NaN", lambda: weighted(da.full(60, np.nan, chunks=20)), V, "sample_weight must be finite"),
    refused("weights of zeros", lambda: weighted(np.zeros(60)), V, "sample_weight must be above zero for some row"),
    refused(
        "words as weights", lambda: weighted(["a"] * 60), V, "sample_weight must hold real numbers, got dtype <U1$"
    ),
    refused("complex weights", lambda: weighted(np.ones(60) * 1j), V, "sample_weight must hold real numbers"),
    refused("a generator of weights", lambda: weighted(iter(np.ones(60))), T, "^sample_weight must be an array"),
    refused("delayed weights", lambda: weighted(dask.delayed(np.ones(60))), T, "got a dask Delayed"),
    refused(
        "weights of unequal lengths", lambda: weighted([[1], [2, 3]]), V, "sample_weight must have one entry a row"
    ),
    refused("the path of no weights", lambda: weighted("nothing"), FileNotFoundError, "no Zarr array at 'nothing'"),
    right("one weight for all", lambda: weighted(2).labels_, weighted(None).labels_),
    # -- new rows
    refused(
        "more features", lambda: FITS["KMeans"]().predict(np.zeros((5, 3))), V, "X has 3 features, but KMeans is exp"
    ),
    refused("rows that lie", lambda: FITS["KMeans"]().predict(B.T), V, "expecting 2 .* as input; is X transposed\\?$"),
    refused("lazy rows that lie", lambda: FITS["KMeans"]().predict(LAZY.T), V, "; is X transposed\\?$"),
    refused("before a fit", lambda: dc.KMeans(3).predict(B), NotFittedError, "This KMeans instance is not fitted yet"),
    refused("no method for it", lambda: FITS["CSPML"]().predict(B), AttributeError, "'CSPML'.* has no attribute"),
    refused("few rows, many columns", lambda: dc.KMeans(9).fit(np.zeros((3, 99))), V, "99 columns, is it transposed"),
    # -- base clusterings
    refused("clusterings that lie", lambda: dc.BipartiteCut(3).fit([TRUTH] * 2), V, "60 columns, is it transposed\\?$"),
    refused("clusterings that lie, lazy", lambda: dc.SEC(3).fit(da.zeros((2, 99))), V, "99 columns, is it transposed"),
    refused(
        "halves", lambda: dc.SEC(3).fit(np.full((9, 2), 0.5)), V, "X must hold labels, .* got 0.5 at row 0, column 0$"
    ),
    refused(
        "below -1", lambda: dc.SEC(3).fit(np.full((9, 2), -2)), V, "X must hold labels, .* got -2 at row 0, column"
    ),
    refused("NaN", lambda: dc.SEC(3).fit(np.full((9, 2), np.nan)), V, "X must hold labels, .* got nan at row 0"),
    refused("words", lambda: dc.SEC(3).fit([["a", "b"]] * 9), V, "X must hold real numbers, got dtype <U1"),
    refused("no labels at all", lambda: dc.SEC(3).fit(np.full((9, 2), -1)), V, "X has no row with a label"),
    refused("one clustering (n,)", lambda: dc.SEC(3).fit(TRUTH), V, "Expected 2D array .* got 1D array"),
    # -- scores
    refused("scores of other rows", lambda: score([0]), V, "labels_true has 1, labels_pred has 2$"),
    refused("a score of nothing", lambda: score(None), T, "labels_true must be an array of 1 dimension, got None$"),
    refused(
        "a score of a table", lambda: score([[0, 1]]), V, r"labels_true must have 1 dimension, got shape \(1, 2\)$"
    ),
    refused("a score of halves", lambda: score([0.5, 1]), V, "labels_true must hold whole numbers, got 0.5$"),
    refused(
        "a score of unequal lengths", lambda: score([[0], [1, 2]]), V, "labels_true must be an array, got lists of"
    ),
    refused(
        "a score of a generator", lambda: score(iter([0, 1])), T, "got a list_iterator, which can be read once only"
    ),
    refused("a delayed score", lambda: score(dask.delayed([0, 1])), T, "labels_true must be .* got a dask Delayed"),
    refused("a score of no path", lambda: score("nothing"), FileNotFoundError, "no Zarr array at 'nothing'"),
    refused("inertia of other centres", lambda: dc.metrics.inertia(B, TRUTH, np.zeros((3, 5))), V, "centers has 5$"),
    # -- models
    refused("a model saved nowhere", lambda: FITS["KMeans"]().save(None), T, "^expected a path, got None$"),
    refused("a model saved to 3", lambda: FITS["KMeans"]().save(3), T, "^expected a path, got 3$"),
    refused("a model saved at no protocol", lambda: FITS["KMeans"]().save("nope://b/m"), V, "Protocol not known: nope"),
    refused("a model in a file", lambda: FITS["KMeans"]().save("text.txt/m"), NotADirectoryError, "is not a folder$"),
    refused(
        "a model over rows", lambda: FITS["KMeans"]().save("X.zarr", overwrite=True), FileExistsError, "a Zarr array"
    ),
    refused("a model that exists", lambda: FITS["KMeans"]().save("model.zarr"), FileExistsError, "overwrite=True"),
    refused("a model of no fit", lambda: dc.KMeans().save("m"), NotFittedError, "not fitted yet"),
    refused("a model from nowhere", lambda: dc.load_model(None), T, "^expected a path, got None$"),  # type: ignore[arg-type]
    refused("a model that is not there", lambda: dc.load_model("no"), FileNotFoundError, "no model at 'no': nothing"),
    refused("a text file as a model", lambda: dc.load_model("text.txt"), V, "is not a saved model, but a file$"),
    refused("rows as a model", lambda: dc.load_model("X.zarr"), V, "is a Zarr array, not a saved model$"),
    refused("a group as a model", lambda: dc.load_model("group.zarr"), V, "but not a model that daskcluster saved$"),
    refused("a model at no protocol", lambda: dc.load_model("nope://x"), V, "Protocol not known: nope$"),
    # -- stores
    refused("a list to write", lambda: write_array([1], "out"), T, "array: expected a dask array, got list$"),  # type: ignore[arg-type]
    refused("three axes to write", lambda: write_array(da.zeros((2, 2, 2)), "out"), V, "one or two dimensions, got 3$"),
    refused("words to write", lambda: write_array(da.from_array(np.array(["a"])), "out"), V, "got <U1$"),
    refused("unknown lengths to write", lambda: write_array(LAZY[LAZY[:, 0] > 0], "out"), V, "compute_chunk_sizes"),
    refused("rows to write nowhere", lambda: write_array(LAZY, None), T, "^expected a path, got None$"),  # type: ignore[arg-type]
    refused("rows over rows", lambda: write_array(LAZY, "X.zarr"), FileExistsError, "overwrite=True"),
    refused("rows over a folder", lambda: write_array(LAZY, "folder"), FileExistsError, "'folder' exists"),
    refused("chunks of 0 rows", lambda: write_array(LAZY, "out", chunks=0), V, "chunks: expected 2 positive lengths"),
    refused("chunks of words", lambda: write_array(LAZY, "out", chunks="a"), T, "chunks: expected one integer"),  # type: ignore[arg-type]
    refused("attributes of NaN", lambda: write_array(LAZY, "out", attributes={"a": np.nan}), V, "attributes: expected"),
    refused("attributes in a list", lambda: write_array(LAZY, "out", attributes=[1]), T, "attributes: expected a map"),  # type: ignore[arg-type]
    refused("nothing to open", lambda: open_rows(None), T, "got NoneType$"),  # type: ignore[arg-type]
    refused("a number to open", lambda: open_dask("scalar.zarr"), V, "expected an array with rows, got a scalar array"),
    # -- files
    refused("nothing to convert", lambda: convert(None, "out"), T, "^expected a path, got None$"),  # type: ignore[arg-type]
    refused("nowhere to convert to", lambda: convert("X.npy", None), T, "^expected a path, got None$"),  # type: ignore[arg-type]
    refused("chunks in words", lambda: convert("X.npy", "out", chunk_rows="a"), T, "chunk_rows must be an integer"),  # type: ignore[arg-type]
    refused("chunks of halves", lambda: convert("X.npy", "out", chunk_rows=2.5), T, "chunk_rows must be an integer"),  # type: ignore[arg-type]
    refused(
        "columns in one word", lambda: convert("words.csv", "out", columns="ab"), T, "columns must be a list of names"
    ),
    refused("a header in words", lambda: convert("words.csv", "out", header="no"), T, "header must be True or False"),  # type: ignore[arg-type]
    refused(
        "another format", lambda: convert("X.npy", "out", format="xls"), V, "format: expected one of npy, npz, csv"
    ),
    refused("rows over their file", lambda: convert("X.npy", "X.npy", overwrite=True), V, "X.npy"),
    # -- data sets, pictures
    refused("-1 made rows", lambda: dc.datasets.make_flower(-1), V, "n_samples must be an integer >= 1, got -1$"),
    refused("1.5 made rows", lambda: dc.datasets.make_flower(1.5), T, "n_samples must be an integer >= 1"),  # type: ignore[arg-type]
    refused(
        "made chunks of 0", lambda: dc.datasets.make_flower(9, chunks=0), V, "chunks do not fit n_samples=9: got 0"
    ),
    refused("a seed of words", lambda: dc.datasets.make_flower(9, random_state="a"), T, "random_state must be None"),  # type: ignore[arg-type]
    refused("a picture of other rows", lambda: dc.plotting.plot_labels(B, [0]), V, "X has 60, labels has 1$"),
    refused("a picture of nothing", lambda: dc.plotting.plot_labels(None, TRUTH), T, "X must be .* got None$"),
    refused("a picture of one column", lambda: dc.plotting.plot_labels(B[:, 0], TRUTH), V, "X must have 2 dimensions"),
    refused(
        "eigenvalues of words", lambda: dc.plotting.plot_eigenvalues("x"), T, "eigenvalues must be a list of finite"
    ),
]
