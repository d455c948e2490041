"""Tests that scikit-learn and dask-ml have for their own KMeans, run on this package's: what passes, and what does not.

    ci/benchmarks/run conventions
    ci/benchmarks/run conventions --dask-ml tests/test_kmeans.py     of a checkout of dask-ml, whose wheel has no tests
    ci/benchmarks/run conventions --log                              with the traceback of every failure

scikit-learn's come from the installed package. The class is exchanged before the tests are read, for one that takes the
keywords of the other classes that have no meaning here (`algorithm="lloyd"`, `copy_x`; dask-ml's `n_jobs`,
`oversampling_factor`, `precompute_distances`, `init_max_iter`). Counted are tests that made a model of it:
those of helper functions, of MiniBatchKMeans, of Elkan's algorithm and of sparse rows are other things. What fails must
be listed in `REASONS`, and what is listed must fail: the exit code is 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: Test -> why it fails here, and will. docs/conventions.md says the same at length.
PRIVATE = "looks at private attributes of scikit-learn's class"
WORDS = "the same error or warning, in the words of this package"
REASONS: dict[str, dict[str, str]] = {
    "scikit-learn": {
        "test_kmeans_relocated_clusters": "counts one pass more: the last one, in which no row moves, is a pass too",
        "test_kmeans_init_auto_with_initial_centroids": PRIVATE,
        "test_kmeans_verbose": "progress goes to stderr or a notebook, by stages and not by iterations",
        "test_kmeans_warns_less_centers_than_unique_points": WORDS,
        "test_k_means_1_iteration": "labels are those of the centres by which the last pass assigned, as predict gives",
        "test_n_init_auto": PRIVATE,
        "test_wrong_params": WORDS,
        "test_sample_weight_init": PRIVATE,
        "test_sample_weight_zero": PRIVATE,
        "test_relocating_with_duplicates": WORDS,
    },
    "dask-ml": {
        "test_basic": "compares all fitted attributes, and `n_clusters_` is one more",
        "test_empty_chunks": "outputs keep the row chunks of the rows, empty ones too",
    },
}

#: Loaded by the process of the tests: exchanges the class, and notes of each test whether it made one.
PLUGIN = """
import json, os
from pathlib import Path

import pytest
import daskcluster as dc

PEER = os.environ["CONVENTIONS_PEER"]
ASKED, FOUND = [], {}


class KMeans(dc.KMeans):
    def __init__(self, n_clusters=8, *, init="k-means++", n_init=1, max_iter=100, tol=1e-4, missing="raise",
                 random_state=None, storage=None, verbose=False, algorithm="lloyd", copy_x=True, n_jobs=1,
                 oversampling_factor=2, precompute_distances="auto", init_max_iter=None):
        ASKED.append(True)
        if algorithm not in ("lloyd", "full"):
            pytest.skip("another algorithm")
        super().__init__(n_clusters, init=init, n_init=n_init, max_iter=max_iter, tol=tol, missing=missing,
                         random_state=random_state, storage=storage, verbose=verbose)
        self.algorithm, self.copy_x, self.n_jobs, self.init_max_iter = algorithm, copy_x, n_jobs, init_max_iter
        self.oversampling_factor, self.precompute_distances = oversampling_factor, precompute_distances


if PEER == "scikit-learn":
    import sklearn.cluster
    sklearn.cluster.KMeans = KMeans
else:
    import dask_ml.cluster
    dask_ml.cluster.KMeans = dask_ml.cluster.k_means.KMeans = KMeans


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture
def Xl_blobs_easy():
    from dask_ml.datasets import make_blobs
    import numpy as np
    centers = np.array([[-7, -7], [0, 0], [7, 7]])
    return make_blobs(cluster_std=0.1, centers=centers, chunks=50, random_state=0)


def pytest_runtest_setup(item):
    ASKED.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    name = item.nodeid.split("::")[-1]
    if report.when == "call" or report.outcome == "failed":
        text = "" if call.excinfo is None else f"{call.excinfo.type.__name__}: {call.excinfo.value}"
        FOUND[name] = (report.outcome, bool(ASKED), text)
    return report


def pytest_sessionfinish():
    Path(os.environ["CONVENTIONS_OUT"]).write_text(json.dumps(FOUND))
"""

#: Words in the names of tests of what this package's class is not.
OTHERS = ("elkan", "sparse", "csr", "MiniBatch", "minibatch")


def run_tests(peer: str, tests: Path, log: bool) -> dict[str, tuple[str, bool, str]]:
    """Outcome of each test of a file, whether it made a model, and how it failed."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(tests, Path(folder, "test_theirs.py"))
        Path(folder, "exchange.py").write_text(PLUGIN, encoding="utf-8")
        Path(folder, "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        out = Path(folder, "found.json")
        paths = [folder, str(Path(__file__).parents[2])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "exchange", "-p", "no:cacheprovider", "-W", "ignore"]
            + ([] if log else ["--tb=no", "--no-summary"])
            + ["test_theirs.py"],
            cwd=folder,
            env={**environment, "CONVENTIONS_PEER": peer, "CONVENTIONS_OUT": str(out)},
            stdout=None if log else subprocess.DEVNULL,
        )
        found = json.loads(out.read_text(encoding="utf-8"))
    return {name: tuple(how) for name, how in found.items() if not any(word in name for word in OTHERS)}


def report(peer: str, found: dict[str, tuple[str, bool, str]]) -> bool:
    """Print what passes, and what does not with its reason; whether that is as listed."""
    asked = {name: how for name, how in found.items() if how[1] and how[0] != "skipped"}
    failed = {name: how[2] for name, how in asked.items() if how[0] == "failed"}
    counts = Counter(how[0] for how in asked.values())
    print(f"\n{peer}: {counts['passed']} of {len(asked)} tests of KMeans pass")
    reasons: dict[str, str] = REASONS[peer]
    for name, text in failed.items():
        print(f"  {name}\n      {' '.join(text.split()):.150}\n      {reason_of(name, reasons) or 'NOT LISTED'}")
    stale = [key for key in reasons if not any(name.startswith(key) for name in failed)]
    for key in stale:
        print(f"  {key}: listed, and passes or is not there")
    return not stale and all(reason_of(name, reasons) for name in failed)


def reason_of(name: str, reasons: dict[str, str]) -> str | None:
    """Why a test fails here."""
    return next((reason for key, reason in reasons.items() if name.startswith(key)), None)


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dask-ml", type=Path, metavar="FILE", help="dask-ml's tests/test_kmeans.py")
    parser.add_argument("--log", action="store_true", help="show what pytest says")
    arguments = parser.parse_args()
    package: Any = find_spec("sklearn")
    tests = {"scikit-learn": Path(package.submodule_search_locations[0], "cluster", "tests", "test_k_means.py")}
    if arguments.dask_ml is not None:
        tests["dask-ml"] = arguments.dask_ml
    return 0 if all([report(peer, run_tests(peer, file, arguments.log)) for peer, file in tests.items()]) else 1


if __name__ == "__main__":
    sys.exit(main())
