"""What users call; each `fit` reads as the list of its stages."""

from __future__ import annotations

from .consensus import ISEC, SEC, BipartiteCut
from .constrained import CSPML, FastCSC, FastCSPML
from .ensemble import USENC, Ensemble
from .kmeans import KMeans
from .uspec import USPEC

__all__ = ["ISEC", "SEC", "USENC", "BipartiteCut", "Ensemble", "CSPML", "FastCSC", "FastCSPML", "USPEC", "KMeans"]
