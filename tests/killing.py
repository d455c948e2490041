"""Workers that kill themselves in every stage of a fit, once at work and once with a result."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from dask.utils import key_split
from distributed import WorkerPlugin

from daskcluster.runtime.stages import Run, Stage

__all__ = ["DiesInEveryStage", "telling_stages"]

#: Seconds after which a scheduler has heard of a result.
TOLD_SECONDS = 0.02


class DiesInEveryStage(WorkerPlugin):
    """A worker dies by SIGKILL when it begins the first task of a stage, and when it has a result of the stage.

    Parameters
    ----------
    folder : Path
        `telling_stages` writes there which stage it is; a file beside it for each death.
    ways : collection of str
        "works", "holds" or both.
    """

    def __init__(self, folder: Path, ways: Collection[str]) -> None:
        self.folder, self.ways = folder, ways

    def setup(self, worker: Any) -> None:
        """Remember the worker."""
        self.worker = worker

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        """Die, if no other has died so."""
        if not str(key_split(key)).startswith("dc-") or "executing" not in (start, finish):
            return
        if finish == "executing" and self._first("works"):
            die()
        elif finish == "memory" and self._first("holds"):
            self.worker.loop.call_later(TOLD_SECONDS, die)

    def _first(self, way: str) -> bool:
        if way not in self.ways:
            return False
        stage = (self.folder / "stage").read_text(encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            (self.folder / f"{stage}: {way}").touch(exist_ok=False)
            return True
        return False


def die() -> None:
    """End this process; nothing of it is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def telling_stages(folder: Path) -> Iterator[None]:
    """Write the title of each stage that begins, within those around it, to a file."""
    call = Run.__call__
    titles = list[str]()

    def tell() -> None:
        (folder / "new").write_text(", ".join(titles) or "between stages", encoding="utf-8")
        os.replace(folder / "new", folder / "stage")

    def told(run: Run, stage: Stage, *results: Any) -> Any:
        titles.append(stage.title)
        tell()
        try:
            return call(run, stage, *results)
        finally:
            titles.pop()
            tell()

    tell()
    with mock.patch.object(Run, "__call__", told):
        yield
