"""Consensus functions: one file each; `base.py` has what they share."""

from __future__ import annotations

from .base import Consensus
from .bipartite_cut import BipartiteCut
from .eac import EAC
from .ecpcs import ECPCS
from .isec import ISEC
from .kcc import KCC
from .ptgp import PTGP
from .sec import SEC

__all__ = ["EAC", "KCC", "ECPCS", "ISEC", "PTGP", "SEC", "BipartiteCut", "Consensus"]
