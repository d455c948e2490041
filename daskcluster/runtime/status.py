"""What a running fit says of itself in its named store, for those who look from elsewhere.

A small file that the holder of the store replaces every few seconds, and removes when it ends. Who holds the store says
its lock; a status whose writer holds no lock is that of a fit that was killed.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

from ..files.locks import holder
from ..files.objects import Place, replace_text
from .progress import StageState

__all__ = ["STATUS_FILE", "StatusWriter", "read_status"]

#: Name of the file, in the folder of a named store.
STATUS_FILE = ".daskcluster.status"

#: What it says.
_NAMES = {
    "stage",
    "stage_number",
    "n_stages",
    "stage_seconds",
    "blocks_done",
    "blocks_total",
    "blocks_per_second",
    "seconds_left",
    "text",
    "written",
}

#: Seconds between two writes.
WRITE_SECONDS = 3.0


class StatusWriter:
    """Writes how far a fit is into the store that it holds; a listener of `Progress`.

    Parameters
    ----------
    folder : callable
        Gives the store's folder while the fit holds it, else None.
    n_stages : int
        Of the fit.
    """

    def __init__(self, folder: Callable[[], Place | None], n_stages: int) -> None:
        self._folder, self._n_stages = folder, n_stages
        self._written = -WRITE_SECONDS
        self._closed = False

    def __call__(self, stage: StageState) -> None:
        """Write, unless that was done a moment ago; raises OSError."""
        folder = self._folder()
        if folder is None or self._closed or stage.ended or time.monotonic() - self._written < WRITE_SECONDS:
            return
        self._written = time.monotonic()
        file = folder / STATUS_FILE
        replace_text(file, json.dumps(self._content(stage)))
        if self._closed:  # meanwhile
            file.unlink(missing_ok=True)

    def _content(self, stage: StageState) -> dict[str, Any]:
        spent = stage.left * stage.done / (stage.total - stage.done) if stage.left and stage.done else None
        return {
            "stage": stage.name,
            "stage_number": stage.number,
            "n_stages": self._n_stages,
            "stage_seconds": round(stage.seconds, 1),
            "blocks_done": stage.done,
            "blocks_total": stage.total,
            "blocks_per_second": None if not spent else round(stage.done / spent, 3),
            "seconds_left": None if stage.left is None else round(stage.left, 1),
            "text": stage.text(),
            "written": time.time(),
        }

    def close(self) -> None:
        """Remove the file, that of a killed fit too: this one has ended. Before the store is given free."""
        self._closed = True
        folder = self._folder()
        if folder is not None:
            with contextlib.suppress(OSError):  # it tells of the run, which must not fail for it
                for file in folder.glob(f"{STATUS_FILE}*"):
                    file.unlink(missing_ok=True)


def read_status(folder: Place) -> dict[str, Any]:
    """Who holds a named store, and how far that fit is.

    Returns
    -------
    dict
        ``holder``: host, pid and since, or None for a store that no fit holds; ``status``: what `StatusWriter` wrote
        last, or None, where nothing was written or a holder has not come so far.
    """
    found = holder(folder)
    names = ("host", "pid", "since")
    return {
        "holder": None if found is None else {name: found.get(name) for name in names},
        "status": _read(folder / STATUS_FILE),
    }


def _read(file: Place) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return found if found.keys() == _NAMES and float(found["written"]) >= 0 else None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):  # nothing there, or damaged
        return None
