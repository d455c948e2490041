"""What users call: estimators that follow scikit-learn; a fit reads as the list of its stages."""

from __future__ import annotations

from .consensus import EAC, ECPCS, ISEC, KCC, PTGP, SEC, BipartiteCut, Consensus
from .cspml import CSPML, FastCSPML
from .ensembles import USENC, Ensemble
from .fastcsc import FastCSC
from .kmeans import KMeans
from .selection import ClusterNumber, select_n_clusters
from .uspec import USPEC

__all__ = [
    "CSPML",
    "EAC",
    "ECPCS",
    "KCC",
    "ISEC",
    "PTGP",
    "SEC",
    "USENC",
    "USPEC",
    "BipartiteCut",
    "Consensus",
    "Ensemble",
    "FastCSC",
    "FastCSPML",
    "KMeans",
    "ClusterNumber",
    "select_n_clusters",
]
