"""Options: kinds of values, the options that many commands have, and several options handed on as one argument."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]  # generic since click 8.2, and for type checkers only
else:
    ParamType = click.ParamType

__all__ = [
    "COUNT_FROM_1",
    "PATH",
    "Count",
    "ParamType",
    "Part",
    "bundled",
    "clusters_option",
    "combined",
    "json_option",
    "overwrite_option",
    "shards_option",
    "quiet_option",
    "seed_option",
    "storage_options_option",
    "strict_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])


class _Path(click.Path):
    """A path, or a URL; "~" is the home folder, also where no shell has written it out, as in --labels=~/l.zarr."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Write out the home folder."""
        return super().convert(os.path.expanduser(value), param, ctx)


PATH = _Path(path_type=str)
COUNT_FROM_1 = click.IntRange(min=1)


class Count(ParamType):
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


class Part(ParamType):
    """One of several equal parts, counted from 0: 3/100."""

    name = "part"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Read which one, and how many there are."""
        try:
            part, parts = (int(number) for number in str(value).split("/"))
            if not 0 <= part < parts:
                raise ValueError
        except ValueError:
            self.fail(f"{value!r} is no part I/N with 0 <= I < N, such as 0/100 or 99/100", param, ctx)
        return part, parts


clusters_option = click.option(
    "-k", "--clusters", type=COUNT_FROM_1, required=True, metavar="K", help="Number of clusters."
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Equal seeds give equal results, on any scheduler."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress on stderr.")


def _refuse_missing_chunks(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Have inputs with missing chunks refused while the command runs."""
    if value:
        import dask

        ctx.with_resource(dask.config.set({"daskcluster.missing-chunks": "refuse"}))


strict_option = click.option(
    "--strict",
    is_flag=True,
    expose_value=False,
    callback=_refuse_missing_chunks,
    help="Refuse inputs of which chunks are missing. By default they are counted, and read as the fill value.",
)


def _open_urls_with(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Have URLs opened with these options while the command runs."""
    if value is None:
        return
    import json

    import dask

    from ..files.urls import OPTIONS

    try:
        options = json.loads(value)
        if not isinstance(options, dict):
            raise ValueError("no object")
    except ValueError as error:
        raise click.BadParameter(
            f"expected a JSON object, such as '{{\"anon\": true}}': {error}", ctx, param
        ) from error
    ctx.with_resource(dask.config.set({OPTIONS: options}))


storage_options_option = click.option(
    "--storage-options",
    metavar="JSON",
    expose_value=False,
    is_eager=True,
    callback=_open_urls_with,
    help="Options of the file system of URLs, such as '{\"anon\": true}' for s3://.",
)
shards_option = click.option(
    "--shards",
    type=Count(),
    metavar="ROWS",
    help="Store labels in shards of about so many rows: fewer files or objects, each of many chunks.",
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace existing outputs.")


def combined(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Make one decorator of several; options are listed in this order."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def bundled(argument: str, kind: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Hand several options on as one argument.

    Parameters
    ----------
    argument : str
        Name of the argument that the command gets.
    kind : type
        A dataclass. Its fields are named like the options, which stand above this decorator; a field without an
        option has its default.
    """
    names = [field.name for field in dataclasses.fields(kind)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(**options: Any) -> Any:
            own = {name: options.pop(name) for name in names if name in options}
            return command(**{argument: kind(**own)}, **options)

        return wrapped

    return decorate
