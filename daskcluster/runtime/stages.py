"""Stages as values: the parameters, the title, the checks, the work and the cost of one step of a fit stand together.

An estimator names its stages once (`StageList`). Its `fit` calls them one after the other through a `Run`, in plain
Python; the titles of the progress, the forecast, the checks of parameters and the state of a named store are read from
the same values, so they cannot drift apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from .clients import of_one_client, warm_cluster
from .forecast import Cost, Plan, Sizes
from .limits import peak_bytes, promised
from .products import Products
from .progress import Progress, inside_stage
from .released import released_on_failure
from .results import Results
from .signals import ending_signals
from .status import StatusWriter

__all__ = ["Record", "Run", "Stage", "StageList", "Teller"]


@dataclass(frozen=True)
class Stage:
    """One step of a fit. A subclass is a frozen dataclass of the parameters that decide what the step does.

    It has a `title`; `check` refuses parameters before any work, and `check_size` too many rows; `__call__` gets the
    `Run` and the results of earlier stages and returns its own; `cost` says what this takes at most; and `kept` names
    what it leaves in a named store.
    """

    title: ClassVar[str]

    def check(self) -> None:
        """Refuse parameters that are not acceptable; raises TypeError or ValueError."""

    def check_size(self, n_samples: int) -> None:
        """Refuse more rows than the stage can take; raises ValueError or MemoryError."""

    def checked(self) -> Self:
        """The stage itself, checked: for one whose parameters decide those of others."""
        self.check()
        return self

    def __call__(self, run: Run, *results: Any) -> Any:
        """Do the work."""
        raise NotImplementedError

    def cost(self, sizes: Sizes) -> Cost:
        """What the work takes at most."""
        raise NotImplementedError

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the products that it leaves in a named store."""
        return ()


@dataclass(frozen=True)
class StageList:
    """The stages of one estimator by name, in the order in which they run.

    A subclass has one field a stage, or a tuple of stages.
    """

    def __iter__(self) -> Iterator[Stage]:
        for each in fields(self):
            value = getattr(self, each.name)
            yield from value if isinstance(value, tuple) else (value,)


@dataclass
class Record:
    """What a fit took, for its report.

    Attributes
    ----------
    n_samples : int
    seconds : list of (str, float)
        Title and time of each stage that has ended.
    plan : Plan or None
        What was promised.
    peak_bytes : int
        Most memory that this process had since it began; 0 where that is not known.
    """

    n_samples: int
    seconds: list[tuple[str, float]] = field(default_factory=list)
    plan: Plan | None = None
    peak_bytes: int = 0


@dataclass(frozen=True)
class Teller:
    """Who else is told how far a fit is.

    Attributes
    ----------
    stage : callable
        Context for a stage, of its title.
    end : callable
        Called when all went well.
    """

    stage: Callable[[str], AbstractContextManager[Any]] = nullcontext
    end: Callable[[], object] = lambda: None


class Run:
    """One fit: its rows, where it keeps its products, its seed, and how it reports.

    Parameters
    ----------
    rows : Rows
        The checked input.
    products : Products
    stages : iterable of Stage
        What the fit is going to call, for the named store's state.
    verbose : bool
    promise : callable, optional
        Compares the plan with the memory of the workers, before the first stage for which there are any, and gives it,
        or None while there are none; raises NotEnoughMemoryError.
    teller : Teller, optional
        Who else is told how far it is.

    Notes
    -----
    A context manager. ``run(stage, *results)`` calls a stage under its title. Of a fit that fails nothing stays but
    what is complete in a named store; SIGTERM and SIGHUP, of which Python would die with all in place, are such a
    failure, by SystemExit.
    """

    def __init__(
        self,
        rows: Any,
        products: Products,
        stages: Any,
        verbose: bool,
        promise: Callable[[], Plan | None] | None = None,
        teller: Teller | None = None,
    ) -> None:
        self.rows = rows
        self.products = products
        self.seed = products.seed
        self.results = Results(inner=inside_stage())
        self.record = Record(rows.n_samples)
        self._promise = promise
        self._teller = teller or Teller()
        self._plan: Plan | None = None
        products.stages = [{"title": stage.title, "products": list(stage.kept)} for stage in stages]
        self._status = StatusWriter(lambda: products.held_folder, len(products.stages)) if products.named else None
        n_blocks = rows.blocks.numblocks[0]
        self._progress = Progress(
            verbose, self._status, (n_blocks, 0 if rows.sparse else rows.blocks.nbytes // n_blocks)
        )
        self._open = ExitStack()

    def __enter__(self) -> Run:
        self._open.enter_context(ending_signals(_exit))
        self._open.enter_context(of_one_client())
        warm_cluster()
        self._open.enter_context(self._progress)
        if self.products.resumes:
            self._progress.say(f"resumed: {self.products.resumes}")
        self._open.enter_context(released_on_failure())
        return self

    def __exit__(self, *exception: Any) -> None:
        if exception[0] is None:
            self._teller.end()
        try:
            self._open.__exit__(*exception)
        finally:
            try:
                if self._status is not None:
                    self._status.close()
            finally:
                self.products.close()

    def __call__(self, stage: Stage, *results: Any) -> Any:
        """Call a stage with this run and the results that it needs."""
        if self._promise is not None and self._plan is None:
            self._plan = self.record.plan = self._promise()
        start = time.perf_counter()
        with self._progress.stage(stage.title), promised(self._promised), self._teller.stage(stage.title):
            made = stage(self, *results)
        self.record.seconds.append((stage.title, time.perf_counter() - start))
        self.record.peak_bytes = peak_bytes()
        return made

    @property
    def _promised(self) -> str | None:
        """What was promised, for the message of a failure."""
        if self._plan is None or self._plan.memory is None:
            return None
        kept = "the named store keeps finished work: the same call goes on from there"
        return f"the plan {self._plan.memory}; {kept if self.products.named else 'storage= keeps finished work'}"

    def detail(self, text: str) -> None:
        """Show how far the running stage is, beside its title."""
        self._progress.detail(text)


def _exit(number: int) -> SystemExit:
    """End the program with the code that shells give to one that a signal ends."""
    return SystemExit(128 + number)
