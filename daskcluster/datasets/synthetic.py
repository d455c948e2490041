"""Five sets of points in the plane that k-means cannot cluster: lazy, the same rows for any chunking.

They follow Fig. 5 and Table 3 of uspec_usenc_2019: the shapes and the numbers of classes are the paper's.
Sizes, noise and the shares of the classes are not given there; here they are such that k-means scores about
what the paper reports for it (Table 4), while the classes overlap hardly or not at all.

Every class is a piece of a ring, a straight stem or a Gaussian. A row is an independent draw: first its
class, then its place. Rows are drawn in logical blocks of `BLOCK_ROWS`, each with its own seed, so row i
depends on the seed and on i, and on nothing else: not on the chunks, not on the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import cos, pi, sin
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..runtime.seeding import root_seed
from ..typing import Array, Seed
from ..validation import check_integer, check_seed

__all__ = [
    "make_circles_gaussians",
    "make_concentric_circles",
    "make_flower",
    "make_smiling_face",
    "make_two_bananas",
]

#: Rows of a logical block: what a task draws to get a single row of it. Part of what a seed means.
BLOCK_ROWS = 2**14
#: Most rows of a chunk that ``chunks="auto"`` makes: 8 MiB of X.
AUTO_ROWS = 2**20


def make_two_bananas(n_samples: int, *, chunks: Any = "auto", random_state: Seed = None) -> tuple[da.Array, da.Array]:
    """Draw two interlocking half rings of equal size.

    Parameters
    ----------
    n_samples : int
        Number of rows n, at least 1.
    chunks : "auto", int or tuple
        Row chunks, as dask takes them: rows of a chunk, ``(rows, 2)``, a tuple of lengths that sum to n, or
        ``X.chunks`` of another set. "auto" takes 2**20 rows, fewer if dask's ``array.chunk-size`` is smaller
        than that. The two columns always stay together. The chunks do not change the rows.
    random_state : int, RandomState, Generator or None
        An integer gives the same rows in every call; a generator gives its next number as seed; None draws a
        fresh one, at this call.

    Returns
    -------
    X : dask array (n, 2), float32
        Lazy; reading it twice gives the same rows.
    y : dask array (n,), int32
        The class of every row, chunked like the rows of X: 0 the upper banana, 1 the lower.

    Raises
    ------
    TypeError
        If `n_samples` is no integer.
    ValueError
        If `n_samples` is below 1, or `chunks` or `random_state` cannot be understood.

    Notes
    -----
    TB of uspec_usenc_2019 (there with 1,000,000 rows). Radius 1, noise 0.12; the classes overlap slightly. A
    task draws whole logical blocks of 2**14 rows, one at a time, and needs about 4 MB beside its chunk.

    Examples
    --------
    >>> X, y = make_two_bananas(1_000_000, random_state=0)
    >>> X.shape, X.dtype, y.dtype
    ((1000000, 2), dtype('float32'), dtype('int32'))
    """
    return _make("two_bananas", n_samples, chunks, random_state)


def make_smiling_face(n_samples: int, *, chunks: Any = "auto", random_state: Seed = None) -> tuple[da.Array, da.Array]:
    """Draw a face: two arches side by side on top, a wide smile below them, a small nose inside the smile.

    Parameters
    ----------
    n_samples, chunks, random_state
        As in `make_two_bananas`, also for errors and cost.

    Returns
    -------
    X : dask array (n, 2), float32
    y : dask array (n,), int32
        0 the left arch and 1 the right (20 % of the rows each), 2 the smile (56 %), 3 the nose (4 %).

    Notes
    -----
    SF of uspec_usenc_2019 (there with 2,000,000 rows).
    """
    return _make("smiling_face", n_samples, chunks, random_state)


def make_concentric_circles(
    n_samples: int, *, chunks: Any = "auto", random_state: Seed = None
) -> tuple[da.Array, da.Array]:
    """Draw a thick, disc-like ring and two rings around it.

    Parameters
    ----------
    n_samples, chunks, random_state
        As in `make_two_bananas`, also for errors and cost.

    Returns
    -------
    X : dask array (n, 2), float32
    y : dask array (n,), int32
        0 the inner ring (17 % of the rows), 1 the middle (30 %), 2 the outer (53 %).

    Notes
    -----
    CC of uspec_usenc_2019 (there with 5,000,000 rows). Rows are uniform on the area of their ring, so the
    classes are apart however many rows there are. The largest share is what Table 5 of the paper gives as
    the accuracy of k-means, whose clusters say nothing about the rings.
    """
    return _make("concentric_circles", n_samples, chunks, random_state)


def make_circles_gaussians(
    n_samples: int, *, chunks: Any = "auto", random_state: Seed = None
) -> tuple[da.Array, da.Array]:
    """Draw a Gaussian in a small ring, eight Gaussians around it, and a large thin ring around all.

    Parameters
    ----------
    n_samples, chunks, random_state
        As in `make_two_bananas`, also for errors and cost.

    Returns
    -------
    X : dask array (n, 2), float32
    y : dask array (n,), int32
        0 the Gaussian in the middle (6 % of the rows), 1 the small ring (12 %), 2 to 9 the Gaussians around
        it, counter-clockwise from the right (5 % each), 10 the large ring (42 %).

    Notes
    -----
    CG of uspec_usenc_2019 (there with 10,000,000 rows).
    """
    return _make("circles_gaussians", n_samples, chunks, random_state)


def make_flower(n_samples: int, *, chunks: Any = "auto", random_state: Seed = None) -> tuple[da.Array, da.Array]:
    """Draw a flower: a Gaussian centre, six straight stems outward, an open ring round the end of each.

    Parameters
    ----------
    n_samples, chunks, random_state
        As in `make_two_bananas`, also for errors and cost.

    Returns
    -------
    X : dask array (n, 2), float32
    y : dask array (n,), int32
        0 the centre (7 % of the rows), 1 to 6 the stems (3.5 % each) and 7 to 12 their petals (12 % each),
        both counter-clockwise from the right.

    Notes
    -----
    Flower of uspec_usenc_2019 (there with 20,000,000 rows).
    """
    return _make("flower", n_samples, chunks, random_state)


# -- shapes ------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """One class: its points lie on a ring or a stem (or both extents are 0), plus Gaussian noise.

    A point is (x, y) + t * (along_x, along_y) + r * (cos a, sin a) + noise, with t uniform on [0, 1], a =
    start + t * sweep, and r between the radii `inner` and `outer`, uniform on the area.
    """

    share: float
    x: float
    y: float
    noise: float = 0.0
    inner: float = 0.0
    outer: float = 0.0
    start: float = 0.0
    sweep: float = 0.0
    along_x: float = 0.0
    along_y: float = 0.0


def _arc(share: float, x: float, y: float, radius: float, start: float, sweep: float, noise: float) -> _Piece:
    return _Piece(share, x, y, noise, radius, radius, start, sweep)


def _two_bananas() -> list[_Piece]:
    return [_arc(0.5, 0.0, 0.0, 1.0, 0.0, pi, 0.12), _arc(0.5, 1.0, 0.3, 1.0, pi, pi, 0.12)]


def _smiling_face() -> list[_Piece]:
    return [
        _arc(0.20, -1.25, 0.9, 1.0, 0.0, pi, 0.06),
        _arc(0.20, 1.25, 0.9, 1.0, 0.0, pi, 0.06),
        _arc(0.56, 0.0, 0.8, 3.0, pi, pi, 0.06),
        _Piece(0.04, 0.0, -0.4, 0.12),
    ]


def _concentric_circles() -> list[_Piece]:
    radii = [(0.17, 0.25, 1.0), (0.30, 1.7, 2.1), (0.53, 2.9, 3.3)]
    return [_Piece(share, 0.0, 0.0, 0.0, inner, outer, 0.0, 2 * pi) for share, inner, outer in radii]


def _circles_gaussians() -> list[_Piece]:
    around = [_Piece(0.05, 2.1 * cos(angle), 2.1 * sin(angle), 0.2) for angle in _turns(8)]
    middle = [_Piece(0.06, 0.0, 0.0, 0.12), _arc(0.12, 0.0, 0.0, 0.95, 0.0, 2 * pi, 0.05)]
    return [*middle, *around, _arc(0.42, 0.0, 0.0, 3.3, 0.0, 2 * pi, 0.05)]


def _flower() -> list[_Piece]:
    first, length, noise = 1.0, 2.0, 0.05
    end = first + length
    opening = 0.4 * pi  # towards the centre: the stem enters there
    stems = [
        _Piece(
            0.035,
            first * cos(a),
            first * sin(a),
            noise,
            along_x=length * cos(a),
            along_y=length * sin(a),
        )
        for a in _turns(6)
    ]
    petals = [
        _arc(0.12, end * cos(a), end * sin(a), 1.2, a + pi + opening / 2, 2 * pi - opening, noise) for a in _turns(6)
    ]
    return [_Piece(0.07, 0.0, 0.0, 0.2), *stems, *petals]


def _turns(n: int) -> list[float]:
    return [2 * pi * i / n for i in range(n)]


#: Every set by its name; tasks carry the name.
_SETS = {
    "two_bananas": _two_bananas,
    "smiling_face": _smiling_face,
    "concentric_circles": _concentric_circles,
    "circles_gaussians": _circles_gaussians,
    "flower": _flower,
}


@cache
def _table_of(name: str) -> NDArray[np.float64]:
    """Parameters of a set, one row for each field of `_Piece`, one column for each class."""
    table = np.array(_SETS[name](), np.float64).T
    table.flags.writeable = False
    return table


# -- lazy arrays -------------------------------------------------------------------------------------------


def _make(name: str, n_samples: int, chunks: Any, random_state: Seed) -> tuple[da.Array, da.Array]:
    n_samples = check_integer("n_samples", n_samples, minimum=1)
    rows = _row_chunks(chunks, n_samples)
    check_seed("random_state", random_state)
    seed = root_seed(random_state)
    token = f"dc-make-{name.replace('_', '-')}"
    X = da.map_blocks(
        _features_chunk,
        name,
        seed,
        token=token,
        chunks=(rows, (2,)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )
    y = da.map_blocks(
        _labels_chunk,
        name,
        seed,
        token=f"{token}-labels",
        chunks=(rows,),
        dtype=np.int32,
        meta=np.empty((0,), np.int32),
    )
    return X, y


def _row_chunks(chunks: Any, n_samples: int) -> tuple[int, ...]:
    """Return the row chunks of X (n, 2) that `chunks` asks for."""
    if isinstance(chunks, str) and chunks == "auto":
        bytes_wanted = dask.utils.parse_bytes(dask.config.get("array.chunk-size"))
        rows = min(max(1, bytes_wanted // 8 // BLOCK_ROWS) * BLOCK_ROWS, AUTO_ROWS)
        return _checked_chunks(chunks, rows, n_samples)
    if isinstance(chunks, tuple | list) and len(chunks) > 0:
        lengths = all(isinstance(length, int | np.integer) for length in chunks)
        if lengths and sum(chunks) == n_samples and all(length >= 0 for length in chunks):
            return tuple(int(length) for length in chunks)
        if len(chunks) > 2 or (len(chunks) == 2 and not _takes_both_columns(chunks[1])):
            raise ValueError(
                f"chunks must be row lengths that sum to n_samples={n_samples}, or rows and 2 columns, got {chunks!r}"
            )
        return _checked_chunks(chunks, chunks[0], n_samples)
    return _checked_chunks(chunks, chunks, n_samples)


def _takes_both_columns(chunk: Any) -> bool:
    if isinstance(chunk, int | np.integer):
        return bool(chunk == -1 or chunk >= 2)
    return chunk is None or chunk == "auto" or (isinstance(chunk, Sequence) and list(chunk) == [2])


def _checked_chunks(chunks: Any, rows: Any, n_samples: int) -> tuple[int, ...]:
    try:
        normal = da.core.normalize_chunks((rows,), (n_samples,), dtype=np.dtype((np.void, 8)))[0]
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(f"chunks do not fit n_samples={n_samples}: got {chunks!r} ({error})") from error
    if any(length < 0 for length in normal) or sum(normal) != n_samples:
        raise ValueError(f"chunks do not fit n_samples={n_samples}: got {chunks!r}")
    return tuple(int(length) for length in normal)


# -- tasks -------------------------------------------------------------------------------------------------


def _features_chunk(name: str, seed: int, block_info: Any = None) -> NDArray[np.float32]:
    start, stop = block_info[None]["array-location"][0]
    X = np.empty((stop - start, 2), np.float32)
    for block, first, last in _logical_blocks(start, stop):
        wanted = slice(first - block * BLOCK_ROWS, last - block * BLOCK_ROWS)
        rng = np.random.default_rng(np.random.SeedSequence([seed, block, 1]))
        uniform = rng.random((2, BLOCK_ROWS))[:, wanted]
        noise = rng.standard_normal((2, BLOCK_ROWS))[:, wanted]
        X[first - start : last - start] = _place(name, _classes(name, seed, block)[wanted], uniform, noise)
    return X


def _labels_chunk(name: str, seed: int, block_info: Any = None) -> NDArray[np.int32]:
    start, stop = block_info[None]["array-location"][0]
    y = np.empty(stop - start, np.int32)
    for block, first, last in _logical_blocks(start, stop):
        wanted = slice(first - block * BLOCK_ROWS, last - block * BLOCK_ROWS)
        y[first - start : last - start] = _classes(name, seed, block)[wanted]
    return y


def _logical_blocks(start: int, stop: int) -> list[tuple[int, int, int]]:
    """Logical blocks that rows start..stop touch: number, first and last row wanted (exclusive)."""
    borders = [start, *range((start // BLOCK_ROWS + 1) * BLOCK_ROWS, stop, BLOCK_ROWS), stop]
    return [(first // BLOCK_ROWS, first, last) for first, last in pairwise(borders) if first < last]


def _classes(name: str, seed: int, block: int) -> NDArray[np.intp]:
    """Classes of a whole logical block, from a stream of their own: labels alone need nothing else."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, block, 0]))
    upper = np.cumsum(_table_of(name)[0])[:-1]
    return np.searchsorted(upper, rng.random(BLOCK_ROWS), side="right")


def _place(name: str, classes: NDArray[np.intp], uniform: Array, noise: Array) -> NDArray[np.float64]:
    """Points (n, 2) of these classes (n,) from two uniform and two normal numbers each (2, n)."""
    pieces = _Piece(*_table_of(name)[:, classes])
    along, across = uniform
    angle = pieces.start + along * pieces.sweep
    radius = np.sqrt(pieces.inner**2 + across * (pieces.outer**2 - pieces.inner**2))
    points = np.empty((len(classes), 2))
    points[:, 0] = pieces.x + along * pieces.along_x + radius * np.cos(angle) + pieces.noise * noise[0]
    points[:, 1] = pieces.y + along * pieces.along_y + radius * np.sin(angle) + pieces.noise * noise[1]
    return points
