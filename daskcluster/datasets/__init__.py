"""Data to try the methods on.

synthetic.py   five sets of points in the plane: lazy, of any size, the same rows for any chunking
files.py       the real sets of the papers, from the folder that DASKCLUSTER_DATA names
"""

from __future__ import annotations

from .files import load_benchmark
from .synthetic import (
    make_circles_gaussians,
    make_concentric_circles,
    make_flower,
    make_smiling_face,
    make_two_bananas,
)

__all__ = [
    "make_two_bananas",
    "make_smiling_face",
    "make_concentric_circles",
    "make_circles_gaussians",
    "make_flower",
    "load_benchmark",
]
