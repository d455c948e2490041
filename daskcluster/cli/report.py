"""Results as a command shows them: JSON, a table on a terminal, or aligned text."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from .cluster import Cluster

__all__ = [
    "bytes_text",
    "memory_lines",
    "path_lines",
    "peak_memory",
    "seconds_text",
    "show",
    "size_lines",
]


def show(result: Mapping[str, Any], as_json: bool, title: str, lines: Sequence[tuple[str, str]]) -> None:
    """Print a result: as JSON, or its lines of a name and a value."""
    if as_json:
        click.echo(json.dumps(_plain(result), allow_nan=False))
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title, show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for line in lines:
            table.add_row(*line)
        Console().print(table)
    else:
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            click.echo(f"{name:<{width}}  {value}")


def _plain(value: Any) -> Any:
    """The same with numbers that JSON has not, as words: "NaN", "Infinity", "-Infinity", as Zarr writes them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def size_lines(sizes: Mapping[str, int], estimator: Any) -> list[tuple[str, str]]:
    """Show the sizes of clusters, largest first, and how many rows have no label."""
    counts = sorted((count for label, count in sizes.items() if label != "-1"), reverse=True)
    shown = ", ".join(f"{count:,}" for count in counts[:20])
    if len(counts) > 20:
        shown += f" and {len(counts) - 20} more"
    lines = [("cluster sizes", shown)]
    if "-1" in sizes:
        lines.append(("rows without label", f"{sizes['-1']:,} ({_reason(estimator)})"))
    return lines


def _reason(estimator: Any) -> str:
    """Say why an estimator, or the last step of a pipeline, leaves rows without a label."""
    from ..estimators import Ensemble
    from ..estimators.consensus import Consensus

    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if isinstance(last, Consensus):
        return "no known label in any base clustering"
    return "NaN or infinity, or no label in any base clustering" if isinstance(last, Ensemble) else "NaN or infinity"


def path_lines(outputs: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Show where outputs are, those that were kept."""
    return [(name, path) for name, path in outputs.items() if path is not None]


def seconds_text(number: float) -> str:
    """Return a time for people."""
    return f"{number:.1f} s"


def bytes_text(number: int | None) -> str:
    """Return a number of bytes for people."""
    from dask.utils import format_bytes

    return "unknown" if number is None else format_bytes(number)


def peak_memory(cluster: Cluster) -> dict[str, int | None]:
    """Measure the peak memory so far, in bytes: of this process, and of the largest worker that it has started."""
    peaks = {"peak_memory_bytes": _peak_bytes()}
    if cluster.workers is not None:
        peaks["peak_worker_memory_bytes"] = _max_rss("RUSAGE_CHILDREN")  # of those that have ended
    return peaks


def memory_lines(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Show the peak memory that a result has."""
    names = {"peak memory": "peak_memory_bytes", "peak of a worker": "peak_worker_memory_bytes"}
    return [(name, bytes_text(result[key])) for name, key in names.items() if key in result]


def _peak_bytes() -> int | None:
    """Return the peak memory of this process; None where the system does not tell."""
    try:
        # Not `ru_maxrss` alone: on Linux it starts from the memory of the process that started this one.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _max_rss("RUSAGE_SELF")


def _max_rss(whose: str) -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(getattr(resource, whose)).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
