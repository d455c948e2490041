"""Who works on a named store now, and how far that fit is, for `info`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..files import Place

__all__ = ["describe_running"]


def describe_running(folder: Place) -> tuple[dict[str, Any] | None, list[tuple[str, str]]]:
    """Describe the fit that holds a named store; None and nothing where there is none."""
    from ..files.locks import holder_text
    from ..runtime.status import read_status

    found = read_status(folder)
    holder, status = found["holder"], found["status"]
    if holder is None:
        return None, []
    lines = [("running", holder_text(holder))]
    if status is None:
        return {**holder, "status": None}, lines
    age = max(0.0, time.time() - float(status["written"]))
    place = f"stage {status['stage_number']} of {status['n_stages']}"
    lines.append((place, f"{status['stage']}: {status['text']}"))
    if status["blocks_per_second"]:
        lines.append(("rate", f"{status['blocks_per_second']} blocks a second"))
    lines.append(("last sign", f"{age:.0f} s ago"))
    return {**holder, "status": {**status, "age_seconds": round(age, 1)}}, lines
