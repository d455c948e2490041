"""Passes, tasks, bytes and peak memory, stated before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, Self

from dask.utils import format_bytes

from ..markup import html_lines, html_table, pretty_text
from .execution import FAN_IN, TILE_ROWS, active_client, runs_in_process
from .groups import held_blocks
from .limits import rooms, threads_per_worker
from .products import budget_bytes
from .promise import Demand, Verdict, Work, advice, judge, refusal

__all__ = [
    "BASE_BYTES",
    "Cost",
    "Plan",
    "Sizes",
    "StagePlan",
    "make_plan",
    "place_products",
    "tree_tasks",
]

#: Bytes of a number of a sparse row, with its column.
ENTRY_BYTES = 12
#: Interpreter, libraries and compiled kernels.
BASE_BYTES = 450 * 2**20


@dataclass(frozen=True)
class Cost:
    """What a stage takes, at most.

    Attributes
    ----------
    passes : int
        Times that it goes over all rows, of the input or of something held.
    input_passes : int
        Those of them that read the input.
    tasks : int
    read_bytes, written_bytes : int
        Uncompressed.
    task_bytes : int
        Peak memory of one of the tasks that run beside each other.
    eager_bytes : int
        Peak memory of what is computed in one piece.
    held : tuple of int
        Bytes of each product with an entry a row that stays until the end of the fit.
    small_bytes : int
        Small arrays that live through the fit.
    """

    passes: int = 0
    input_passes: int = 0
    tasks: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    task_bytes: int = 0
    eager_bytes: int = 0
    held: tuple[int, ...] = ()
    small_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Cost of two parts of a stage, one after the other."""
        return Cost(
            passes=self.passes + other.passes,
            input_passes=self.input_passes + other.input_passes,
            tasks=self.tasks + other.tasks,
            read_bytes=self.read_bytes + other.read_bytes,
            written_bytes=self.written_bytes + other.written_bytes,
            task_bytes=max(self.task_bytes, other.task_bytes),
            eager_bytes=max(self.eager_bytes, other.eager_bytes),
            held=self.held + other.held,
            small_bytes=self.small_bytes + other.small_bytes,
        )

    def __mul__(self, times: int) -> Cost:
        """Cost of the same work done several times, where each time leaves nothing behind."""
        return replace(
            self,
            passes=times * self.passes,
            input_passes=times * self.input_passes,
            tasks=times * self.tasks,
            read_bytes=times * self.read_bytes,
            written_bytes=times * self.written_bytes,
        )


@dataclass(frozen=True)
class Sizes:
    """The lengths that costs are made of.

    Attributes
    ----------
    n_samples, n_features : int
        n, d.
    n_blocks, block_rows : int
        Canonical row blocks, and the rows of the largest.
    raw_bytes, number_bytes : int
        Bytes of a number as it is read, and as it is computed with.
    read_tasks : int
        Tasks that bring the input into row blocks.
    n_right : int
        Right vertices of the bipartite graph: representatives, or base clusters; 0 without a graph.
    n_edges : int
        Edges of a row.
    held_bytes : int
        Bytes a row of what later passes go over: the graph's edges, or an embedding.
    in_memory : bool
        Whether the caller's rows are in memory, so that outputs are handed out there too.
    row_entries : int, optional
        Numbers that a sparse row stores, in the mean of the densest block; None for dense rows.
    right_rows : int, optional
        Rows that representatives are means of; None for all.
    """

    n_samples: int
    n_features: int
    n_blocks: int
    block_rows: int
    raw_bytes: int
    number_bytes: int
    read_tasks: int
    n_right: int = 0
    n_edges: int = 0
    held_bytes: int = 0
    in_memory: bool = False
    row_entries: int | None = None
    right_rows: int | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of a raw row."""
        if self.row_entries is None:
            return self.n_features * self.raw_bytes
        return self.row_entries * (self.raw_bytes + 4) + 8

    @property
    def tile_rows(self) -> int:
        """Rows that a task works on together."""
        return min(TILE_ROWS, self.block_rows)

    @property
    def input_bytes(self) -> int:
        """Bytes of all rows."""
        return self.n_samples * self.row_bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of a raw block."""
        return self.block_rows * self.row_bytes

    @property
    def prepared_bytes(self) -> int:
        """Bytes of a raw row and of its form for computing, with a copy on the way."""
        return self.with_copies(2)

    def with_copies(self, n_copies: int) -> int:
        """Bytes of a raw row and of so many copies of it in its form for computing."""
        if self.row_entries is None:
            return self.n_features * (self.raw_bytes + n_copies * self.number_bytes)
        return self.row_bytes + n_copies * (self.row_entries * ENTRY_BYTES + 8)

    @property
    def point_bytes(self) -> int:
        """Bytes of a number of representatives and centres."""
        return 8 if self.row_entries is None else ENTRY_BYTES

    def point_numbers(self, n_points: int, of_rows: int | None = None) -> int:
        """Numbers of some points: all (p, d), or of sparse rows at most those of the rows that they are means of."""
        most = n_points * self.n_features
        if self.row_entries is None:
            return most
        return min(most, (self.n_samples if of_rows is None else min(of_rows, self.n_samples)) * self.row_entries)

    @property
    def right_numbers(self) -> int:
        """Numbers of the representatives."""
        return self.point_numbers(self.n_right, self.right_rows)

    def with_graph(self, n_right: int, n_edges: int, held_bytes: int, right_rows: int | None = None) -> Self:
        """The same rows with a bipartite graph over them."""
        return replace(self, n_right=n_right, n_edges=n_edges, held_bytes=held_bytes, right_rows=right_rows)

    def over_input(self, task_bytes: int, *, times: int = 1, reduced: bool = False, **more: Any) -> Cost:
        """Cost of passes over the input; a task holds its raw block, which may have been put together, besides.

        `reduced` says that a tree of tasks adds up what the blocks give.
        """
        return Cost(
            passes=times,
            input_passes=times,
            tasks=times * ((tree_tasks(self.n_blocks) if reduced else self.n_blocks) + self.read_tasks),
            read_bytes=times * self.input_bytes,
            task_bytes=(2 * self.block_bytes + task_bytes) if times else 0,
            **more,
        )

    def over_held(self, task_bytes: int, *, times: int = 1, **more: Any) -> Cost:
        """Cost of passes over what is held; a task has its block of it besides, or the piece that workers hold."""
        block_bytes = self.block_rows * self.held_bytes
        return Cost(
            passes=times,
            tasks=times * (self.n_blocks + tree_tasks(self.n_blocks)),
            read_bytes=times * self.n_samples * self.held_bytes,
            task_bytes=held_blocks(self.n_blocks, block_bytes) * block_bytes + task_bytes,
            **more,
        )


