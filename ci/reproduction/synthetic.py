"""The five synthetic sets of uspec_usenc_2019, with the sizes, noise and shares of the points that its Fig. 5 shows.

The sets of `daskcluster.datasets` have the same shapes and classes that hardly overlap; in the paper they do overlap,
and most systems fail on them. The figure is a drawing of 0.1 percent of the rows, point by point: the numbers here were
fitted to these 1000 to 20,000 points, by maximum likelihood where classes overlap. The unit of CC, CG and Flower is a
side of the picture, whose ticks are as far apart in x as in y. Those of TB and SF are not: the unit is the distance of
two ticks for TB, and for SF that which makes its arcs round and its noise as wide in x as in y (ticks 5 apart in x, 2
in y).
"""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHAPES", "draw_points"]


class Piece(NamedTuple):
    """One class: (x, y) + t (along_x, along_y) + (width cos a, height sin a) + noise.

    t is uniform on [0, 1], a = start + t sweep.
    """

    share: float
    x: float
    y: float
    noise: float
    width: float = 0.0
    height: float = 0.0
    start: float = 0.0
    sweep: float = 0.0
    along_x: float = 0.0
    along_y: float = 0.0


def _ring(share: float, radius: float, noise: float) -> Piece:
    return Piece(share, 0.0, 0.0, noise, radius, radius, 0.0, 2 * pi)


def _turns(n: int) -> list[tuple[float, float]]:
    return [(cos(2 * pi * i / n), sin(2 * pi * i / n)) for i in range(n)]


def _petal(c: float, s: float, turn: float) -> Piece:
    """Three quarters of a ring and more, open towards the middle."""
    half = np.radians(147)
    return Piece(0.118, 0.312 * c, 0.312 * s, 0.013, 0.125, 0.125, turn - half, 2 * half)


#: Name -> classes.
SHAPES: dict[str, list[Piece]] = {
    "TB": [
        Piece(0.5, 0.99, 0.0, 0.15, 0.99, 0.92, 0.0, pi),
        Piece(0.5, 0.0, 0.175, 0.15, 0.99, 0.92, pi, pi),
    ],
    "SF": [
        Piece(0.2915, -2.566, 0.0, 0.343, 1.87, 1.87, 0.0, pi),
        Piece(0.2915, 2.566, 0.0, 0.343, 1.87, 1.87, 0.0, pi),
        Piece(0.3685, 0.0, 0.281, 0.345, 2.57, 2.57, pi, pi),
        Piece(0.0485, 0.0, -0.971, 0.28),
    ],
    "CC": [_ring(0.14, 0.1006, 0.0185), _ring(0.33, 0.2428, 0.0185), _ring(0.53, 0.3841, 0.0185)],
    "CG": [
        Piece(0.6 / 9, 0.0, 0.0, 0.0435),
        *(Piece(0.6 / 9, 0.2865 * c, 0.2865 * s, 0.043) for c, s in _turns(8)),
        _ring(0.1, 0.143, 0.0104),
        _ring(0.3, 0.4277, 0.0107),
    ],
    "Flower": [
        Piece(0.022, 0.0, 0.0, 0.011),
        *(Piece(0.045, 0.053 * c, 0.053 * s, 0.011, along_x=0.269 * c, along_y=0.269 * s) for c, s in _turns(6)),
        *(_petal(c, s, i * pi / 3) for i, (c, s) in enumerate(_turns(6))),
    ],
}
#: Rows that are drawn at a time.
BLOCK = 1_000_000


def draw_points(name: str, n_rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Rows (n_rows, 2) and classes of a set by the letters of its name, as in "TB-1M"."""
    table: Any = np.array(SHAPES[name]).T
    shares = table[0] / table[0].sum()
    X, y = np.empty((n_rows, 2), np.float32), np.empty(n_rows, np.int32)
    for start in range(0, n_rows, BLOCK):
        rng = np.random.default_rng([seed, start])
        stop = min(start + BLOCK, n_rows)
        y[start:stop] = rng.choice(len(shares), stop - start, p=shares)
        piece = Piece(*table[:, y[start:stop]])
        t = rng.random(stop - start)
        angle = piece.start + t * piece.sweep
        noise = rng.standard_normal((2, stop - start)) * piece.noise
        X[start:stop, 0] = piece.x + t * piece.along_x + piece.width * np.cos(angle) + noise[0]
        X[start:stop, 1] = piece.y + t * piece.along_y + piece.height * np.sin(angle) + noise[1]
    return X, y
