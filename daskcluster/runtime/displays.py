"""Where the progress of a fit is shown: bars in a terminal, a table in a notebook, lines elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from ..markup import Markup, html_lines, html_table
from .compiling import COMPILING_TEXT
from .threads import Shared

if TYPE_CHECKING:
    from .progress import StageState

__all__ = ["Bars", "Display", "Lines", "Table", "choose_display", "duration_text"]

logger = logging.getLogger("daskcluster")

#: A stage that lasts is told again after so many seconds.
LINE_SECONDS = 60.0


class Display(Protocol):
    """Shows the stages of one fit; `update` is called about once a second, and when a stage begins and ends."""

    def start(self) -> None:
        """Begin."""

    def update(self, stage: StageState) -> None:
        """Show how far a stage is."""

    def say(self, text: str) -> None:
        """Show a line that the log has too."""

    def stop(self) -> None:
        """End; what was shown stays as it is."""


def choose_display(verbose: bool) -> Display | None:
    """What suits where the fit runs; None where nobody listens."""
    if not verbose:
        return Lines(to_stderr=False) if logger.isEnabledFor(logging.INFO) else None
    if _in_notebook():
        return Table()
    from rich.console import Console

    console = Console(stderr=True)
    # Kernels and build servers set FORCE_COLOR, which rich takes for a terminal: bars in a file are a line a second.
    drawn = console.is_terminal and sys.stderr is not None and sys.stderr.isatty()
    return Bars(console) if drawn else Lines(to_stderr=True)


def _in_notebook() -> bool:
    """Whether a notebook shows what this process displays."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def duration_text(seconds: float) -> str:
    """A time that is left, roughly: "about 12 min"."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"


class Bars:
    """A bar a stage, by rich, on a terminal."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(),
            TextColumn("{task.fields[blocks]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._tasks: dict[int, Any] = {}

    def start(self) -> None:
        """Draw from now on."""
        self._bars.start()

    def update(self, stage: StageState) -> None:
        """Draw a stage."""
        said = "stopped" if stage.stopped else COMPILING_TEXT if stage.compiling else stage.detail
        done, total = (1, 1) if stage.ended and not stage.total else (stage.done, stage.total or None)
        shown: dict[str, Any] = {
            "description": stage.name if stage.ended or not said else f"{stage.name}: {said}",
            "blocks": "" if total is None else f"{done:,}/{total:,}",
            "left": "" if stage.left is None else f"{duration_text(stage.left)} left",
        }
        if stage.number not in self._tasks:
            self._tasks[stage.number] = self._bars.add_task(total=total, **shown)
        self._bars.update(self._tasks[stage.number], completed=done, total=total, **shown)

    def say(self, text: str) -> None:
        """Write it above the bars."""
        self._bars.console.print(text, highlight=False)

    def stop(self) -> None:
        """Leave the bars as they are now."""
        self._bars.refresh()
        self._bars.stop()


class Table:
    """A table of the stages that a notebook keeps, and a page exported from it shows.

    Widgets would need ipywidgets, which JupyterLab does not bring, and a page does not keep their state.
    """

    def __init__(self) -> None:
        self._said: list[str] = []
        self._stages: dict[int, StageState] = {}
        self._handle: Any = None

    def start(self) -> None:
        """Nothing is shown before there is a stage."""

    def update(self, stage: StageState) -> None:
        """Show the stages up to this one."""
        self._stages[stage.number] = stage
        self._show()

    def _show(self) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(self, display_id=True)
        else:
            self._handle.update(self)

    def say(self, text: str) -> None:
        """Show it above the table."""
        self._said.append(text)
        self._show()

    def stop(self) -> None:
        """The table stays."""

    def __repr__(self) -> str:
        lines = (f"{stage.name:<26}{stage.text()}" for stage in self._stages.values())
        return "\n".join([*self._said, *lines])

    def _repr_html_(self) -> str:
        rows = [(stage.name, _html_bar(stage), stage.text()) for stage in self._stages.values()]
        said = html_lines(self._said) if self._said else ""
        return said + html_table(rows, n_texts=3)


def _html_bar(stage: StageState) -> Markup:
    # A page exported from the notebook has no script and no widget: this element needs neither.
    return Markup(f'<progress max="1" value="{stage.fraction:.3f}" aria-label="{escape(stage.name)}"></progress>')


class Lines:
    """A line on the logger ``daskcluster`` for a stage that lasts, once a minute; ends are logged without a display."""

    def __init__(self, *, to_stderr: bool) -> None:
        self._to_stderr = to_stderr
        self._told: dict[int, float] = {}

    def start(self) -> None:
        """Write what is logged to stderr, if that is wanted."""
        if self._to_stderr:
            _handler.__enter__()

    def update(self, stage: StageState) -> None:
        """Write a line, if the last one is a minute old."""
        if stage.ended or stage.stopped or stage.seconds - self._told.get(stage.number, 0.0) < LINE_SECONDS:
            return
        self._told[stage.number] = stage.seconds
        logger.info("%s: %s", stage.name, stage.text())

    def say(self, text: str) -> None:
        """The log has it."""

    def stop(self) -> None:
        """No more lines."""
        if self._to_stderr:
            _handler.__exit__()


@contextmanager
def _log_lines() -> Iterator[None]:
    """Write what is logged at level INFO to stderr."""
    handler, level = logging.StreamHandler(sys.stderr), logger.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


#: One handler for all fits at a time, whose lines it would write twice else.
_handler = Shared(_log_lines)
