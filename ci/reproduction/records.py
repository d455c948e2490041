"""Draws on disk: one JSON line each, so that a run which was stopped goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Record", "Records"]


@dataclass(frozen=True)
class Record:
    """One draw of one cell: its metrics, or why there are none, and what it was allowed to take then."""

    system: str
    column: str
    draw: int
    paper_sizes: bool
    metrics: Mapping[str, float] = field(default_factory=dict)
    failed: str = ""
    seconds: float | None = None
    gigabytes: float | None = None

    @property
    def key(self) -> tuple[str, str, int, bool]:
        return self.system, self.column, self.draw, self.paper_sizes


class Records:
    """The draws of one experiment of a paper. Of two lines of one draw the later counts. Threads may share one."""

    def __init__(self, folder: Path, paper: str, experiment: str) -> None:
        self.path = folder / paper / f"{experiment}.jsonl"
        self._found: dict[tuple[str, str, int, bool], Record] = {}
        self._lock = threading.Lock()
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    record = Record(**json.loads(line))
                except ValueError:  # the end of a line that was being written when the run was stopped
                    continue
                self._found[record.key] = record

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def add(self, record: Record) -> None:
        """Append a draw."""
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
            with self.path.open("a") as file:
                file.write(("\n" if torn else "") + json.dumps(_told(record)) + "\n")
            self._found[record.key] = record

    def of(self, system: str, column: str, paper_sizes: bool) -> list[Record]:
        """Draws of a cell, by number."""
        with self._lock:
            known = list(self._found.values())
        found = [r for r in known if (r.system, r.column, r.paper_sizes) == (system, column, paper_sizes)]
        return sorted(found, key=lambda record: record.draw)


def _told(record: Record) -> dict[str, Any]:
    """A record as its line has it: without limits, where there are none."""
    return {name: value for name, value in asdict(record).items() if value is not None}
