"""The files of a folder, in the order of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dask.utils import natural_sort_key

__all__ = ["part_files"]


def part_files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """Return the files of a folder that hold rows, or the one file that `path` is.

    Numbers in names count as numbers, as dask orders the files that it writes and reads: part.10 follows part.9.
    What begins with "." or "_" holds no rows, by a convention of those who write such folders.
    """
    if not path.is_dir():
        return [path]
    files = [
        file
        for file in path.iterdir()
        if file.name.lower().endswith(tuple(suffixes)) and file.name[0] not in "._" and file.is_file()
    ]
    if not files:
        inside = sorted(child.name for child in path.iterdir() if child.is_dir() and child.name[0] not in "._")
        hint = f"; it has folders, such as {inside[0]!r}: convert each of them" if inside else ""
        raise ValueError(f"{str(path)!r} is a folder without {suffixes[0]} files{hint}")
    return sorted(files, key=lambda file: natural_sort_key(file.name))
