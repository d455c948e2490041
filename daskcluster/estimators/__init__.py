"""What users call; each `fit` reads as the list of its stages."""

from __future__ import annotations

from .kmeans import KMeans
from .uspec import USPEC

__all__ = ["USPEC", "KMeans"]
