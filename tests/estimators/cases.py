"""The one list of all estimators, each at a small size with data of its own: the laws run over it.

A law is a test that is parametrized with `every(...)`, and says nothing of a single estimator:

    @every(CASES)
    def test_refits_are_equal(case): ...

What belongs to one estimator only is tested in its own file.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans as InMemoryKMeans
from sklearn.datasets import make_blobs

import daskcluster as dc
from tests.blocks import blocks_of

__all__ = [
    "BLOBS",
    "CASES",
    "CLASSES",
    "TRUTH",
    "Case",
    "as_parameter",
    "assert_equal_fits",
    "chunked_reference",
    "every",
    "every_third",
    "fitted",
    "of_ids",
    "reference",
    "same_partition",
]

#: Three clusters in the plane that every method finds, for tests of one's own.
BLOBS, TRUTH = make_blobs(600, centers=[[0, 0], [5, 5], [0, 6]], cluster_std=0.4, random_state=0)
BLOBS.flags.writeable = False


@dataclass(frozen=True)
class Case:
    """An estimator at a small size, and what it is fitted to.

    Attributes
    ----------
    id : str
    make : callable
        Parameters -> a fresh estimator, for three clusters and with a seed where nothing else is said.
    data : callable
        -> rows (n, d), or base clusterings (n, m) for a consensus.
    more : callable
        -> the other arguments of `fit`: weights, partial labels, constraints.
    consensus : bool
        Whether it clusters base clusterings. Those have no `missing`: -1 is a missing label.
    predicts : bool
        Whether it labels and embeds new rows.
    foreign : bool
        Whether clusterers of another package are inside: these are neither saved nor kept in a named store, and choose
        the dtype of the rows that they label.
    """

    id: str
    make: Callable[..., Any]
    data: Callable[[], NDArray[Any]]
    more: Callable[[], dict[str, Any]] = dict
    consensus: bool = False
    predicts: bool = True
    foreign: bool = False

    @property
    def X(self) -> NDArray[Any]:
        """Its rows."""
        return self.data()

    def fit(self, X: Any = None, **parameters: Any) -> Any:
        """A fit of a fresh estimator to its rows, or to the same rows in another form."""
        return self.make(**parameters).fit(self.X if X is None else X, **self.more())

    def fit_chunked(self, X: Any = None, **parameters: Any) -> Any:
        """The same, with weights and labels chunked too."""
        more = {
            name: da.from_array(value, chunks=47) if isinstance(value, np.ndarray) else value
            for name, value in self.more().items()
        }
        return self.make(**parameters).fit(da.from_array(self.X, chunks=(70, -1)) if X is None else X, **more)


# -- data ------------------------------------------------------------------------------------------------------------


@cache
def rings() -> NDArray[np.float32]:
    """Three rings: no method of a few passes is done with them at once, so a changed bit shows."""
    X: NDArray[np.float32] = 3 * dc.datasets.make_concentric_circles(300, chunks=300, random_state=0)[0].compute()
    X.flags.writeable = False
    return X


@cache
def ring_labels() -> NDArray[np.int64]:
    """Labels of every seventh row, -1 for the others."""
    y = dc.datasets.make_concentric_circles(300, chunks=300, random_state=0)[1].compute()
    return np.where(np.arange(300) % 7 == 0, y, -1)


def few_rings() -> NDArray[np.float32]:
    """What a method of n**3 takes."""
    return rings()[::2]


def labels() -> dict[str, Any]:
    """Partial labels."""
    return {"y": ring_labels()}


def few_labels() -> dict[str, Any]:
    """Those of `few_rings`."""
    return {"y": ring_labels()[::2]}


def pairs() -> dict[str, Any]:
    """Links of single pairs of rows, soft ones among them."""
    y = ring_labels()
    known = np.flatnonzero(y >= 0)
    one, other = known[:-1], known[1:]
    same = y[one] == y[other]
    links = np.stack([one, other], axis=1)
    made = dc.Constraints.from_pairs(links[same], links[~same], must_link_weight=np.linspace(0.5, 1.0, same.sum()))
    return {"constraints": made}


@cache
def wide() -> NDArray[np.float32]:
    """Forty features, where products of matrices run on the BLAS."""
    X = np.random.default_rng(0).normal(size=(300, 40)).astype(np.float32) + np.arange(300)[:, None] % 5
    X.flags.writeable = False
    return X


def weights() -> dict[str, Any]:
    """A weight a row."""
    return {"sample_weight": np.random.default_rng(0).uniform(0.5, 2.0, size=300)}


@cache
def base_clusterings() -> NDArray[np.int64]:
    """Noisy copies of three clusters under other names, and labels that are missing."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    X = np.stack(
        [np.where(rng.random(200) < 0.4, rng.integers(4, size=200), rng.permutation(3)[truth]) for _ in "12345678"]
    )
    X[rng.random(X.shape) < 0.15] = -1
    X = X.T.copy()
    X.flags.writeable = False
    return X


