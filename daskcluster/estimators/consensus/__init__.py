"""Consensus functions: one file each; `base.py` has what they share."""

from __future__ import annotations

from .base import Consensus
from .bipartite_cut import BipartiteCut
from .isec import ISEC
from .sec import SEC

__all__ = ["ISEC", "SEC", "BipartiteCut", "Consensus"]
