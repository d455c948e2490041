"""What a user knows about rows: that they belong together, or apart.

==================  ===================================================================
constraints.py      `Constraints`: pairs or partial labels, and what follows from them
links.py            pairs of rows, checked, sorted, each once
labels.py           columns of partial labels and weights, opened and checked
closure.py          must-link components, implied cannot-links, contradictions
satisfaction.py     which constraints a labeling keeps
row_constraints.py  constraints on the rows of one input, in its row blocks
given.py            what a fit was given, and the store that is bound to it
present.py          constraints on the rows that are there
sampling.py         rows of held blocks, drawn at random or by their numbers
laplacian.py        constraints -> Laplacians projected onto the representatives (p, p)
cut.py              these -> the constrained cut, an eigenproblem of the representatives
layers.py           constraints -> layers of a multi-layer graph
embedding.py        layers -> their subspaces, and the embedding near to all of them
sampled.py          the same from sampled columns, row block by row block
==================  ===================================================================
"""

from __future__ import annotations

from .constraints import Constraints

__all__ = ["Constraints"]
