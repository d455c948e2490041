"""Failures: an exception becomes one line on stderr and an exit code."""

from __future__ import annotations

import warnings
from typing import Any

import click

__all__ = ["InputError", "Main"]


class InputError(click.ClickException):
    """Arguments or input that are not acceptable."""

    exit_code = 2


class Main(click.Group):
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
    from ..errors import StorageBusyError, is_disk_full

    text = " ".join(str(error).split()) or type(error).__name__
    if is_disk_full(error) or isinstance(error, StorageBusyError):  # nothing is wrong with what was asked for
        return click.ClickException(text)
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