@dataclass(frozen=True)
class StagePlan:
    """One stage of a forecast.

    Attributes
    ----------
    name : str
    passes : int
        Times that it goes over all rows, at most.
    tasks : int
        Tasks of these passes, at most.
    read_bytes, written_bytes : int
        Bytes read and written, at most; in their uncompressed size.
    task_bytes : int
        Peak memory of one task, or of the eager problem.
    """

    name: str
    passes: int
    tasks: int
    read_bytes: int
    written_bytes: int
    task_bytes: int


@dataclass(frozen=True)
class Plan:
    """What a fit will cost.

    Attributes
    ----------
    method : str
    n_samples, n_features, n_blocks, block_rows : int
    held : {"memory", "scratch store", "named store", "workers"}
        Where stages keep their products.
    input_passes : int
        Times that the input is read.
    stages : tuple of StagePlan
    tasks : int
        Sum over the stages, at most: of very many blocks a task may have several, see `groups.py`.
    read_bytes, written_bytes, scratch_bytes : int
    threads : int
        Tasks that a worker runs at a time.
    peak_bytes : int
        Peak memory of a worker process: `BASE_BYTES`, what it holds, rows that are in memory, and in the largest stage
        `threads` tasks, what is computed in one piece, and the chunks that are read. On a cluster of processes the
        rows, and what is computed in one piece, are the client's.
    memory : Verdict or None
        This compared with the memory that there is; None while a cluster has no workers.
    demand : Demand
        What `memory` follows from; no part of `to_dict`.
    """

    method: str
    n_samples: int
    n_features: int
    n_blocks: int
    block_rows: int
    held: str
    input_passes: int
    stages: tuple[StagePlan, ...]
    tasks: int
    read_bytes: int
    written_bytes: int
    scratch_bytes: int
    threads: int
    peak_bytes: int
    memory: Verdict | None = None
    demand: Demand | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        values = asdict(replace(self, demand=None))
        del values["demand"]
        return {**values, "memory": self.memory and {**values["memory"], "verdict": self.memory.word}}

    def refusal(self, smaller: Callable[[], str | None]) -> str:
        """What a user is told whose fit does not fit; `smaller` gives a parameter that would, in words."""
        if self.memory is None or self.demand is None:
            raise ValueError("there is nothing to compare with")
        return refusal(self.method, self.memory, advice(self.demand, self.memory.room, smaller))

    def __str__(self) -> str:
        table = [_HEADER, *(_cells(stage) for stage in self.stages)]
        lines = [_LINE.format(*row) for row in table]
        return "\n".join([self._title, *lines, *self._summary])

    _repr_pretty_ = pretty_text

    def _repr_html_(self) -> str:
        """The plan as a table, which notebooks show."""
        return html_table(map(_cells, self.stages), _HEADER, self._title) + html_lines(self._summary)

    @property
    def _title(self) -> str:
        return (
            f"{self.method}: {self.n_samples:,} rows x {self.n_features} features "
            f"in {self.n_blocks:,} blocks of {self.block_rows:,} rows"
        )

    @property
    def _summary(self) -> list[str]:
        return [
            f"input read {self.input_passes} times; at most {self.tasks:,} tasks, "
            f"{format_bytes(self.read_bytes)} read, {format_bytes(self.written_bytes)} written",
            f"products held in: {self.held}; scratch space {format_bytes(self.scratch_bytes)}",
            f"peak memory of a worker with {self.threads} threads: {format_bytes(self.peak_bytes)}",
            f"memory: {'no workers yet to compare with' if self.memory is None else self.memory}",
        ]


