"""The one numba decorator of the package and its options."""

from __future__ import annotations

from numba import njit

__all__ = ["FAST", "jit", "jit_fast"]

# Sums may be reassociated so that they vectorise. The input of a kernel is finite (stage 0 checks it) and the
# compiled code is the same for every block, so a row's result depends on nothing but the row.
FAST = {"reassoc", "contract", "nsz", "arcp"}

#: For kernels whose order of operations is part of the result, and for integer kernels.
jit = njit(nogil=True, cache=True, error_model="numpy")

#: For kernels that spend their time in sums over features or representatives.
jit_fast = njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)
