"""The command line: arguments -> io, estimators, metrics.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the run failed, 2 the arguments or the
input are not acceptable, 130 interrupted by Ctrl-C. Anything that takes longer than a moment to import is imported
inside the command that needs it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import __version__

if TYPE_CHECKING:
    import dask.array as da
    import zarr

    ParamType = click.ParamType[Any]  # generic since click 8.2, and for type checkers only
else:
    ParamType = click.ParamType

__all__ = ["main"]

Command = TypeVar("Command", bound=Callable[..., Any])

DATASETS = ("two-bananas", "smiling-face", "concentric-circles", "circles-gaussians", "flower")
SCALES = {"standard": "StandardScaler", "robust": "RobustScaler", "minmax": "MinMaxScaler"}
METRICS = {
    "NMI": ("normalized_mutual_info", "normalized mutual information"),
    "ACC": ("clustering_accuracy", "accuracy under the best matching"),
    "purity": ("purity", "share of rows in the majority class of their cluster"),
    "RI": ("rand_index", "Rand index"),
    "ARI": ("adjusted_rand_index", "adjusted Rand index"),
}
DEMO_ROWS = 2_000_000
DEMO_CLUSTERS = 13


# -- failures ---------------------------------------------------------------------------------------------------------


class InputError(click.ClickException):
    """Arguments or input that are not acceptable."""

    exit_code = 2


class _Main(click.Group):
    """The group of commands; turns exceptions into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
                raise  # click knows what to do
            except KeyboardInterrupt:
                click.echo("Interrupted. Unfinished outputs are removed; --storage keeps finished stages.", err=True)
                raise click.exceptions.Exit(130) from None
            except Exception as error:
                if ctx.params.get("debug"):
                    raise
                raise _explain(error) from error


def _show_warning(message: Warning | str, *details: Any, **more: Any) -> None:
    click.echo(f"Warning: {message}", err=True)


def _explain(error: Exception) -> click.ClickException:
    """Return the exception that tells a user what went wrong, in one line.

    What the package itself refuses is bad input. The same types raised deeper, by a library, are failures of the run.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    refused = isinstance(error, ValueError | TypeError | OSError | ImportError)
    if refused and _raised_by_package(error):
        return InputError(text.replace("pass overwrite=True", "give --overwrite").replace("columns=", "--columns"))
    hint = "`daskcluster --debug COMMAND ...` shows where"
    if type(error).__name__ == "KilledWorker":
        return click.ClickException(f"a worker process died several times, most often for lack of memory: {text}")
    if isinstance(error, MemoryError):
        return click.ClickException(f"out of memory: {text}")
    return click.ClickException(f"{type(error).__name__}: {text} ({hint})")


def _raised_by_package(error: Exception) -> bool:
    """Tell whether the statement that raised an exception stands in this package."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    module = str(traceback.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == __name__.partition(".")[0]


# -- arguments --------------------------------------------------------------------------------------------------------


