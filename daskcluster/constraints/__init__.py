"""What a user knows about rows: that they belong together, or apart.

===============  ==================================================================
constraints.py   pairs or partial labels, checked, in one internal form
closure.py       must-link components, implied cannot-links, contradictions
laplacian.py     constraints -> Laplacians projected onto the representatives (p, p)
layers.py        constraints -> layers of a multi-layer graph, their subspaces
satisfaction.py  which constraints a labeling keeps
===============  ==================================================================
"""

from __future__ import annotations

from .constraints import Constraints

__all__ = ["Constraints"]