# -- the list --------------------------------------------------------------------------------------------------------


def of(cls: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    """A maker of estimators of a class."""
    return lambda **parameters: cls(**{"n_clusters": 3, "random_state": 0} | fixed | parameters)


def ensemble(base: Any, consensus: Any = None, **fixed: Any) -> Callable[..., Any]:
    """A maker of small ensembles."""
    return of(dc.Ensemble, base=base, consensus=consensus, **{"n_base_clusterings": 2} | fixed)


SAMPLED = {"sample_rate": 0.7, "predict_unsampled": True}

CASES = [
    Case("KMeans", of(dc.KMeans), rings),
    Case("KMeans-weights", of(dc.KMeans, max_iter=4), rings, weights),
    Case("KMeans-parallel", of(dc.KMeans, n_clusters=20, init="k-means||", max_iter=3), wide),
    Case("USPEC", of(dc.USPEC, n_representatives=60), rings),
    Case(
        "USPEC-options",
        of(dc.USPEC, n_representatives=40, selection="kmeans", metric="cosine", neighbors="exact", max_iter=4),
        wide,
    ),
    Case("USENC", of(dc.USENC, n_representatives=60, n_base_clusterings=2, k_range=(3, 9)), rings),
    Case("Ensemble-KMeans-BipartiteCut", ensemble(dc.KMeans(), dc.BipartiteCut()), rings),
    Case("Ensemble-USPEC-SECRP", ensemble(dc.USPEC(n_representatives=60), dc.SEC(n_components=12, n_init=2)), rings),
    Case("Ensemble-KMeans-ISEC", ensemble(dc.KMeans(), dc.ISEC(n_representatives=40), **SAMPLED), rings),
    Case("Ensemble-FastCSC-SEC", ensemble(dc.FastCSC(n_representatives=40), dc.SEC(n_init=2)), rings, labels),
    Case(
        "Ensemble-FastCSPML-ISEC",
        ensemble(dc.FastCSPML(n_landmarks=30), dc.ISEC()),
        few_rings,
        few_labels,
        predicts=False,
    ),
    Case("Ensemble-scikit-learn", ensemble(InMemoryKMeans(n_init=1)), rings, foreign=True),
    Case("BipartiteCut", of(dc.BipartiteCut), base_clusterings, consensus=True),
    Case("BipartiteCut-local", of(dc.BipartiteCut, weights="local"), base_clusterings, consensus=True),
    Case("ECPCS", of(dc.ECPCS), base_clusterings, consensus=True),
    Case("EAC-wct", of(dc.EAC, weights="wct"), base_clusterings, consensus=True),
    Case("PTGP", of(dc.PTGP), base_clusterings, consensus=True),
    Case("SEC", of(dc.SEC, n_init=4), base_clusterings, consensus=True),
    Case("KCC", of(dc.KCC, n_init=4), base_clusterings, consensus=True),
    Case("KCC-categorical", of(dc.KCC, utility="categorical", n_init=2), base_clusterings, consensus=True),
    Case("KCC-cosine", of(dc.KCC, utility="cosine", n_init=2), base_clusterings, consensus=True),
    Case("KCC-lp", of(dc.KCC, utility="lp", p=3.0, n_init=2), base_clusterings, consensus=True),
    Case("SECRP", of(dc.SEC, n_components=24, n_init=4), base_clusterings, consensus=True),
    Case("ISEC", of(dc.ISEC), base_clusterings, consensus=True, predicts=False),
    Case("ISEC-representatives", of(dc.ISEC, n_representatives=60), base_clusterings, consensus=True),
    Case("FastCSC", of(dc.FastCSC, n_representatives=60), rings, labels),
    Case("FastCSC-pairs", of(dc.FastCSC, n_representatives=60), rings, pairs),
    Case("CSPML", of(dc.CSPML), few_rings, few_labels, predicts=False),
    Case("FastCSPML", of(dc.FastCSPML, n_landmarks=60), rings, labels, predicts=False),
]

#: One case of each class.
CLASSES = list({type(case.make()).__name__: case for case in reversed(CASES)}.values())[::-1]


def every(cases: Iterable[Case], *, options: bool = True, whole: bool = False) -> Callable[[Any], Any]:
    """Run a law for cases of the list.

    By default a law runs for every third case, which ones follows from its name: each case meets a third of the laws,
    and each law a third of the cases. The others are slow tests; `whole` is for laws that one case breaks where others
    do not.
    Where options hardly matter to a law, other cases of a class are slow tests, too.
    """
    listed = list(cases)

    def of_test(test: Any) -> Any:
        now = [case for case in listed if options or case in CLASSES]
        if not whole and len(now) > 4:
            now = every_third(now, test.__name__)
        return pytest.mark.parametrize("case", [as_parameter(case, slow=case not in now) for case in listed])(test)

    return of_test


def every_third(cases: list[Case], law: str) -> list[Case]:
    """A third of the cases, as the name of the law has it."""
    return cases[zlib.crc32(law.encode()) % 3 :: 3]


def as_parameter(case: Case, *form: Any, slow: bool = False) -> Any:
    """A case, and a form of it, as a parameter of a test."""
    marks = [pytest.mark.slow] if slow else []
    return pytest.param(case, *form, id="-".join([case.id, *map(str, form)]), marks=marks)


def of_ids(*ids: str) -> list[Case]:
    """Some cases of the list."""
    by_id = {case.id: case for case in CASES}
    return [by_id[name] for name in ids]


@cache
def reference(case: Case, block_rows: int = 128) -> Any:
    """The fit of a case to NumPy, in blocks of so many rows; made once, and not to be changed."""
    with blocks_of(block_rows):
        return case.fit()


@cache
def chunked_reference(case: Case) -> Any:
    """The fit of a case to chunks; made once, and not to be changed."""
    with blocks_of(128):
        return case.fit_chunked()


# -- comparing -------------------------------------------------------------------------------------------------------


def fitted(model: Any) -> dict[str, Any]:
    """The public fitted attributes, as arrays; of what is fitted inside, its own."""
    values = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            parts = value if isinstance(value, list) else [value]
            values[name] = [fitted(part) if hasattr(part, "fit") else np.asarray(part) for part in parts]
    return values


def assert_equal_fits(model: Any, expected: Any, but: Collection[str] = ()) -> None:
    """Every fitted attribute, to the last bit."""
    found, wanted = (
        {name: value for name, value in fitted(each).items() if name not in but} for each in (model, expected)
    )
    assert "labels_" in wanted
    np.testing.assert_equal(found, wanted)


def same_partition(labels: Any, others: Any) -> bool:
    """Whether two labelings are one partition under different names."""
    both = np.unique(np.stack([np.asarray(labels), np.asarray(others)]), axis=1)
    return both.shape[1] == len(np.unique(both[0])) == len(np.unique(both[1]))
