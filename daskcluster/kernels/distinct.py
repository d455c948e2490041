"""Distinct rows of codes on one block: which rows are equal, and where a row is among known ones.

Codes are those of `kernels.incidence`. Tables of places are open-addressed, of at least twice as many slots as rows.
"""

from __future__ import annotations

import numpy as np

from .jit import jit

__all__ = ["find_rows", "hash_rows", "number_rows", "place_rows"]

#: Hashes are below this prime; products with the multiplier stay below 2**62.
HASH_PRIME = 2**31 - 1
HASH_MULTIPLIER = 1_103_515_245


@jit
def _hash_row(codes, i):
    value = np.int64(1)
    for j in range(codes.shape[1]):
        value = (value * HASH_MULTIPLIER + np.int64(codes[i, j]) + 2) % HASH_PRIME
    return value * HASH_MULTIPLIER % HASH_PRIME


@jit
def hash_rows(codes):
    """Hash of each row (n,) int64, below `HASH_PRIME`."""
    out = np.empty(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        out[i] = _hash_row(codes, i)
    return out


@jit
def _equal(codes, i, known, k):
    for j in range(codes.shape[1]):  # noqa: SIM110 - numba has no `all`
        if codes[i, j] != known[k, j]:
            return False
    return True


@jit
def _slot(codes, i, known, table):
    """Slot of the known row that is equal to row i, or the free slot where it would be."""
    slot = _hash_row(codes, i) % len(table)
    while table[slot] >= 0 and not _equal(codes, i, known, table[slot]):
        slot = slot + 1 if slot + 1 < len(table) else 0
    return slot


@jit
def number_rows(codes):
    """Number the distinct rows that have a label, in the order in which they come first.

    Parameters
    ----------
    codes : (n, m) int

    Returns
    -------
    numbers : (n,) int64
        Of each row; -1 for a row without labels.
    first : (u,) int64
        The row that is the first of each number.
    """
    n_rows = codes.shape[0]
    table = np.full(2 * n_rows + 1, -1, np.int64)
    numbers = np.full(n_rows, -1, np.int64)
    first = np.empty(n_rows, np.int64)
    n_found = 0
    for i in range(n_rows):
        labelled = False
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0:
                labelled = True
        if not labelled:
            continue
        slot = _slot(codes, i, codes, table)
        if table[slot] < 0:
            table[slot] = i
            first[n_found] = i
            numbers[i] = n_found
            n_found += 1
        else:
            numbers[i] = numbers[table[slot]]
    return numbers, first[:n_found].copy()


@jit
def place_rows(known):
    """Table of places of known rows (u, m), for `find_rows`; of equal ones the first."""
    table = np.full(2 * known.shape[0] + 1, -1, np.int64)
    for i in range(known.shape[0]):
        slot = _slot(known, i, known, table)
        if table[slot] < 0:
            table[slot] = i
    return table


@jit
def find_rows(codes, known, table):
    """Place of each row of a block among the known ones (n,) int64; -1 for a row that is not there."""
    places = np.empty(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        places[i] = table[_slot(codes, i, known, table)]
    return places
