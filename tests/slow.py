"""Parameters of a test that runs with --run-slow only."""

from typing import Any

import pytest

__all__ = ["slowly"]


def slowly(*values: Any) -> list[Any]:
    """These values of a parameter, marked slow: `parametrize("n", [1, *slowly(10, 100)])`."""
    return [pytest.param(value, marks=pytest.mark.slow, id=getattr(value, "id", None)) for value in values]