class _Count(ParamType):
    """A number of rows: 2000000, 2_000_000, 2e6, 2M, 500k."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the number."""
        text = str(value)
        factor = {"k": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
        try:
            number = float(text[:-1] if factor > 1 else text) * factor
            if number < 1 or number != int(number):
                raise ValueError
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is not a number of rows, such as 2000000, 2e6 or 2M", param, ctx)
        return int(number)


class _Dataset(ParamType):
    """A data set by its name, with dashes or underscores."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        name = str(value).replace("_", "-")
        if name not in DATASETS:
            self.fail(f"{value!r} is not one of {', '.join(DATASETS)}", param, ctx)
        return name


def _combined(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Make one decorator of several options; they are listed in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


PATH = click.Path(path_type=str)

seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Equal seeds give equal results, on any scheduler."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress on stderr.")
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace existing outputs.")

# Where the work runs. The command receives these as one argument, `cluster`.
_cluster_options = _combined(
    click.option("--scheduler", metavar="ADDRESS", help="Run on the Dask scheduler at this address."),
    click.option("--scheduler-file", type=PATH, help="Run on the Dask scheduler that wrote this file."),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Start N worker processes on this machine, and end them with the command. By default threads of this "
        "process do the work, or the scheduler that DASK_SCHEDULER_ADDRESS names.",
    ),
    click.option("--report", type=PATH, metavar="FILE.html", help="Write Dask's performance report."),
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the work runs; the command gets them as its argument `cluster`."""

    @_cluster_options
    @functools.wraps(command)
    def wrapped(
        *, scheduler: str | None, scheduler_file: str | None, workers: int | None, report: str | None, **options: Any
    ) -> Any:
        if sum(choice is not None for choice in (scheduler, scheduler_file, workers)) > 1:
            raise click.UsageError("give one of --scheduler, --scheduler-file and --workers")
        return command(cluster=_Cluster(scheduler, scheduler_file, workers, report), **options)

    return wrapped


@dataclass(frozen=True)
class _EstimatorOption:
    """An option that sets a parameter of an estimator; its default is the estimator's own."""

    flag: str
    parameter: str  # of a consensus inside the estimator: "consensus__" and its own
    type: ParamType | None  # None for an option without a value, which means True
    help: str
    defaults: Mapping[str, Any]  # by algorithm; the others do not have the parameter


_COUNT_FROM_1 = click.IntRange(min=1)
_ESTIMATOR_OPTIONS = (
    _EstimatorOption(
        "--representatives",
        "n_representatives",
        _COUNT_FROM_1,
        "Representatives, p.",
        {"uspec": 1000, "fastcsc": 500, "usenc": 1000},
    ),
    _EstimatorOption(
        "--neighbors",
        "n_neighbors",
        _COUNT_FROM_1,
        "Nearest representatives of a row, K.",
        {"uspec": 5, "fastcsc": 3, "usenc": 5},
    ),
    _EstimatorOption(
        "--alpha", "alpha", click.FloatRange(min=0), "Trust in must-links against the data.", {"fastcsc": 5.0}
    ),
    _EstimatorOption(
        "--sample-rate",
        "sample_rate",
        click.FloatRange(min=0, min_open=True, max=1),
        "Share of the rows: on which k-means runs, or that a base clusterer sees.",
        {"fastcsc": 0.1, "ensemble": 1.0},
    ),
    _EstimatorOption(
        "--base-clusterings",
        "n_base_clusterings",
        _COUNT_FROM_1,
        "Base clusterings of an ensemble, m.",
        {"usenc": 20, "ensemble": 20},
    ),
    _EstimatorOption(
        "--predict-unsampled",
        "predict_unsampled",
        None,
        "With --algorithm ensemble: rows that a base clusterer has not seen get what it predicts, not -1.",
        {"ensemble": False},
    ),
    _EstimatorOption(
        "--k-range",
        "k_range",
        click.Tuple([_COUNT_FROM_1, _COUNT_FROM_1]),
        "Clusters of a base clustering: fewest and most; for an ensemble by default K and the root of the rows, "
        "and K - 5 and K + 4 with --base fastcsc.",
        {"usenc": (20, 60), "ensemble": None},
    ),
    _EstimatorOption(
        "--base",
        "base",
        click.Choice(["uspec", "kmeans", "fastcsc"]),
        "Base clusterer of an ensemble, by default uspec.",
        {"ensemble": None},
    ),
    _EstimatorOption(
        "--consensus",
        "consensus",
        click.Choice(["cut", "sec", "isec"]),
        "Consensus of an ensemble, by default cut.",
        {"ensemble": None},
    ),
    _EstimatorOption(
        "--consensus-components",
        "consensus__n_components",
        _COUNT_FROM_1,
        "With --consensus sec: components of a random projection.",
        {"ensemble": None},
    ),
    _EstimatorOption(
        "--consensus-representatives",
        "consensus__n_representatives",
        _COUNT_FROM_1,
        "With --consensus isec: rows to learn on; all by default.",
        {"ensemble": None},
    ),
    _EstimatorOption(
        "--selection",
        "selection",
        click.Choice(["hybrid", "random", "kmeans"]),
        "How representatives are chosen.",
        {"uspec": "hybrid", "fastcsc": "random", "usenc": "hybrid"},
    ),
    _EstimatorOption(
        "--neighbor-search",
        "neighbors",
        click.Choice(["approximate", "exact"]),
        "How the nearest representatives are found.",
        {"uspec": "approximate", "fastcsc": "approximate", "usenc": "approximate"},
    ),
    _EstimatorOption(
        "--candidate-factor",
        "candidate_factor",
        _COUNT_FROM_1,
        "Candidates per representative in the hybrid selection.",
        {"uspec": 10, "fastcsc": 10, "usenc": 10},
    ),
    _EstimatorOption(
        "--neighbor-factor",
        "neighbor_factor",
        _COUNT_FROM_1,
        "Representatives looked at per neighbor in the approximate search.",
        {"uspec": 10, "fastcsc": 10, "usenc": 10},
    ),
    _EstimatorOption(
        "--metric",
        "metric",
        click.Choice(["euclidean", "cosine"]),
        "Distance of rows.",
        {"uspec": "euclidean", "fastcsc": "euclidean", "usenc": "euclidean"},
    ),
    _EstimatorOption(
        "--init",
        "init",
        click.Choice(["k-means++", "k-means||", "random"]),
        "Starting centers of k-means.",
        {"kmeans": "k-means++"},
    ),
    _EstimatorOption(
        "--n-init", "n_init", _COUNT_FROM_1, "Starts of k-means.", {"uspec": 3, "fastcsc": 3, "kmeans": 1, "usenc": 3}
    ),
    _EstimatorOption(
        "--max-iter",
        "max_iter",
        _COUNT_FROM_1,
        "Passes of k-means, at most.",
        {"uspec": 100, "fastcsc": 100, "kmeans": 100, "usenc": 100},
    ),
    _EstimatorOption(
        "--tol", "tol", click.FloatRange(min=0), "Movement of centers that ends k-means.", {"kmeans": 1e-4}
    ),
    _EstimatorOption(
        "--missing",
        "missing",
        click.Choice(["raise", "label"]),
        "Rows with NaN or infinity: an error, or the label -1.",
        {name: "raise" for name in ("uspec", "fastcsc", "kmeans", "usenc", "ensemble")},
    ),
)
ALGORITHMS = {
    "uspec": "USPEC",
    "usenc": "USENC",
    "ensemble": "Ensemble",
    "fastcsc": "FastCSC",
    "kmeans": "KMeans",
}
CONSENSUS = {"cut": "BipartiteCut", "sec": "SEC", "isec": "ISEC"}
#: Parameter of a consensus that an option sets -> the one that has it.
CONSENSUS_PARAMETERS = {"n_components": "sec", "n_representatives": "isec"}


def estimator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose an estimator; the command gets it, not fitted, as a function `make_estimator`.

    It is a function because making an estimator imports it; ``make_estimator(verbose=...)`` takes more parameters.
    """

    @_combined(
        click.option("-k", "--clusters", type=_COUNT_FROM_1, required=True, metavar="K", help="Number of clusters."),
        click.option(
            "--algorithm",
            type=click.Choice(list(ALGORITHMS)),
            default="uspec",
            show_default=True,
            help="U-SPEC finds nonlinear clusters, Fast CSC does so with constraints, k-means finds round ones; U-SENC "
            "is an ensemble of U-SPEC, ensemble one of any.",
        ),
        *(_click_option(option) for option in _ESTIMATOR_OPTIONS),
        click.option(
            "--storage",
            type=PATH,
            metavar="DIR",
            help="Keep the product of each stage here: a killed run continues where it stopped.",
        ),
        seed_option,
    )
    @functools.wraps(command)
    def wrapped(*, clusters: int, algorithm: str, storage: str | None, seed: int, **options: Any) -> Any:
        parameters: dict[str, Any] = {"n_clusters": clusters, "random_state": seed, "storage": storage}
        for option in _ESTIMATOR_OPTIONS:
            value = options.pop(option.parameter)
            if value is None:
                continue
            if algorithm not in option.defaults:
                raise click.UsageError(f"{option.flag} does not apply to --algorithm {algorithm}")
            inside = option.parameter.removeprefix("consensus__")
            if inside != option.parameter:
                _check_consensus_option(option.flag, inside, "--consensus", parameters.get("consensus", "cut"))
            parameters[option.parameter] = value

        def make_estimator(**more: Any) -> Any:
            from . import estimators

            chosen = {name: value for name, value in parameters.items() if "__" not in name}
            for name, classes in (("base", ALGORITHMS), ("consensus", CONSENSUS)):
                if name in chosen:
                    chosen[name] = getattr(estimators, classes[chosen[name]])()
            made = getattr(estimators, ALGORITHMS[algorithm])(**chosen, **more)
            return made.set_params(**{name: value for name, value in parameters.items() if "__" in name})

        return command(make_estimator=make_estimator, **options)

    return wrapped


def _check_consensus_option(flag: str, parameter: str, method_flag: str, method: str) -> None:
    """Refuse an option that sets a parameter which the chosen consensus does not have."""
    if CONSENSUS_PARAMETERS[parameter] != method:
        raise click.UsageError(f"{flag} does not apply to {method_flag} {method}")


# What a user knows about rows. The command receives these as one argument, `constraints`.
_constraint_options = _combined(
    click.option(
        "--partial-labels",
        type=PATH,
        metavar="LABELS.zarr",
        help="Known labels of the rows, -1 for unknown; with --algorithm fastcsc, or an ensemble with --base fastcsc.",
    ),
    click.option(
        "--must-link",
        type=PATH,
        metavar="FILE",
        help="csv or npy file of pairs of row numbers that belong together, with an optional third column of weights.",
    ),
    click.option("--cannot-link", type=PATH, metavar="FILE", help="The same of pairs that do not belong together."),
)


def constraint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name constraints; the command gets a function of the number of rows, or None."""

    @_constraint_options
    @functools.wraps(command)
    def wrapped(*, partial_labels: str | None, must_link: str | None, cannot_link: str | None, **options: Any) -> Any:
        def make_constraints(n_samples: int) -> Any:
            from . import Constraints

            if partial_labels is not None:
                return Constraints.from_labels(partial_labels)
            must, must_weight = _read_pairs("must-link", must_link)
            cannot, cannot_weight = _read_pairs("cannot-link", cannot_link)
            return Constraints.from_pairs(must, cannot, must_weight, cannot_weight, n_samples)

        if partial_labels is not None and (must_link is not None or cannot_link is not None):
            raise click.UsageError("give --partial-labels, or --must-link and --cannot-link")
        none = partial_labels is must_link is cannot_link is None
        return command(constraints=None if none else make_constraints, **options)

    return wrapped


def _takes_constraints(estimator: Any) -> bool:
    """Tell whether a fit uses constraints: itself, or the base clusterings of an ensemble."""
    import inspect

    used = getattr(estimator, "base", None) or estimator
    return all("constraints" in inspect.signature(part.fit).parameters for part in (estimator, used))


def _read_pairs(option: str, path: str | None) -> tuple[Any, Any]:
    """Read pairs (m, 2) and their weights (m,) or None from an npy or csv file."""
    import numpy as np

    if path is None:
        return None, None
    if not os.path.isfile(path):
        raise InputError(f"--{option}: no file at {path!r}")
    if path.endswith(".npy"):
        try:
            table = np.load(path, allow_pickle=False)
        except ValueError as error:
            raise InputError(f"--{option}: {path!r} is no table of numbers: {error}") from error
    else:
        table = _read_csv(option, path)
    if table.size == 0:
        return None, None
    if table.ndim != 2 or table.shape[1] not in (2, 3) or table.dtype.kind not in "iuf":
        raise InputError(
            f"--{option}: expected two columns of row numbers, and a third of weights or none, "
            f"got shape {table.shape} and dtype {table.dtype} in {path!r}"
        )
    return table[:, :2], table[:, 2] if table.shape[1] == 3 else None


def _read_csv(option: str, path: str) -> Any:
    """Read a csv file of two or three columns of numbers, with a line of names above them or none."""
    import numpy as np

    encoding = "utf-8-sig"  # utf-8, with the mark before it that some programs write
    with open(path, encoding=encoding, errors="replace") as lines:
        header = _is_header(lines.readline())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an empty file, which is no pairs
            table = np.loadtxt(path, delimiter=",", ndmin=2, skiprows=int(header), encoding=encoding)
        if table.size == 0 or table.shape[1] in (2, 3):
            return table
        reason = ""
    except ValueError as error:
        reason = f": {error}"
    with open(path, encoding=encoding, errors="replace") as lines:
        width = 0
        for number, line in enumerate(lines, 1):
            cells = line.partition("#")[0].strip().split(",")
            if cells == [""] or (number == 1 and header):
                continue
            width = width or len(cells)
            if len(cells) not in (2, 3) or len(cells) != width or not all(map(_is_number, cells)):
                raise InputError(
                    f"--{option}: {path!r}, line {number}: expected two row numbers, and a weight or none, "
                    f"separated by commas{' as on the lines above' if len(cells) != width else ''}, "
                    f"got {line.rstrip()!r:.100}"
                )
    raise InputError(f"--{option}: {path!r} is no table of numbers{reason}")


def _is_header(line: str) -> bool:
    """Tell whether the first line of a csv file holds names: no cell begins as a number does."""
    cells = [cell.strip() for cell in line.split(",")]
    return len(cells) in (2, 3) and not any(cell[:1].isdigit() or cell[:1] in ("+", "-", ".") for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _default_text(value: Any) -> str:
    """Return a default as help shows it."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _click_option(option: _EstimatorOption) -> Callable[[Command], Command]:
    values = {name: _default_text(value) for name, value in option.defaults.items() if value is not None}
    if len(values) == len(ALGORITHMS) and len(set(values.values())) == 1:
        default = next(iter(values.values()))
    elif len(option.defaults) > 1:
        default = ", ".join(f"{value} with {name}" for name, value in values.items())
    else:
        default = "; ".join([*values.values(), f"{next(iter(option.defaults))} only"])
    if option.type is None:
        return click.option(option.flag, option.parameter, is_flag=True, default=None, help=option.help)
    metavar = {click.IntRange: "N", click.FloatRange: "X"}.get(type(option.type))
    return click.option(
        option.flag,
        option.parameter,
        type=option.type,
        default=None,
        help=option.help,
        show_default=default,
        metavar=metavar,
    )


# -- where the work runs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cluster:
    """The scheduler that a command uses, as its options say."""

    scheduler: str | None
    scheduler_file: str | None
    workers: int | None
    report: str | None

    @contextlib.contextmanager
    def running(self, *, quiet: bool, overwrite: bool = False) -> Iterator[None]:
        """Connect to the scheduler, or start one; disconnect, and end what was started."""
        import dask

        address = self.scheduler or dask.config.get("scheduler-address", None)
        if self.report is not None:
            if not (address or self.scheduler_file or self.workers):
                raise click.UsageError("--report needs a Dask cluster: add --workers, --scheduler or --scheduler-file")
            if importlib.util.find_spec("bokeh") is None:
                raise InputError("--report needs bokeh, which is not installed: pip install bokeh")
            _check_outputs(overwrite, report=self.report)
        with contextlib.ExitStack() as stack:
            if self.workers is not None:
                self._start(stack, quiet)
            elif address or self.scheduler_file:
                self._connect(stack, address, quiet)
            if self.report is not None:
                from distributed import performance_report

                from .io import atomic_path

                temporary = stack.enter_context(atomic_path(self.report, overwrite=overwrite))
                stack.enter_context(performance_report(filename=str(temporary)))
            yield

    def _start(self, stack: contextlib.ExitStack, quiet: bool) -> None:
        """Start worker processes on this machine."""
        import logging

        import dask
        from dask.system import CPU_COUNT

        # Before distributed is imported, here and in the workers: they log every connection that closes, and every
        # failure of a task, which this process reports anyway.
        dask.config.set(logging={"distributed": "error", "distributed.worker": "critical"})
        from distributed import Client, LocalCluster

        assert self.workers is not None
        with _interrupts_blocked():
            cluster = LocalCluster(
                n_workers=self.workers,
                threads_per_worker=max(1, CPU_COUNT // self.workers),
                processes=True,
                dashboard_address="127.0.0.1:0",  # a free port: the usual one may be taken, which warns
                silence_logs=logging.ERROR,
            )
        stack.enter_context(cluster)
        stack.enter_context(Client(cluster))
        if not quiet:
            click.echo(f"{self.workers} worker processes{_dashboard(cluster)}", err=True)

    def _connect(self, stack: contextlib.ExitStack, address: str | None, quiet: bool) -> None:
        """Connect to a running scheduler; workers may come later."""
        from distributed import Client

        if self.scheduler_file is not None and not os.path.exists(self.scheduler_file):
            raise InputError(f"no scheduler file at {self.scheduler_file!r}; start `dask scheduler --scheduler-file`")
        where = address or self.scheduler_file
        try:
            client = Client(scheduler_file=self.scheduler_file) if self.scheduler_file else Client(address)
        except OSError as error:
            raise click.ClickException(f"cannot reach the Dask scheduler at {where}: {error}") from error
        stack.enter_context(client)
        if not client.nthreads():
            click.echo(f"waiting for workers of the Dask scheduler at {where}", err=True)
            client.wait_for_workers(1)
        if not quiet:
            click.echo(f"{len(client.nthreads())} workers of {where}{_dashboard(client)}", err=True)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start processes that never see Ctrl-C, which a terminal sends to all: this process ends them in good order.

    They inherit the mask of signals. A Ctrl-C that comes meanwhile takes effect when the block ends.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # started later, with the first process, it would clear the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _dashboard(owner: Any) -> str:
    """Say where the dashboard of a cluster or client is; without bokeh there is none."""
    return "" if importlib.util.find_spec("bokeh") is None else f"; dashboard at {owner.dashboard_link}"


# -- results ----------------------------------------------------------------------------------------------------------


def _show(result: Mapping[str, Any], as_json: bool, title: str, lines: Sequence[tuple[str, str]]) -> None:
    """Print a result: JSON, a table on a terminal, or aligned text."""
    if as_json:
        click.echo(json.dumps(result, allow_nan=False))
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


def _worker_peak_bytes() -> int | None:
    """Return the peak memory of the largest worker process that has ended."""
    return _max_rss("RUSAGE_CHILDREN")


def _max_rss(whose: str) -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(getattr(resource, whose)).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _memory(result: dict[str, Any], cluster: _Cluster) -> list[tuple[str, str]]:
    """Add the peak memory to a result, and return the lines that show it."""
    result["peak_memory_bytes"] = _peak_bytes()
    lines = [("peak memory", _bytes(result["peak_memory_bytes"]))]
    if cluster.workers is not None:
        result["peak_worker_memory_bytes"] = _worker_peak_bytes()
        lines.append(("peak of a worker", _bytes(result["peak_worker_memory_bytes"])))
    return lines


def _bytes(number: int | None) -> str:
    from dask.utils import format_bytes

    return "unknown" if number is None else format_bytes(number)


def _seconds(number: float) -> str:
    return f"{number:.1f} s"


def _cluster_sizes(path: str) -> dict[str, int]:
    """Count the rows of each label of a stored labeling."""
    from .metrics import count_labels

    labels, counts = count_labels(path)
    return {str(label): int(count) for label, count in zip(labels.tolist(), counts.tolist(), strict=True)}


def _size_lines(sizes: Mapping[str, int], estimator: Any) -> list[tuple[str, str]]:
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
    from .estimators import Ensemble
    from .estimators.consensus import Consensus

    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if isinstance(last, Consensus):
        return "no known label in any base clustering"
    return "NaN or infinity, or no label in any base clustering" if isinstance(last, Ensemble) else "NaN or infinity"


def _scores(true: Any, pred: Any) -> dict[str, float]:
    """Compare two labelings in one pass."""
    from . import metrics

    table = metrics.contingency_matrix(true, pred)
    return {name: float(getattr(metrics, f"{function}_from_table")(table)) for name, (function, _) in METRICS.items()}


def _score_lines(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(name, f"{value:.4f}  {METRICS[name][1]}") for name, value in scores.items()]


# -- input and output -------------------------------------------------------------------------------------------------


def _check_outputs(overwrite: bool, inputs: Sequence[str] = (), **outputs: str | None) -> None:
    """Refuse outputs that exist, that are named twice or that are an input, before any work is done."""
    from .io.zarr import check_output, local_path

    taken = {os.path.abspath(path): "the input" for path in inputs if "://" not in path}
    for name, path in outputs.items():
        if path is None:
            continue
        final = str(local_path(path))
        if final in taken:
            raise InputError(f"--{name} {path!r} is {taken[final]}, too")
        taken[final] = f"--{name}"
        check_output(path, overwrite=overwrite)


@contextlib.contextmanager
def _stage(name: str, quiet: bool) -> Iterator[None]:
    """Show the progress of work that the command itself does."""
    from .runtime.progress import Progress

    with Progress(not quiet) as progress, progress.stage(name):
        yield


def _write_labels(labels: Any, path: str, overwrite: bool, quiet: bool, about: Mapping[str, Any]) -> None:
    from .io import write_array

    with _stage("write labels", quiet):
        write_array(labels, path, overwrite=overwrite, attributes={"daskcluster": {"kind": "labels", **about}})


def _draw(rows: Any, labels: Any, path: str, overwrite: bool, quiet: bool) -> None:
    """Save a picture of labels; the file's suffix says in which format."""
    from .io import atomic_path
    from .plotting import plot_labels

    with _stage("draw", quiet), atomic_path(path, overwrite=overwrite) as temporary:
        figure: Any = plot_labels(rows, labels).figure
        figure.savefig(temporary, format=Path(path).suffix.lstrip(".") or "png", dpi=150, bbox_inches="tight")


def _check_picture(path: str | None, rows: zarr.Array[Any]) -> None:
    """Refuse a picture that could not be drawn in the end."""
    if path is None:
        return
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--picture needs matplotlib, which is not installed: pip install 'daskcluster[plot]'")
    suffix = Path(path).suffix.lower()
    if suffix not in ("", ".png", ".pdf", ".svg", ".jpg", ".jpeg"):
        raise InputError(f"--picture: expected a .png, .pdf, .svg or .jpg file, got {path!r}")
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise InputError(f"--picture needs rows with two features or more, got an array {rows.shape}")


def _fit_scaler(kind: str, path: str, missing: str) -> tuple[Any, da.Array]:
    """Fit one of dask-ml's scalers to stored rows, and return it with the scaled rows.

    The rows are taken in blocks whose size depends on the number of features only, so that sums, and with them labels,
    do not depend on the chunks of the store. All is computed in float64: `predict` finds the same values whatever the
    type of its rows.
    """
    import dask.array as da
    import numpy as np
    from dask_ml import preprocessing

    from .io import open_dask
    from .io.zarr import choose_chunk_rows

    stored = open_dask(path)
    if stored.ndim != 2 or stored.dtype.kind not in "biuf":
        raise InputError(f"{path!r}: expected a table of numbers, got shape {stored.shape} and dtype {stored.dtype}")
    size = choose_chunk_rows(64 * stored.shape[1])
    rows = stored.rechunk((size, stored.shape[1]), method="tasks").astype(np.float64)
    fitted_on = rows
    finite = da.isfinite(rows).all(axis=1)
    if missing == "label":
        fitted_on = rows[finite]
        fitted_on.compute_chunk_sizes()
        if not len(fitted_on):
            raise InputError(f"{path!r} has no row without NaN or infinity")
        fitted_on = fitted_on.rechunk((size, stored.shape[1]), method="tasks")  # min() refuses empty blocks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of NaN and infinity, which are looked for below
        scaler = getattr(preprocessing, SCALES[kind])().fit(fitted_on)
    fitted = [value for name, value in vars(scaler).items() if name.endswith("_")]
    if not all(np.isfinite(value).all() for value in fitted):
        row = int(finite.argmin().compute())
        column = int(np.argmin(np.isfinite(rows[row].compute())))
        raise InputError(
            f"X contains NaN or infinity at row {row}, column {column}; --missing label gives the label -1"
        )
    return scaler, scaler.transform(rows)


# -- commands ---------------------------------------------------------------------------------------------------------


@click.group(
    cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, name="daskcluster"
)
@click.version_option(__version__, prog_name="daskcluster")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
def main(debug: bool) -> None:
    """Find clusters in Zarr arrays that do not fit in memory."""


@main.command(short_help="Make a data set.")
@click.argument("name", type=_Dataset())
@click.argument("out", metavar="OUT.zarr", type=PATH)
@click.option("-n", "n_rows", type=_Count(), required=True, metavar="ROWS", help="Rows, such as 2000000, 2e6 or 2M.")
@click.option("--labels", type=PATH, metavar="OUT_y.zarr", help="Store the true classes here.")
@click.option(
    "--chunk-rows", type=_Count(), metavar="ROWS", help="Rows of a stored chunk. The data do not depend on it."
)
@seed_option
@cluster_options
@overwrite_option
@quiet_option
@json_option
def make(
    name: str,
    out: str,
    n_rows: int,
    labels: str | None,
    chunk_rows: int | None,
    seed: int,
    cluster: _Cluster,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Make the data set NAME and store its rows as OUT.zarr.

    NAME is two-bananas, smiling-face, concentric-circles, circles-gaussians or flower. Rows are drawn by their number
    and the seed, so the first rows of a larger set are those of a smaller one.
    """
    _check_outputs(overwrite, OUT=out, labels=labels)
    with cluster.running(quiet=quiet, overwrite=overwrite):
        result = _make(name, n_rows, out, labels, chunk_rows, seed, overwrite, quiet)
    lines = [("rows", f"{n_rows:,} x 2 in {out}")]
    if labels is not None:
        lines.append(("classes", f"in {labels}"))
    _show(result, as_json, f"made {name}", lines)


def _make(
    name: str,
    n_rows: int,
    out: str,
    labels: str | None,
    chunk_rows: int | None,
    seed: int,
    overwrite: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Make a data set and store it."""
    from . import datasets
    from .io import write_array

    X, y = getattr(datasets, f"make_{name.replace('-', '_')}")(n_rows, random_state=seed)
    about = {"dataset": name, "seed": seed}
    with _stage(f"make {name}", quiet):
        write_array(X, out, chunks=chunk_rows, overwrite=overwrite, attributes=about)
        if labels is not None:
            write_array(y, labels, chunks=chunk_rows, overwrite=overwrite, attributes=about)
    return {"command": "make", "n_samples": n_rows, "n_features": 2, "rows": out, "labels": labels, **about}


@main.command(short_help="Turn an npy, npz, csv or parquet file into a Zarr array.")
@click.argument("source", metavar="IN", type=PATH)
@click.argument("out", metavar="OUT.zarr", type=PATH)
@click.option("--format", type=click.Choice(["npy", "npz", "csv", "parquet"]), help="By default from the file's name.")
@click.option("--columns", metavar="A,B,...", help="Columns to take, by name or by number from 0.")
@click.option("--member", help="Array of an npz file.")
@click.option("--header/--no-header", default=None, help="Whether the first line of a csv file names the columns.")
@click.option("--chunk-rows", type=_Count(), metavar="ROWS", help="Rows of a stored chunk.")
@click.option("--dtype", help="Type of the stored values, such as float32.")
@overwrite_option
@json_option
def convert(
    source: str,
    out: str,
    format: str | None,
    columns: str | None,
    member: str | None,
    header: bool | None,
    chunk_rows: int | None,
    dtype: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Store the rows of the file IN as the Zarr array OUT.zarr, in bounded memory.

    IN is an npy, npz, csv (also tsv, txt, and compressed) or parquet file, or a folder of parquet files. Every column
    must be numeric; choose with --columns.
    """
    from .io.convert import convert as convert_file

    _check_outputs(overwrite, [source], OUT=out)
    array = convert_file(
        source,
        out,
        format=format,
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        member=member,
        header=header,
        chunk_rows=chunk_rows,
        dtype=dtype,
        overwrite=overwrite,
    )
    result = {"command": "convert", "source": source, **_describe_array(array), "path": out}
    _show(result, as_json, f"converted {source}", _array_lines(result))


@main.command(short_help="Cluster a Zarr array.")
@click.argument("rows", metavar="X.zarr", type=PATH)
@estimator_options
@constraint_options
@click.option("--labels", type=PATH, metavar="OUT.zarr", help="Store the labels here.")
@click.option("--model", type=PATH, metavar="M.zarr", help="Store the model here, for `predict`.")
@click.option("--scale", type=click.Choice(list(SCALES)), help="Scale the features first; part of the model.")
@click.option("--picture", type=PATH, metavar="FILE.png", help="Draw the first two features, coloured by label.")
@cluster_options
@overwrite_option
@quiet_option
@json_option
def fit(
    rows: str,
    make_estimator: Callable[..., Any],
    constraints: Callable[[int], Any] | None,
    labels: str | None,
    model: str | None,
    scale: str | None,
    picture: str | None,
    cluster: _Cluster,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Cluster the rows of the Zarr array X.zarr.

    Outputs appear when they are complete. An array inside a group is named by its path, group.zarr/X.
    """
    from .io import open_rows

    if labels is None and model is None and picture is None:
        raise click.UsageError("nothing would be kept: give --labels, --model or --picture")
    array = open_rows(rows)
    _check_picture(picture, array)
    _check_outputs(overwrite, [rows], labels=labels, model=model, picture=picture)
    estimator = make_estimator(verbose=not quiet)
    if constraints is not None and not _takes_constraints(estimator):
        raise click.UsageError(
            "--partial-labels, --must-link and --cannot-link need --algorithm fastcsc, "
            "or --algorithm ensemble with --base fastcsc"
        )
    known = None if constraints is None else constraints(array.shape[0])
    with cluster.running(quiet=quiet, overwrite=overwrite):
        result = _fit(estimator, rows, labels, model, picture, scale, overwrite, quiet, known)
    result = {"command": "fit", "n_samples": array.shape[0], "n_features": array.shape[1], **result}
    lines = [("rows", f"{array.shape[0]:,} x {array.shape[1]}"), ("clusters", str(result["n_clusters"]))]
    lines += _size_lines(result["cluster_sizes"], estimator) if result["cluster_sizes"] is not None else []
    for kind, kept in (result["constraints"] or {}).items():
        lines.append((f"{kind.replace('_', '-')}s kept", f"{kept['kept']:.2%} of {kept['count']:,}"))
    lines += [("seconds", _seconds(result["seconds"])), *_memory(result, cluster)]
    lines += [(name, str(result[name])) for name in ("labels", "model", "picture") if result[name] is not None]
    _show(result, as_json, f"{type(estimator).__name__} of {rows}", lines)


def _fit(
    estimator: Any,
    rows: str,
    labels: str | None,
    model: str | None,
    picture: str | None,
    scale: str | None,
    overwrite: bool,
    quiet: bool,
    constraints: Any = None,
) -> dict[str, Any]:
    """Fit an estimator, and store what was asked for: first the model, the smallest, from which all can be made."""
    from .io import save_model

    start = time.perf_counter()
    saved, X = estimator, rows
    if scale is not None:
        from sklearn.pipeline import Pipeline

        with _stage("scale", quiet):
            scaler, X = _fit_scaler(scale, rows, estimator.missing)
        saved = Pipeline([("scale", scaler), ("cluster", estimator)])
    estimator.fit(X, **({} if constraints is None else {"constraints": constraints}))
    estimator.set_params(verbose=False)  # progress is this command's matter, not the model's
    parameters = {**_plain_parameters(estimator), "scale": scale}
    if model is not None:
        save_model(saved, model, overwrite=overwrite)
    sizes = None
    if labels is not None:
        about = {"class": type(estimator).__name__, "parameters": parameters, "version": __version__}
        _write_labels(estimator.labels_, labels, overwrite, quiet, about)
        sizes = _cluster_sizes(labels)
    seconds = time.perf_counter() - start
    kept = None
    if constraints is not None:
        found = constraints.satisfaction(estimator.labels_ if labels is None else labels)
        kept = {
            "must_link": {"kept": found.must_link, "count": found.n_must_link},
            "cannot_link": {"kept": found.cannot_link, "count": found.n_cannot_link},
        }
    if picture is not None:
        _draw(rows, estimator.labels_ if labels is None else labels, picture, overwrite, quiet)
    return {
        "class": type(estimator).__name__,
        "parameters": parameters,
        "n_clusters": int(estimator.n_clusters_),
        "cluster_sizes": sizes,
        "constraints": kept,
        "seconds": seconds,
        "labels": labels,
        "model": model,
        "picture": picture,
    }


def _plain_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters as JSON takes them: an estimator inside by its text."""
    parameters = estimator.get_params(deep=False)
    del parameters["verbose"]
    return {name: repr(value) if hasattr(value, "get_params") else value for name, value in parameters.items()}


@main.command(short_help="Find the consensus of many labelings.")
@click.argument("base", metavar="LABELS.zarr", type=PATH)
@click.option("-k", "--clusters", type=_COUNT_FROM_1, required=True, metavar="K", help="Number of clusters.")
@click.option("--method", type=click.Choice(list(CONSENSUS)), default="cut", show_default=True, help="How.")
@click.option(
    "--components", type=_COUNT_FROM_1, metavar="RD", help="With --method sec: components of a random projection."
)
@click.option(
    "--representatives", type=_COUNT_FROM_1, metavar="P", help="With --method isec: rows to learn on; all by default."
)
@click.option("--labels", type=PATH, metavar="OUT.zarr", required=True, help="Store the labels here.")
@click.option("--agreement", type=PATH, metavar="OUT.zarr", help="Store each row's agreement, 0 to 1, here.")
@click.option("--model", type=PATH, metavar="M.zarr", help="Store the model here.")
@click.option("--storage", type=PATH, metavar="DIR", help="Keep the product of each stage here.")
@seed_option
@cluster_options
@overwrite_option
@quiet_option
@json_option
def consensus(
    base: str,
    clusters: int,
    method: str,
    components: int | None,
    representatives: int | None,
    labels: str,
    agreement: str | None,
    model: str | None,
    storage: str | None,
    seed: int,
    cluster: _Cluster,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the consensus of base clusterings, a column each of the Zarr array LABELS.zarr; -1 is no label."""
    from . import estimators
    from .io import open_rows, save_model, write_array

    own: dict[str, Any] = {}
    for flag, name, value in (
        ("--components", "n_components", components),
        ("--representatives", "n_representatives", representatives),
    ):
        if value is not None:
            _check_consensus_option(flag, name, "--method", method)
            own[name] = value
    array = open_rows(base)
    _check_outputs(overwrite, [base], labels=labels, agreement=agreement, model=model)
    estimator = getattr(estimators, CONSENSUS[method])(
        clusters, random_state=seed, storage=storage, verbose=not quiet, **own
    )
    start = time.perf_counter()
    with cluster.running(quiet=quiet, overwrite=overwrite):
        estimator.fit(base)
        estimator.set_params(verbose=False)
        about = {"class": type(estimator).__name__, "parameters": _plain_parameters(estimator), "version": __version__}
        if model is not None:
            save_model(estimator, model, overwrite=overwrite)
        if agreement is not None:
            with _stage("write agreement", quiet):
                described = {"daskcluster": {"kind": "agreement", **about}}
                write_array(estimator.agreement_, agreement, overwrite=overwrite, attributes=described)
        _write_labels(estimator.labels_, labels, overwrite, quiet, about)
        sizes = _cluster_sizes(labels)
    result: dict[str, Any] = {"command": "consensus", "n_samples": array.shape[0], "n_base_clusterings": array.shape[1]}
    result |= {"class": about["class"], "parameters": about["parameters"], "n_clusters": int(estimator.n_clusters_)}
    result |= {"cluster_sizes": sizes, "seconds": time.perf_counter() - start}
    result |= {"labels": labels, "agreement": agreement, "model": model}
    lines = [
        ("base clusterings", f"{array.shape[1]} of {array.shape[0]:,} rows"),
        ("clusters", str(result["n_clusters"])),
    ]
    lines += [*_size_lines(sizes, estimator), ("seconds", _seconds(result["seconds"])), *_memory(result, cluster)]
    lines += [(name, str(result[name])) for name in ("labels", "agreement", "model") if result[name] is not None]
    _show(result, as_json, f"consensus of {base}", lines)


@main.command(short_help="Label new rows with a model.")
@click.argument("rows", metavar="X.zarr", type=PATH)
@click.option("--model", type=PATH, metavar="M.zarr", required=True, help="The model that `fit` stored.")
@click.option("--labels", type=PATH, metavar="OUT.zarr", required=True, help="Store the labels here.")
@cluster_options
@overwrite_option
@quiet_option
@json_option
def predict(rows: str, model: str, labels: str, cluster: _Cluster, overwrite: bool, quiet: bool, as_json: bool) -> None:
    """Label the rows of the Zarr array X.zarr with a stored model, scaled as the rows of its fit were."""
    from .io import load_model, open_dask, open_rows

    array = open_rows(rows)
    _check_outputs(overwrite, [rows, model], labels=labels)
    loaded = load_model(model)
    start = time.perf_counter()
    with cluster.running(quiet=quiet, overwrite=overwrite):
        found = loaded.predict(open_dask(array) if hasattr(loaded, "steps") else rows)
        _write_labels(found, labels, overwrite, quiet, {"model": model, "version": __version__})
        sizes = _cluster_sizes(labels)
    result: dict[str, Any] = {"command": "predict", "n_samples": array.shape[0], "cluster_sizes": sizes}
    result |= {"seconds": time.perf_counter() - start, "labels": labels}
    lines = [("rows", f"{array.shape[0]:,}"), *_size_lines(sizes, loaded), ("seconds", _seconds(result["seconds"]))]
    lines += [*_memory(result, cluster), ("labels", labels)]
    _show(result, as_json, f"labels of {rows}", lines)


@main.command(short_help="Compare two labelings.")
@click.argument("true", metavar="TRUE.zarr", type=PATH)
@click.argument("pred", metavar="PRED.zarr", type=PATH)
@cluster_options
@quiet_option
@json_option
def score(true: str, pred: str, cluster: _Cluster, quiet: bool, as_json: bool) -> None:
    """Compare the labels PRED.zarr with the classes TRUE.zarr, in one pass.

    Names of labels do not matter. -1 counts as a label like the others.
    """
    with cluster.running(quiet=quiet):
        scores = _scores(_one_column(true), _one_column(pred))
    _show({"command": "score", **scores}, as_json, f"{pred} against {true}", _score_lines(scores))


def _one_column(path: str) -> Any:
    """Return labels as the metrics take them; a table of one column, as a csv file gives, is one."""
    from .io import open_dask, open_rows

    array = open_rows(path)
    return open_dask(array)[:, 0] if array.ndim == 2 and array.shape[1] == 1 else path


@main.command(short_help="Describe an array, a model or a store.")
@click.argument("path", metavar="PATH", type=PATH)
@json_option
def info(path: str, as_json: bool) -> None:
    """Describe what stands under PATH: a Zarr array, a model, a group, or the --storage of a run."""
    import zarr

    from .io import model_summary, open_rows

    if os.path.isfile(os.path.join(path, "daskcluster.json")):
        result, lines = _describe_storage(path)
    else:
        try:
            node = zarr.open(path, mode="r")
        except (OSError, ValueError, KeyError):
            node = open_rows(path)  # raises, and says what stands there
        ours = node.attrs.get("daskcluster")
        if isinstance(node, zarr.Array):
            result = {"kind": "array", **_describe_array(node)}
            lines = _array_lines(result)
        elif isinstance(ours, Mapping) and ours.get("kind") == "model":
            result = {"kind": "model", **model_summary(path)}
            lines = _model_lines(result)
        else:
            result = {"kind": "group", "attributes": dict(node.attrs), "arrays": _describe_group(node)}
            lines = [(name, _shape_of(about)) for name, about in result["arrays"].items()]
            lines += _attribute_lines(result["attributes"])
    _show({"path": path, **result}, as_json, f"{result['kind']} {path}", [("kind", result["kind"]), *lines])


def _describe_array(array: zarr.Array[Any]) -> dict[str, Any]:
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "chunks": list(array.chunks),
        "shards": None if array.shards is None else list(array.shards),
        "bytes": array.nbytes,
        "bytes_stored": array.nbytes_stored(),
        "attributes": array.attrs.asdict(),
    }


def _array_lines(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [(name, _shape(about[name])) for name in ("shape", "chunks", "shards") if about[name] is not None]
    lines.insert(1, ("dtype", about["dtype"]))
    lines.append(("size", f"{_bytes(about['bytes'])}, stored in {_bytes(about['bytes_stored'])}"))
    return lines + _attribute_lines(about["attributes"])


def _describe_group(group: zarr.Group) -> dict[str, Any]:
    import zarr

    return {
        name: {"shape": list(node.shape), "dtype": str(node.dtype), "chunks": list(node.chunks)}
        for name, node in sorted(group.members(max_depth=None), key=lambda member: member[0])
        if isinstance(node, zarr.Array)
    }


def _shape(lengths: Sequence[int]) -> str:
    return " x ".join(f"{length:,}" for length in lengths) or "scalar"


def _shape_of(about: Mapping[str, Any]) -> str:
    return f"{_shape(about['shape'])} {about['dtype']}"


def _attribute_lines(attributes: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in attributes.items()]


def _model_lines(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    steps = [step["$tuple"] for step in about["parameters"].get("steps", [])]
    parts = [(name, part["$estimator"]) for name, part in steps] or [("class", about)]
    lines = [("format version", str(about["format_version"]))]
    for name, part in parts:
        lines.append((name, part["class"]))
        lines += [(f"  {key}", json.dumps(value)) for key, value in part["parameters"].items()]
    lines += [(name, _shape_of(array)) for name, array in about["arrays"].items()]
    lines += [("note", note) for note in about.get("notes", [])]
    lines.append(("versions", ", ".join(f"{name} {version}" for name, version in about["versions"].items())))
    return lines


def _describe_storage(path: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Describe a named store: what made it, and which products it has."""
    import zarr

    key = json.loads(Path(path, "daskcluster.json").read_text())
    products = {}
    for folder in sorted(Path(path).iterdir()):
        if folder.is_dir() and not folder.name.startswith("."):
            products[folder.name] = _describe_group(zarr.open_group(str(folder), mode="r"))
    lines = [("method", str(key.get("method")))]
    lines += [(f"  {name}", json.dumps(value)) for name, value in key.get("parameters", {}).items()]
    for product, arrays in products.items():
        lines.append((product, "complete"))
        lines += [(f"  {name}", _shape_of(array)) for name, array in arrays.items()]
    return {"kind": "storage", **key, "products": products}, lines


@main.command(short_help="State what a fit will cost.")
@click.argument("rows", metavar="X.zarr", type=PATH)
@estimator_options
@cluster_options
@quiet_option
@json_option
def plan(rows: str, make_estimator: Callable[..., Any], cluster: _Cluster, quiet: bool, as_json: bool) -> None:
    """State passes, tasks, bytes and peak memory of `fit` with the same options, before anything runs."""
    from .io import open_rows

    open_rows(rows)
    with cluster.running(quiet=quiet):
        forecast = make_estimator().plan(rows)
    if as_json:
        click.echo(json.dumps(forecast.to_dict(), allow_nan=False))
    else:
        click.echo(str(forecast))


@main.command(short_help="Cluster two million rows, or a store of your own.")
@click.argument("store", metavar="[STORE.zarr]", type=PATH, required=False)
@click.argument("clusters", metavar="[K]", type=_COUNT_FROM_1, required=False)
@click.option(
    "-n",
    "n_rows",
    type=_Count(),
    metavar="ROWS",
    help=f"Rows of the flower data, when no store is given.  [default: {DEMO_ROWS}]",
)
@click.option("--directory", type=PATH, default="daskcluster-demo", show_default=True, help="Folder of all outputs.")
@seed_option
@cluster_options
@quiet_option
@json_option
def demo(
    store: str | None,
    clusters: int | None,
    n_rows: int | None,
    directory: str,
    seed: int,
    cluster: _Cluster,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show the whole job: rows in a Zarr store, clustered by U-SPEC, with labels, model and picture.

    Without arguments the flower data are made and stored first. With STORE.zarr and K your own store is clustered.
    Outputs of an earlier demo in the same folder are replaced.
    """
    from .io import open_rows

    if (store is None) != (clusters is None):
        raise click.UsageError("give both STORE.zarr and K, or none of them")
    if store is not None and n_rows is not None:
        raise click.UsageError("-n is for the flower data; a store has the rows that it has")
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--directory {directory!r} is not a folder")
    outputs = {name: str(folder / name) for name in ("flower.zarr", "classes.zarr", "labels.zarr", "model.zarr")}
    rows = outputs["flower.zarr"] if store is None else store
    picture: str | None = str(folder / "picture.png")
    if importlib.util.find_spec("matplotlib") is None:
        click.echo("no picture: matplotlib is not installed (pip install 'daskcluster[plot]')", err=True)
        picture = None
    if store is not None and (shape := open_rows(store).shape)[1:] < (2,):
        click.echo(f"no picture: {store!r} has fewer than two features, shape {shape}", err=True)
        picture = None
    made = ("flower.zarr", "classes.zarr") if store is None else ()
    _check_outputs(
        True,
        [] if store is None else [store],
        picture=picture,
        **{name: path for name, path in outputs.items() if name in made or name in ("labels.zarr", "model.zarr")},
    )
    with cluster.running(quiet=quiet, overwrite=True):
        if store is None:
            _make("flower", n_rows or DEMO_ROWS, rows, outputs["classes.zarr"], None, seed, True, quiet)
        from .estimators import USPEC

        estimator = USPEC(clusters or DEMO_CLUSTERS, random_state=seed, verbose=not quiet)
        labels = outputs["labels.zarr"]
        result = _fit(estimator, rows, labels, outputs["model.zarr"], picture, None, True, quiet)
        result["scores"] = _scores(outputs["classes.zarr"], labels) if store is None else None
    shape = open_rows(rows).shape
    result = {"command": "demo", "rows": rows, "n_samples": shape[0], "n_features": shape[1], **result}
    lines = [("rows", f"{shape[0]:,} x {shape[1]} in {rows}"), ("clusters", str(result["n_clusters"]))]
    lines += (
        _size_lines(result["cluster_sizes"], estimator) if result["scores"] is None else _score_lines(result["scores"])
    )
    lines += [("clustering", _seconds(result["seconds"])), *_memory(result, cluster)]
    lines += [(name, result[name]) for name in ("labels", "model", "picture") if result[name] is not None]
    _show(result, as_json, "daskcluster demo", lines)


if __name__ == "__main__":
    main(prog_name="daskcluster")
