"""Passes, tasks, bytes and peak memory, stated before anything runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import dask
from dask.system import CPU_COUNT
from dask.utils import format_bytes

from .boundary import budget_bytes
from .execution import FAN_IN, active_client

__all__ = [
    "BASE_BYTES",
    "Plan",
    "StagePlan",
    "holding",
    "make_plan",
    "memory_limit",
    "threads_per_worker",
    "tree_tasks",
]

#: Interpreter, libraries and compiled kernels.
BASE_BYTES = 450 * 2**20


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
        Sum over the stages, at most.
    read_bytes, written_bytes, scratch_bytes : int
    threads : int
        Tasks that a worker runs at a time.
    peak_bytes : int
        Peak memory of a worker process: `BASE_BYTES`, what it holds, and `threads` tasks of the largest stage.
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

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.method}: {self.n_samples:,} rows x {self.n_features} features "
            f"in {self.n_blocks:,} blocks of {self.block_rows:,} rows",
            f"{'stage':<26}{'passes':>8}{'tasks':>12}{'read':>12}{'written':>12}{'task peak':>12}",
        ]
        lines += [
            f"{stage.name:<26}{stage.passes:>8}{stage.tasks:>12,}{format_bytes(stage.read_bytes):>12}"
            f"{format_bytes(stage.written_bytes):>12}{format_bytes(stage.task_bytes):>12}"
            for stage in self.stages
        ]
        lines += [
            f"input read {self.input_passes} times; at most {self.tasks:,} tasks, "
            f"{format_bytes(self.read_bytes)} read, {format_bytes(self.written_bytes)} written",
            f"products held in: {self.held}; scratch space {format_bytes(self.scratch_bytes)}",
            f"peak memory of a worker with {self.threads} threads: {format_bytes(self.peak_bytes)}",
        ]
        return "\n".join(lines)


def threads_per_worker() -> int:
    """Tasks that one worker process of the active scheduler runs at a time."""
    client = active_client()
    if client is not None:
        return max(list(client.nthreads().values()) or [1])
    pool = dask.config.get("pool", None)
    return int(dask.config.get("num_workers", None) or getattr(pool, "_max_workers", None) or CPU_COUNT)


def memory_limit() -> int:
    """Bytes of memory that this process may use: what the machine has, or its control group allows."""
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT)


def holding(storage: Any, n_bytes: int) -> tuple[str, int, int]:
    """Where products of so many bytes are held: name, bytes in this process's memory, bytes on disk."""
    if storage is not None:
        return "named store", 0, n_bytes
    client = active_client()
    if client is not None:
        return "workers", n_bytes // max(1, len(client.nthreads())), 0
    if n_bytes <= budget_bytes():
        return "memory", n_bytes, 0
    return "scratch store", 0, n_bytes


def tree_tasks(n_blocks: int) -> int:
    """Tasks of one reduction over row blocks, its leaves included."""
    total = n_blocks
    while n_blocks > 1:
        n_blocks = -(-n_blocks // FAN_IN)
        total += n_blocks
    return total


def make_plan(
    method: str,
    rows: Any,
    storage: Any,
    stages: list[StagePlan],
    *,
    held_bytes: int,
    input_passes: int,
    small_bytes: int,
) -> Plan:
    """Sum stages up.

    Parameters
    ----------
    rows : Rows
    held_bytes : int
        Products with an entry a row.
    small_bytes : int
        Small arrays that live through the fit.
    """
    where, in_memory, on_disk = holding(storage, held_bytes)
    threads = threads_per_worker()
    return Plan(
        method=method,
        n_samples=rows.n_samples,
        n_features=rows.n_features,
        n_blocks=rows.blocks.numblocks[0],
        block_rows=rows.block_rows,
        held=where,
        input_passes=input_passes,
        stages=tuple(stages),
        tasks=sum(stage.tasks for stage in stages),
        read_bytes=sum(stage.read_bytes for stage in stages),
        written_bytes=sum(stage.written_bytes for stage in stages) if on_disk else 0,
        scratch_bytes=on_disk if storage is None else 0,
        threads=threads,
        peak_bytes=BASE_BYTES + in_memory + small_bytes + threads * max(stage.task_bytes for stage in stages),
    )
