"""How far a computation is, in row blocks: counted by a local scheduler's callbacks, or asked of a distributed one.

Of the groups of tasks that have one name each, a block of rows is a task of the largest; where several are as large,
the one that is least done decides. Groups that only bring rows into blocks follow the user's chunks and do not count,
and what was done before does not either.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dask.callbacks import Callback

from .compiling import COMPILING_SECONDS, TOPIC

__all__ = ["ClusterWork", "CountedWork", "LocalWork", "Work"]

#: Tasks that bring rows into blocks, or beside each other.
_BEFORE = ("dc-part-", "dc-cut-", "dc-blocks-", "dc-read-", "dc-source-", "dc-column-", "dc-decode-", "dc-memory-")


class Work:
    """One computation of a stage.

    Attributes
    ----------
    started : float
        By ``time.monotonic``.
    done, total : int
        Blocks; a total of 0 is not known yet.
    """

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.done = self.total = 0
        #: Whether other processes that take part compile kernels.
        self.compiling = False
        #: What else takes the time.
        self.note = ""

    def poll(self) -> None:
        """Look how far it is."""


def _group_of(key: Any) -> str:
    return str(key[0]) if isinstance(key, tuple) else str(key).rpartition("-")[0]


def _largest(sizes: Mapping[str, int]) -> dict[str, int]:
    """The groups of which a task is a block."""
    ours = {name: size for name, size in sizes.items() if name.startswith("dc-") and not name.startswith(_BEFORE)}
    found = ours or sizes
    most = max(found.values(), default=0)
    return {name: size for name, size in found.items() if size == most}


class CountedWork(Work):
    """A computation whose blocks are told of one by one."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total

    def advance(self) -> None:
        """One more has ended."""
        self.done += 1


class LocalWork(Work):
    """A computation of a local scheduler, which calls back for every task."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self.callback = Callback(start_state=self._begin, posttask=self._end)._callback

    def _begin(self, dsk: Any, state: dict[str, Any]) -> None:
        groups = _largest(Counter(map(_group_of, [*state["ready"], *state["waiting"]])))
        self._counts = dict.fromkeys(groups, 0)
        self.total = max(groups.values(), default=0)

    def _end(self, key: Any, *arguments: Any) -> None:
        name = _group_of(key)
        if name in self._counts:
            with self._lock:
                self._counts[name] += 1
                self.done = min(self._counts.values())


class ClusterWork(Work):
    """A computation of a distributed scheduler, which knows how many tasks of each group are where.

    The scheduler is asked when somebody looks, not told of every task; with the more tasks, the more rarely.
    """

    def __init__(self, client: Any, keys: Iterable[Any]) -> None:
        super().__init__()
        self._client = client
        # One key of each array leads to all groups that it is made from.
        self._keys: list[Any] | None = list({_group_of(key): key for key in keys}.values())
        self._groups: dict[str, int] = {}
        self._failed = False

    def poll(self) -> None:
        """Ask the scheduler. What goes wrong there is told where the result is waited for."""
        from .warming import WARMING_TEXT, is_warming

        self.note = WARMING_TEXT if is_warming(self._client) else ""
        if self._failed:
            return
        try:
            names = list(self._groups)
            found, self.compiling = self._client.run_on_scheduler(
                _counter(), keys=self._keys, names=names, topic=TOPIC, seconds=COMPILING_SECONDS
            )
        except Exception:
            self._failed = True
            return
        if self._keys is not None and found:
            sizes = {name: size for name, (done, size) in found.items() if done < size}
            self._groups, self._keys = _largest(sizes), None
            self.total = max(self._groups.values(), default=0)
        if self._groups:
            # A group that is gone has been done and forgotten.
            self.done = min(found[name][0] if name in found else size for name, size in self._groups.items())


def _counter() -> Any:
    """What the scheduler runs: a function inside a function travels by value, so that it need not have this package."""

    def count(
        dask_scheduler: Any, keys: Any, names: Any, topic: str, seconds: float
    ) -> tuple[dict[str, tuple[int, int]], bool]:
        from time import time

        groups = {name: dask_scheduler.task_groups[name] for name in names if name in dask_scheduler.task_groups}
        if keys is not None:
            waiting = [dask_scheduler.tasks[key].group for key in keys if key in dask_scheduler.tasks]
            while waiting:
                group = waiting.pop()
                if group.name not in groups:
                    groups[group.name] = group
                    waiting.extend(group.dependencies)
        found = {}
        for name, group in groups.items():
            # What is forgotten was of an earlier computation: what this one needs is known as long as it runs.
            states = {state: number for state, number in group.states.items() if state != "forgotten"}
            done = sum(states.get(state, 0) for state in ("memory", "released", "erred"))
            found[str(name)] = (done, sum(states.values()))
        told = dask_scheduler.get_events(topic)
        return found, bool(told) and time() - told[-1][0] < seconds

    return count
