"""Ensembles: one file each; `base.py` has what they share."""

from __future__ import annotations

from .ensemble import Ensemble
from .usenc import USENC

__all__ = ["USENC", "Ensemble"]
