"""One hostile input: a call, and the one clear error, or the right answer, that it deserves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Case", "refused", "right"]


@dataclass(frozen=True)
class Case:
    """A call and what must come of it.

    Attributes
    ----------
    id : str
    call : callable
        Runs in a folder that holds the stores of `test_hostile.py`, and changes nothing there.
    error : exception type, optional
        What it raises; None where it gives the right answer.
    words : str
        Regular expression found in the message.
    answer : optional
        What it gives, as an array.
    """

    id: str
    call: Callable[[], Any]
    error: type[Exception] | tuple[type[Exception], ...] | None = None
    words: str = ""
    answer: Any = None


def refused(id: str, call: Callable[[], Any], error: Any, words: str) -> Case:
    """A call that is refused, in one line with these words."""
    return Case(id, call, error, words)


def right(id: str, call: Callable[[], Any], answer: Any) -> Case:
    """A call that looks odd and gives the right answer."""
    return Case(id, call, answer=answer)