_LINE = "{:<26}{:>8}{:>12}{:>12}{:>12}{:>12}"
_HEADER = ("stage", "passes", "tasks", "read", "written", "task peak")


def _cells(stage: StagePlan) -> tuple[str, ...]:
    sizes = (format_bytes(size) for size in (stage.read_bytes, stage.written_bytes, stage.task_bytes))
    return (stage.name, str(stage.passes), f"{stage.tasks:,}", *sizes)


def place_products(storage: Any, held: Sequence[int]) -> tuple[str, int, int]:
    """Where products of so many bytes are held: name, bytes in a worker's memory, bytes on disk.

    As `Products.rows` does it: those after one that did not fit follow it to the scratch store.
    """
    total = sum(held)
    if storage is not None:
        return "named store", 0, total
    client = active_client()
    if client is not None:
        return "workers", total // max(1, len(client.nthreads())), 0
    in_memory = 0
    for size in held:
        if size > budget_bytes():
            return "scratch store", in_memory, total - in_memory
        in_memory += size
    return "memory", in_memory, 0


def tree_tasks(n_blocks: int) -> int:
    """Tasks of one reduction over row blocks, its leaves included."""
    total = n_blocks
    while n_blocks > 1:
        n_blocks = -(-n_blocks // FAN_IN)
        total += n_blocks
    return total


class _Titled(Protocol):
    @property
    def title(self) -> str: ...

    def cost(self, sizes: Sizes) -> Cost: ...


def make_plan(method: str, rows: Any, storage: Any, stages: Iterable[tuple[_Titled, Sizes]]) -> Plan:
    """Sum the costs of stages up.

    Parameters
    ----------
    method : str
    rows : Rows
    storage : path or None
        The named store.
    stages : iterable of (Stage, Sizes)
        With the lengths that the cost of each is made of.
    """
    titled = [(stage.title, stage.cost(sizes)) for stage, sizes in stages]
    costs = [cost for _, cost in titled]
    where, in_memory, on_disk = place_products(storage, [size for cost in costs for size in cost.held])
    threads = threads_per_worker()
    demand = _demand(rows, titled, in_memory if where == "workers" else 0, 0 if where == "workers" else in_memory)
    return Plan(
        method=method,
        n_samples=rows.n_samples,
        n_features=rows.n_features,
        n_blocks=rows.blocks.numblocks[0],
        block_rows=rows.block_rows,
        held=where,
        input_passes=sum(cost.input_passes for cost in costs),
        stages=tuple(
            StagePlan(title, c.passes, c.tasks, c.read_bytes, c.written_bytes, max(c.task_bytes, c.eager_bytes))
            for title, c in titled
        ),
        tasks=sum(cost.tasks for cost in costs),
        read_bytes=sum(cost.read_bytes for cost in costs),
        written_bytes=sum(cost.written_bytes for cost in costs) if on_disk else 0,
        scratch_bytes=on_disk if storage is None else 0,
        threads=threads,
        peak_bytes=demand.working_bytes(threads) + demand.held_bytes,
        demand=demand,
        memory=judge(demand, rooms()),
    )


def _demand(rows: Any, titled: list[tuple[str, Cost]], held_bytes: int, kept_bytes: int) -> Demand:
    """What a process that works needs: `held_bytes` can be spilled, `kept_bytes` cannot."""
    here = active_client() is None or runs_in_process()
    fixed = BASE_BYTES + kept_bytes + sum(cost.small_bytes for _, cost in titled)
    reading = rows.reading.known()
    return Demand(
        fixed_bytes=fixed + (reading.memory_bytes if here else 0),
        held_bytes=held_bytes,
        works=tuple(
            Work(title, cost.task_bytes, cost.eager_bytes if here else 0, cost.input_passes > 0)
            for title, cost in titled
        ),
        reading=reading,
        row_bytes=rows.row_bytes,
    )
