"""Failures: an exception becomes one line on stderr and an exit code."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import click

from ..runtime.deadline import ended_in_time
from ..runtime.signals import ending_signals
from .signals import Ended
from .wording import in_options, shortened

__all__ = ["InputError", "Main"]


class InputError(click.ClickException):
    """Arguments or input that are not acceptable."""

    exit_code = 2


class Main(click.Group):
    """The group of commands; turns exceptions into one line and an exit code."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and remember it and its arguments for messages."""
        name, command, rest = super().resolve_command(ctx, args)
        ctx.meta[_GIVEN] = command, list(rest)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        keeps = any(str(argument).partition("=")[0] == "--storage" for argument in ctx.args)
        told = list[KeyboardInterrupt]()

        def tell(interrupt: KeyboardInterrupt) -> None:
            if not told:
                told.append(interrupt)
                click.echo(_interrupted(interrupt, keeps), err=True)

        ended = ended_in_time(lambda number: tell(Ended(number)))
        with warnings.catch_warnings(), ended, ending_signals(Ended, last=True):
            warnings.showwarning = lambda message, *details, **more: _show_warning(in_options(*_said(message, ctx)))
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
                raise  # click knows what to do
            except KeyboardInterrupt as interrupt:
                # Reads that zarr has begun end with the program; asyncio would say so of each.
                logging.getLogger("asyncio").setLevel(logging.CRITICAL)
                tell(interrupt)
                raise click.exceptions.Exit(getattr(interrupt, "exit_code", 130)) from None
            except Exception as error:
                if ctx.params.get("debug"):
                    raise
                raise _explain(error, ctx) from error


_GIVEN = "daskcluster.given"


def _interrupted(interrupt: KeyboardInterrupt, keeps: bool) -> str:
    """Return what a user is told whose command was ended from outside."""
    how = f"Ended by {interrupt.name}" if isinstance(interrupt, Ended) else "Interrupted"
    then = "the same command goes on where it stopped" if keeps else "--storage keeps finished stages"
    return f"{how}. Unfinished outputs are removed; {then}."


def _said(message: Any, ctx: click.Context) -> tuple[str, click.Command | None, click.Group | None]:
    """A message, the command that was given, and the group of all: what `in_options` takes."""
    command, _ = ctx.meta.get(_GIVEN, (None, []))
    return str(message), command, ctx.command if isinstance(ctx.command, click.Group) else None


def _show_warning(text: str) -> None:
    click.echo(f"Warning: {shortened(text)}", err=True)


def _explain(error: Exception, ctx: click.Context) -> click.ClickException:
    """Return the exception that tells a user what went wrong, in one line.

    What the package itself refuses is bad input. The same types raised deeper, by a library, are failures of the run.
    """
    from ..errors import NotEnoughMemoryError, StorageBusyError, is_disk_full

    if is_disk_full(error) or isinstance(error, StorageBusyError):  # nothing is wrong with what was asked for
        return click.ClickException(shortened(_text(error)))
    refused = isinstance(error, ValueError | TypeError | OSError | ImportError | NotEnoughMemoryError)
    if refused and _raised_by_package(error):
        return InputError(shortened(in_options(*_said(_text(error), ctx))))
    _, arguments = ctx.meta.get(_GIVEN, (None, []))
    again = ""
    if any(argument.partition("=")[0] == "--storage" for argument in arguments):
        again = "; --storage keeps the finished stages: give the same command again to go on from there"
    return click.ClickException(f"{_failure(error)}{again}")


def _text(error: Exception) -> str:
    return str(error).strip() or type(error).__name__


def _failure(error: Exception) -> str:
    """Say which failure of a run an exception is."""
    kind, text = type(error).__name__, shortened(_text(error))
    if kind in ("ClusterLostError", "WorkersKilledError"):
        return text
    if kind == "KilledWorker":
        return f"a worker process died several times, most often for lack of memory: {text}"
    if kind in _LOST:
        return f"the Dask scheduler or its workers are lost ({kind})"  # the text names every task that was not done
    if isinstance(error, MemoryError):
        return f"out of memory: {text}"
    said = kind if text == kind else f"{kind}: {text}"
    return f"{said} (`daskcluster --debug COMMAND ...` shows where)"


#: What dask raises when the scheduler, or what workers held, goes.
_LOST = ("CancelledError", "FutureCancelledError", "FuturesCancelledError", "CommClosedError", "ClosedClientError")


def _raised_by_package(error: Exception) -> bool:
    """Tell whether the statement that raised an exception stands in this package."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    module = str(traceback.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == __name__.partition(".")[0]
