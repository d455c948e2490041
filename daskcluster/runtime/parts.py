"""What a product is made from, kept while it grows: a fit that is killed goes on from there.

Making a product is a sequence of passes over row blocks, and work in memory between them, which decides what the next
pass does. All of it is the same in each run with the same input, parameters and seed. So it is enough to keep what the
passes found: a run that goes on makes the product anew, and is told the result of every pass that was made before. A
Lloyd iteration of a hundred passes continues at its last one, and no stage needs a line for that. Of the pass that was
going on, the results of blocks, or sums of groups of them, are there.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from ..files import Place
from ..files.records import Records
from .deadline import at_deadline

__all__ = ["PartialSums", "Parts", "Pass", "current_parts", "describe_parts", "recorded", "token_of", "unit_name"]

logger = logging.getLogger("daskcluster")

#: Work of so many seconds is written together: what is shorter costs no file, and no time.
SAVED_SECONDS = 0.5

#: Those that are being added to, which what ends this process from another thread must save.
_open = weakref.WeakSet["Parts"]()

_current: ContextVar[Parts | None] = ContextVar("daskcluster_parts", default=None)


def current_parts() -> Parts | None:
    """Those of the product that is being made, if a named store keeps it."""
    return _current.get()


@contextmanager
def recorded(parts: Parts | None) -> Iterator[None]:
    """Keep the passes inside; what is not written yet is when they end by an exception."""
    token = _current.set(parts)
    if parts is not None:
        _open.add(parts)
    try:
        yield
    except BaseException:
        if parts is not None:
            parts.save()
        raise
    finally:
        _current.reset(token)
        if parts is not None:
            _open.discard(parts)


def _save_all() -> None:
    """Write what is not written yet of all products that are being made: this process is about to end."""
    for parts in list(_open):
        parts.save()


at_deadline(_save_all)


class Parts:
    """Results of the passes of one product.

    Parameters
    ----------
    path : Path or ObjectPath
        Of the records; made when there is something to write.
    """

    def __init__(self, path: Place) -> None:
        self.path = path
        self._records = Records(path)
        self._n_passes = 0
        self._able = True
        self._begun = time.monotonic()
        self._waiting: dict[str, Any] = {}
        self._superseded: set[str] = set()
        self._saved = time.monotonic()
        #: What adds and what ends the process are two threads.
        self._lock = threading.RLock()

    def begin(self, name: str, n_blocks: int, token: str) -> Pass:
        """The next pass, of the name of its tasks, over so many blocks; `token` tells what it does.

        What is there of another pass, and of those after it, is forgotten.
        """
        number = self._n_passes
        self._n_passes += 1
        form = {"name": name, "blocks": n_blocks, "token": token}
        key = f"{number}/pass"
        if key in self._records and self._records.get(key) != form:
            self._records.forget([kept for kept in self._records if int(kept.split("/")[0]) >= number])
        if key not in self._records:
            self._waiting[key] = form
        return Pass(self, number)

    def units(self, number: int) -> dict[str, Any]:
        """What is there of a pass: unit -> result; "whole" for all of it."""
        prefix = f"{number}/"
        keys = [key for key in self._records if key.startswith(prefix) and key != f"{number}/pass"]
        whole = f"{prefix}whole"
        return {key[len(prefix) :]: self._records.get(key) for key in ([whole] if whole in keys else keys)}

    def add(self, number: int, unit: str, result: Any, instead_of: list[str]) -> None:
        """Keep a result, which makes those of some others superfluous."""
        with self._lock:
            for old in instead_of:
                if self._waiting.pop(f"{number}/{old}", None) is None:
                    self._superseded.add(f"{number}/{old}")
            self._waiting[f"{number}/{unit}"] = result
        if time.monotonic() - self._saved >= SAVED_SECONDS:
            self.save()

    def save(self) -> None:
        """Write what is not written yet."""
        with self._lock:
            waiting, superseded = self._waiting, self._superseded
            self._waiting, self._superseded = {}, set()
            if waiting and self._able:
                try:
                    self._records.put(waiting, tuple(superseded))
                except OSError as error:  # a full disk: the work goes on, and only a later run would miss them
                    self._able = False
                    logger.warning("%s cannot be written, so a later run does this work again: %s", self.path, error)
            self._saved = time.monotonic()

    def save_long(self) -> None:
        """Write what is not written yet if it was long work altogether."""
        if time.monotonic() - self._begun >= SAVED_SECONDS or len(self._records):
            self.save()

    def clear(self) -> None:
        """Remove all of it."""
        self._waiting.clear()
        self._records.clear()


class Pass:
    """One pass: the results of its units, of which some may be there."""

    def __init__(self, parts: Parts, number: int) -> None:
        self._parts, self._number = parts, number
        self.found = parts.units(number)

    @property
    def whole(self) -> Any | None:
        """The result of the pass, if it was made."""
        return self.found.get("whole")

    def add(self, unit: str, result: Any, instead_of: list[str] | None = None) -> None:
        """Keep the result of a unit, instead of those from which it was made."""
        self._parts.add(self._number, unit, result, instead_of or [])

    def finish(self, result: Any, instead_of: list[str]) -> None:
        """Keep the result of the pass, and no others."""
        self.add("whole", result, instead_of)


class PartialSums:
    """Results of blocks, combined in a tree of fixed shape as soon as all parts of a node are there.

    Parameters
    ----------
    combine : callable
        Results in block order -> result.
    fan_in : int
        Parts of a node.
    n_blocks : int
    record : Pass
        Gets the nodes whose parents are not complete, and has those of an earlier run.
    """

    def __init__(self, combine: Callable[[list[Any]], Any], fan_in: int, n_blocks: int, record: Pass) -> None:
        self._combine, self._fan_in, self._record = combine, fan_in, record
        #: Nodes of each level, from the blocks on to the whole.
        self.lengths = [n_blocks, -(-n_blocks // fan_in)]
        while self.lengths[-1] > 1:
            self.lengths.append(-(-self.lengths[-1] // fan_in))
        self._nodes: dict[tuple[int, int], Any] = {}
        if record.whole is not None:
            self._nodes[len(self.lengths) - 1, 0] = record.whole
            return
        found = {tuple(map(int, unit.split("-"))): result for unit, result in record.found.items()}
        for (level, place), result in sorted(found.items(), key=lambda node: -node[0][0]):
            if not self.has(level, place):  # the parts of a sum may still be in the file
                self._nodes[level, place] = result

    def has(self, level: int, place: int) -> bool:
        """Whether a node, or one above it, is there."""
        for above in range(level, len(self.lengths)):
            if (above, place) in self._nodes:
                return True
            place //= self._fan_in
        return False

    def add(self, level: int, place: int, result: Any) -> None:
        """Add a node, and those above it that are complete now."""
        top, used = len(self.lengths) - 1, list[str]()
        self._nodes[level, place] = result
        while level < top:
            first = place - place % self._fan_in
            parts = [(level, k) for k in range(first, min(first + self._fan_in, self.lengths[level]))]
            if not all(part in self._nodes for part in parts):
                break
            used += [unit_name(*part) for part in parts if part != (level, place)]
            result = self._combine([self._nodes.pop(part) for part in parts])
            level, place = level + 1, place // self._fan_in
            self._nodes[level, place] = result
        if level == top:
            self._record.finish(result, used)
        else:
            self._record.add(unit_name(level, place), result, used)

    @property
    def result(self) -> Any:
        """The whole, when all of it is there."""
        return self._nodes[len(self.lengths) - 1, 0]


def unit_name(level: int, place: int) -> str:
    """Name of a node of a pass in the records; level 0 are the blocks."""
    return f"{level}-{place}"


def describe_parts(path: Place, fan_in: int) -> dict[str, int]:
    """How far a product is of which there are parts: its complete passes, and the blocks of the one after them.

    Empty where nothing is there.
    """
    records = Records(path)
    numbers = [int(key.split("/")[0]) for key in records if key.endswith("/pass")]
    if not numbers:
        return {}
    last = max(numbers)
    passes = last  # those before the last one, and this one where it is whole
    if f"{last}/whole" in records:
        return {"passes": passes + 1}
    done = np.zeros(int(records.get(f"{last}/pass")["blocks"]), bool)
    for key in records:
        number, _, unit = key.partition("/")
        if int(number) == last and unit != "pass":
            level, place = map(int, unit.split("-"))
            done[place * fan_in**level : (place + 1) * fan_in**level] = True
    if done.all():
        return {"passes": passes + 1}
    return {"passes": passes, "done": int(done.sum()), "blocks": len(done)}


# -- what a pass does --------------------------------------------------------------------------------------------------


def token_of(value: Any) -> str:
    """A hash of what a function is and is given, the same in every process: not of where it lies in memory.

    It tells a pass from another one after the work before it came out differently: on a processor of another kind, in
    the last digits. Of objects of kinds unknown here only the class takes part.
    """
    digest = hashlib.blake2b(digest_size=16)
    _update(digest, value, 0)
    return digest.hexdigest()


def _update(digest: Any, value: Any, depth: int) -> None:
    digest.update(f"{type(value).__qualname__}:".encode())
    if depth > 12:
        return
    if value is None or isinstance(value, bool | int | float | str | bytes | np.dtype | type):
        digest.update(repr(value).encode())
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        if not array.dtype.hasobject:
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    elif isinstance(value, partial):
        for each in (value.func, value.args, value.keywords):
            _update(digest, each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            _update(digest, each, depth + 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            _update(digest, key, depth + 1)
            _update(digest, each, depth + 1)
    elif hasattr(value, "__qualname__"):  # a function, or a method
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        if getattr(value, "__self__", None) is not None:
            _update(digest, value.__self__, depth + 1)
    elif type(value).__module__.startswith("daskcluster."):
        _update(digest, vars(value) if hasattr(value, "__dict__") else {}, depth + 1)
