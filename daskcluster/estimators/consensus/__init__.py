"""Consensus functions: one file each; `base.py` has what they share."""

from __future__ import annotations

from .base import Consensus
from .bipartite_cut import BipartiteCut
from .ecpcs import ECPCS
from .isec import ISEC
from .kcc import KCC
from .sec import SEC

__all__ = ["KCC", "ECPCS", "ISEC", "SEC", "BipartiteCut", "Consensus"]
