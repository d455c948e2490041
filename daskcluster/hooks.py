"""Calls from the kernels up to whoever reports: the kernels know nobody above them."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ON_COMPILING"]

#: Called before a kernel is compiled that no cache has.
ON_COMPILING: list[Callable[[], None]] = []
