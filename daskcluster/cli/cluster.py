"""Where the work runs: on the scheduler that the options name, on workers started here, or in this process."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from .failures import InputError
from .options import (
    PATH,
    bundled,
    combined,
    json_option,
    overwrite_option,
    quiet_option,
    storage_options_option,
    strict_option,
)

__all__ = ["Cluster", "Job", "job_options"]


@dataclass(frozen=True)
class Cluster:
    """The scheduler that a command uses, as its options say."""

    scheduler: str | None
    scheduler_file: str | None
    workers: int | None
    report: str | None

    def __post_init__(self) -> None:
        """Refuse more than one scheduler."""
        if sum(choice is not None for choice in (self.scheduler, self.scheduler_file, self.workers)) > 1:
            raise click.UsageError("give one of --scheduler, --scheduler-file and --workers")

    @contextlib.contextmanager
    def running(self, *, quiet: bool, overwrite: bool) -> Iterator[None]:
        """Connect to the scheduler, or start one; disconnect, and end what was started."""
        import dask

        address = self.scheduler or dask.config.get("scheduler-address", None)
        if address and not (self.workers or self.scheduler_file):
            _check_address("--scheduler" if self.scheduler else "DASK_SCHEDULER_ADDRESS", address)
        if self.scheduler_file is not None:
            _check_scheduler_file(self.scheduler_file)
        if self.report is not None:
            self._check_report(self.report, bool(address), overwrite)
        with contextlib.ExitStack() as stack:
            if self.workers is not None:
                self._start(stack, self.workers, quiet)
            elif address or self.scheduler_file:
                self._connect(stack, address, quiet)
            if self.report is not None:
                from distributed import performance_report

                from ..io import atomic_path

                temporary = stack.enter_context(atomic_path(self.report, overwrite=overwrite, kind="file"))
                stack.enter_context(performance_report(filename=str(temporary)))
            yield

    def _check_report(self, path: str, has_address: bool, overwrite: bool) -> None:
        """Refuse a performance report that could not be written in the end."""
        from ..files import check_output, check_outside, place_at

        if not (has_address or self.scheduler_file or self.workers):
            raise click.UsageError("--report needs a Dask cluster: add --workers, --scheduler or --scheduler-file")
        if importlib.util.find_spec("bokeh") is None:
            raise InputError("--report needs bokeh, which is not installed: pip install bokeh")
        check_outside(place_at(path), path)
        check_output(path, overwrite=overwrite, kind="file")

    def _start(self, stack: contextlib.ExitStack, workers: int, quiet: bool) -> None:
        """Start worker processes on this machine."""
        import logging

        import dask
        from dask.system import CPU_COUNT

        # Workers log every connection that closes, and every failure of a task with its traceback, which this process
        # reports in one line.
        level = logging.ERROR if _debugging() else logging.CRITICAL
        dask.config.set(logging={"distributed": "error", "distributed.worker": "critical"})
        from distributed import Client, LocalCluster

        from ..runtime.scratch import ScratchFolder
        from ..runtime.signals import delayed_signals

        with delayed_signals():
            folder = ScratchFolder()  # where the workers spill: nothing of it stays, however they end
            stack.callback(folder.release)
            with dask.config.set({"temporary-directory": str(folder.path)}):
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=max(1, CPU_COUNT // workers),
                    processes=True,
                    dashboard_address="127.0.0.1:0",  # a free port: the usual one may be taken, which warns
                    silence_logs=level,  # of the workers, too
                    preload=["daskcluster.preload"],
                )
            stack.enter_context(cluster)
            stack.enter_context(Client(cluster))
        if not quiet:
            click.echo(f"{workers} worker process{'es' * (workers > 1)}{_dashboard(cluster)}", err=True)

    def _connect(self, stack: contextlib.ExitStack, address: str | None, quiet: bool) -> None:
        """Connect to a running scheduler; workers may come later."""
        import logging

        from distributed import Client

        # It logs the end of the scheduler with its traceback; the command says it in a line.
        logger = logging.getLogger("distributed.client")
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
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


def _check_address(option: str, address: str) -> None:
    """Refuse an address without a port, or with a protocol that nobody speaks."""
    protocol, _, place = address.rpartition("://")
    if protocol not in ("", "tcp", "tls", "ucx", "ws", "wss", "inproc"):
        raise InputError(f"{option}: expected HOST:PORT or tcp://HOST:PORT, got {address!r}")
    host, _, port = place.rpartition(":")
    if protocol != "inproc" and not (host and port.isdecimal() and 0 < int(port) < 2**16):
        raise InputError(f"{option}: expected HOST:PORT, such as localhost:8786, got {address!r}")


def _check_scheduler_file(path: str) -> None:
    """Refuse a file that no scheduler wrote."""
    if not os.path.exists(path):
        raise InputError(f"no scheduler file at {path!r}; start `dask scheduler --scheduler-file`")
    address = ""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        address = str(content.get("address", "")) if isinstance(content, dict) else ""
        reason = "" if address else "it names no address"
    except (OSError, ValueError) as error:  # no JSON, or no text
        reason = str(error)
    if reason:
        raise InputError(f"--scheduler-file: {path!r} is no file of `dask scheduler --scheduler-file`: {reason}")
    _check_address(f"--scheduler-file {path!r}", address)


def _debugging() -> bool:
    """Whether the command was given --debug."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("debug"))


def _dashboard(owner: Any) -> str:
    """Say where the dashboard of a cluster or client is; without bokeh there is none."""
    return "" if importlib.util.find_spec("bokeh") is None else f"; dashboard at {owner.dashboard_link}"


_cluster_options = combined(
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
    bundled("cluster", Cluster),
)


@dataclass(frozen=True)
class Job:
    """How a command runs: where, what it says meanwhile, and how it stores outputs."""

    cluster: Cluster
    quiet: bool
    as_json: bool
    overwrite: bool = False
    shards: int | None = None

    def running(self) -> contextlib.AbstractContextManager[None]:
        """Have a scheduler for the work of this block."""
        return self.cluster.running(quiet=self.quiet, overwrite=self.overwrite)

    def outputs(self) -> dict[str, str | None]:
        """What it writes beside the outputs of its command, by option."""
        return {"report": self.cluster.report}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show the progress of work that the command itself does."""
        from ..runtime.progress import Progress

        with Progress(not self.quiet) as progress, progress.stage(name):
            yield


def job_options(*, writes: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of a `Job`, which the command gets as its argument `job`; they come last in its help."""
    overwrite = [overwrite_option] if writes else []
    inputs = strict_option, storage_options_option
    return combined(_cluster_options, *overwrite, *inputs, quiet_option, json_option, bundled("job", Job))
