"""Open Zarr arrays for reading; write them aligned to their chunks and atomically.

Two failures of a long run are made impossible here. Tasks that write parts of one Zarr chunk at the same time
lose rows without an error, so `write_array` gives each stored chunk (each shard, when sharded) to exactly one
task. And a run that dies leaves something that looks like a result, so every output grows under a hidden name
beside its own and is renamed when it is complete (`atomic_path`).

Nothing here names a scheduler; tasks receive paths, never open handles, so they run in threads, in processes
and on a cluster that shares the file system.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import dask.array as da
import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray
from zarr.codecs import BloscCodec

from ..runtime.execution import compute
from ..typing import PathInput

__all__ = [
    "atomic_path",
    "check_output",
    "choose_chunk_rows",
    "create_array",
    "local_path",
    "open_dask",
    "open_rows",
    "write_array",
]

#: Bounds of a chunk that this package chooses itself. Rows are a power of two, so a chunk is at least half of
#: one bound. The bound on rows keeps enough chunks for all cores where rows are short.
CHUNK_BYTES = 32 * 2**20
CHUNK_ROWS = 2**20
#: Chunks of a dask array that are smaller are joined when it is stored.
LEAST_CHUNK_BYTES = 4 * 2**20

# A partial output of another machine counts as abandoned when nothing in it changed for so long. (On this
# machine the process is looked up.)
ABANDONED_SECONDS = 3600.0

# Partial outputs that this process is writing now.
_active: set[Path] = set()


# -- reading -------------------------------------------------------------------------------------------------


def open_rows(source: zarr.Array[Any] | zarr.Group | PathInput) -> zarr.Array[Any]:
    """Open a Zarr array for reading.

    Parameters
    ----------
    source : zarr.Array or str or os.PathLike
        An open array, returned as it is; or a path or URL that zarr accepts. An array inside a group is named
        by its path: ``"store.zarr/X"``.

    Returns
    -------
    zarr.Array
        Read-only when it was opened here.

    Raises
    ------
    TypeError
        If `source` is neither an array nor a path.
    FileNotFoundError
        If nothing exists under the path.
    ValueError
        If the path holds something else: a group (the message lists its arrays), a saved model, a folder or a
        file.
    """
    if isinstance(source, zarr.Array):
        return source
    if isinstance(source, zarr.Group):
        raise ValueError(_describe_group(str(source.store_path), source))
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"expected a zarr.Array or the path of one, got {type(source).__name__}")
    name = os.fspath(source)
    try:
        node = zarr.open(name, mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise _nothing_to_open(name, error) from error
    if isinstance(node, zarr.Group):
        raise ValueError(_describe_group(name, node))
    assert isinstance(node, zarr.Array)
    return node


def open_dask(source: zarr.Array[Any] | PathInput) -> da.Array:
    """Open a Zarr array as a lazy dask array whose chunks are whole stored chunks.

    Parameters
    ----------
    source : zarr.Array or str or os.PathLike
        As in `open_rows`.

    Returns
    -------
    da.Array
        Small stored chunks are read several at a time, up to about 32 MiB, because each read of a Zarr chunk
        has a fixed cost; no stored chunk is read by two tasks.
    """
    array = open_rows(source)
    if array.ndim == 0:
        raise ValueError(f"expected an array with rows, got a scalar array in {array.store_path}")
    unit = array.shards or array.chunks
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    several = max(1, CHUNK_BYTES // max(1, unit[0] * row_bytes))
    rows = min(max(1, array.shape[0]), unit[0] * several)
    columns = tuple(max(1, size) for size in array.shape[1:])
    # The content may change under the same path, so the name of the tasks must not outlive this call.
    return da.from_array(array, chunks=(rows, *columns), name=f"dc-read-{uuid.uuid4().hex}")


def _nothing_to_open(name: str, error: Exception) -> Exception:
    """Return the exception that tells what stands under a path that is no Zarr node."""
    if "://" in name:
        return ValueError(f"no Zarr array at {name!r}: {error}")
    path = Path(name)
    if path.is_dir():
        if _zarr_metadata(path):
            return ValueError(f"{name!r} has Zarr metadata that cannot be read: {error}")
        return ValueError(f"{name!r} is a folder, not a Zarr array: it has no Zarr metadata")
    if path.exists():
        return ValueError(
            f"{name!r} is a file, not a Zarr array; `daskcluster convert` reads .npy, .npz, .csv and .parquet"
        )
    return FileNotFoundError(f"no Zarr array at {name!r}: nothing exists there")


def _describe_group(name: str, group: zarr.Group) -> str:
    """Say that a path is a group, and which arrays it holds."""
    ours = group.attrs.get("daskcluster")
    if isinstance(ours, Mapping) and ours.get("kind") == "model":
        return f"{name!r} is a saved model ({ours.get('class')}), not a Zarr array; open it with load_model"
    arrays = [(key, node.shape) for key, node in group.members(max_depth=None) if isinstance(node, zarr.Array)]
    if not arrays:
        return f"{name!r} is an empty Zarr group, not a Zarr array"
    arrays.sort()
    listed = ", ".join(f"{key} {shape}" for key, shape in arrays[:8])
    if len(arrays) > 8:
        listed += f" and {len(arrays) - 8} more"
    example = f"{name.rstrip('/')}/{arrays[0][0]}"
    return f"{name!r} is a Zarr group, not an array; it holds {listed}. Name one of them, such as {example!r}"


def _zarr_metadata(path: Path) -> bool:
    return any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


# -- creating ------------------------------------------------------------------------------------------------


def choose_chunk_rows(row_bytes: int, n_rows: int | None = None) -> int:
    """Choose how many rows a stored chunk has: a power of two that takes 16 to 32 MiB, or 2**20 short rows.

    Parameters
    ----------
    row_bytes : int
        Size of one row; larger than 32 MiB gives single rows.
    n_rows : int, optional
        Rows of the array; a chunk never has more.

    Returns
    -------
    int
        At least 1.
    """
    rows = min(max(1, CHUNK_BYTES // max(1, row_bytes)), CHUNK_ROWS)
    rows = 1 << (rows.bit_length() - 1)
    return rows if n_rows is None else max(1, min(rows, n_rows))


def create_array(
    path: PathInput,
    shape: Sequence[int],
    dtype: DTypeLike,
    *,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> zarr.Array[Any]:
    """Create an empty Zarr array (format 3) of numbers.

    Parameters
    ----------
    path : str or os.PathLike
        Where; nothing may exist there. To appear complete or not at all, create it inside `atomic_path`.
    shape : sequence of int
        Lengths, rows first; a length may be 0.
    dtype : dtype-like
        A boolean, integer or floating type.
    chunks : int or sequence of int, optional
        Rows of a chunk, or its length on every axis. By default whole rows, 16 to 32 MiB
        (`choose_chunk_rows`).
    shards : int or sequence of int, optional
        Rows of a shard, or its length on every axis: a multiple of `chunks`, which must be given then. A
        shard is one file of many chunks, for file systems that suffer from many small files. By default a
        file is a chunk.
    attributes : mapping, optional
        JSON values stored with the array.

    Returns
    -------
    zarr.Array
        Writable, filled with zeros.
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"dtype: expected booleans, integers or floating numbers, got {dtype}")
    lengths = tuple(int(length) for length in shape)
    chunk_lengths, shard_lengths = _storage_grid(lengths, dtype, chunks, shards)
    return zarr.create_array(
        os.fspath(path),
        shape=lengths,
        dtype=dtype,
        chunks=chunk_lengths,
        shards=shard_lengths,
        # Byte shuffling serves both kinds of array stored here: features and labels. On normal float32
        # features it is as small as zarr's default (zstd alone) and is read faster; labels take 40 % less.
        compressors=BloscCodec(cname="zstd", clevel=1, shuffle="shuffle"),
        fill_value=0,
        attributes=_as_json(attributes or {}),
    )


def _storage_grid(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    chunks: int | Sequence[int] | None,
    shards: int | Sequence[int] | None,
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the lengths of chunks and shards on every axis, cut to the array where they are longer."""
    if not shape:
        return (), None
    if chunks is None:
        if shards is not None:
            raise ValueError("shards: name the chunks inside a shard too, with chunks=")
        row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        chunks = choose_chunk_rows(row_bytes)
    wanted = _lengths("chunks", chunks, shape)
    chunk_lengths = tuple(min(length, max(1, size)) for length, size in zip(wanted, shape, strict=True))
    if shards is None:
        return chunk_lengths, None
    shard_lengths = _lengths("shards", shards, shape)
    for shard, chunk in zip(shard_lengths, wanted, strict=True):
        if shard % chunk:
            raise ValueError(f"shards: expected multiples of the chunks {wanted}, got {shard_lengths}")
    # A shard longer than the array is cut to the last chunk that the array touches.
    return chunk_lengths, tuple(
        min(shard, -(-max(1, size) // chunk) * chunk)
        for shard, chunk, size in zip(shard_lengths, chunk_lengths, shape, strict=True)
    )


def _lengths(argument: str, value: int | Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return one length for each axis; a single number counts rows and takes the other axes whole."""
    if isinstance(value, int | np.integer):
        lengths = (int(value), *(max(1, size) for size in shape[1:]))
    else:
        lengths = tuple(int(length) for length in value)
    if len(lengths) != len(shape) or min(lengths, default=1) < 1:
        raise ValueError(f"{argument}: expected {len(shape)} positive lengths for an array {shape}, got {value!r}")
    return lengths


def _as_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of attributes made of plain JSON values; refuse what JSON cannot hold, NaN included."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(attributes), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"attributes: expected JSON values: {error}") from error
    return plain


# -- writing -------------------------------------------------------------------------------------------------


def write_array(
    array: da.Array,
    path: PathInput,
    *,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
) -> zarr.Array[Any]:
    """Compute a dask array and store it as a Zarr array, aligned and atomically.

    Parameters
    ----------
    array : da.Array of one or two dimensions
        Any chunking, empty chunks included; the lengths must be known.
    path : str or os.PathLike
        Where: a path on a file system that all workers see.
    chunks, shards : int or sequence of int, optional
        As in `create_array`. By default the chunks of `array` where they are regular and neither tiny nor
        huge (many are stored as one below 4 MiB), else whole rows of 16 to 32 MiB.
    overwrite : bool
        Replace an existing array. The old one stays until the new one is complete, so `array` may read from
        it.
    attributes : mapping, optional
        JSON values stored with the array.

    Returns
    -------
    zarr.Array
        The stored array, opened read-only.

    Raises
    ------
    FileExistsError
        If `path` exists and `overwrite` is false; nothing has been computed then.
    ValueError
        If the lengths of the chunks are unknown, or the array is not made of numbers.

    Notes
    -----
    One pass, on the active dask scheduler. One task writes one whole stored chunk (shard), so it holds one of
    them and the chunks of `array` that overlap it. Where chunks of `array` end elsewhere, their parts are
    sent to the task that needs them; all-to-all shuffles are never used.
    """
    array = _check_writable(array)
    if chunks is None and shards is None:
        chunks = _natural_chunk_rows(array)
    with atomic_path(path, overwrite=overwrite) as temporary:
        target = create_array(temporary, array.shape, array.dtype, chunks=chunks, shards=shards, attributes=attributes)
        if array.size:
            unit = target.shards or target.chunks
            # Never dask's "p2p" rechunking: it needs disks, and stalls on clusters whose workers come and go.
            aligned = array.rechunk(unit, method="tasks")
            stored = aligned.map_blocks(
                _write_block,
                path=str(temporary),
                unit=unit,
                token="dc-write",
                chunks=tuple((1,) * n for n in aligned.numblocks),
                dtype=np.int64,
                meta=np.empty((0,) * array.ndim, dtype=np.int64),
            )
            (counts,) = compute(stored)
            if int(counts.sum()) != array.size:
                raise RuntimeError(f"stored {int(counts.sum())} of {array.size} values in {os.fspath(path)!r}")
    return zarr.open_array(str(local_path(path)), mode="r")


def _write_block(block: NDArray[Any], path: str, unit: tuple[int, ...], block_id: tuple[int, ...]) -> NDArray[np.int64]:
    """Write one block, which is one whole stored chunk or shard, and return how many values it had."""
    region = tuple(
        slice(index * length, index * length + size)
        for index, length, size in zip(block_id, unit, block.shape, strict=True)
    )
    # Opening costs about a millisecond. A handle kept from task to task would have to be sent between
    # processes.
    zarr.open_array(path, mode="r+")[region] = block
    return np.full((1,) * block.ndim, block.size, dtype=np.int64)


def _check_writable(array: da.Array) -> da.Array:
    if not isinstance(array, da.Array):
        raise TypeError(f"array: expected a dask array, got {type(array).__name__}")
    if array.ndim not in (1, 2):
        raise ValueError(f"array: expected one or two dimensions, got {array.ndim}")
    if any(np.isnan(size) for size in array.shape):
        raise ValueError("array: expected known chunk lengths; call array.compute_chunk_sizes() first")
    return array


def _natural_chunk_rows(array: da.Array) -> int | None:
    """Return rows of a stored chunk that keeps the chunks of `array` whole, or None where these do not serve.

    Whole multiples of the array's own chunks are written without splitting any of them.
    """
    sizes = [size for size in array.chunks[0] if size]
    regular = len(set(sizes[:-1])) <= 1 and bool(sizes) and sizes[-1] <= sizes[0]
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    if not regular or not 0 < sizes[0] * row_bytes <= 2 * CHUNK_BYTES:
        return None
    several: int = -(-LEAST_CHUNK_BYTES // (sizes[0] * row_bytes))
    return int(sizes[0]) * several


# -- complete or absent --------------------------------------------------------------------------------------


def local_path(path: PathInput) -> Path:
    """Return an output's absolute path on this file system.

    Raises
    ------
    ValueError
        If `path` is a URL other than ``file://``: a rename is what makes an output appear complete, and
        object stores have none.
    """
    name = os.fspath(path)
    if "://" in name:
        url = urlsplit(name)
        if url.scheme != "file":
            raise ValueError(f"outputs need a path on a file system (it may be a shared one), got {name!r}")
        name = unquote(url.path)
    return Path(os.path.abspath(name))


def check_output(path: PathInput, *, overwrite: bool = False) -> Path:
    """Refuse an output that could not be written in the end, before any work is done for it.

    Parameters
    ----------
    path : str or os.PathLike
        The output to be.
    overwrite : bool
        Whether an existing Zarr array, Zarr group, file or empty folder may be replaced. Other folders never
        are.

    Returns
    -------
    Path
        The absolute path.

    Raises
    ------
    FileExistsError
        If the path exists and may not be replaced.
    NotADirectoryError, PermissionError
        If it cannot be created where it is.
    """
    final = local_path(path)
    if os.path.lexists(final):
        if not overwrite:
            raise FileExistsError(f"{os.fspath(path)!r} exists; pass overwrite=True to replace it")
        if final.is_dir() and not _zarr_metadata(final) and any(final.iterdir()):
            raise FileExistsError(f"{os.fspath(path)!r} is a folder that is no Zarr store; it is not replaced")
    parent = final.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise NotADirectoryError(f"cannot create {os.fspath(path)!r}: {str(parent)!r} is not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(f"cannot create {os.fspath(path)!r}: {str(parent)!r} is not writable")
    return final


@contextlib.contextmanager
def atomic_path(path: PathInput, *, overwrite: bool = False) -> Iterator[Path]:
    """Write a file, an array or a group that appears under its name only when it is complete.

    Parameters
    ----------
    path : str or os.PathLike
        The final path; missing parent folders are made.
    overwrite : bool
        Replace what exists there, as in `check_output`. The old one stays until the new one is complete.

    Yields
    ------
    Path
        A hidden sibling, ``.NAME.partial-...``, that does not exist yet: create the file or folder there. It
        becomes `path` when the block ends, and is removed when the block raises.

    Raises
    ------
    FileExistsError
        Before the block runs, or after it when another process made `path` meanwhile.

    Notes
    -----
    A killed process leaves only the hidden sibling, which the next `atomic_path` of the same target removes
    unless its process still runs (or, on another machine, wrote within the last hour). Killed in the instant
    between the two renames of an overwrite, the old output is put back by the next call.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with atomic_path(f"{folder}/note.txt") as temporary:
    ...     _ = temporary.write_text("complete")
    ...     print(os.path.exists(f"{folder}/note.txt"))
    False
    >>> print(Path(f"{folder}/note.txt").read_text())
    complete
    """
    final = local_path(path)
    _recover(final)
    check_output(path, overwrite=overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = _hidden_sibling(final, "partial")
    _active.add(temporary)
    try:
        yield temporary
        if not os.path.lexists(temporary):
            raise FileNotFoundError(f"nothing was written for {os.fspath(path)!r}")
        _publish(temporary, check_output(path, overwrite=overwrite))
    except BaseException:
        _remove(temporary)
        # Tasks that were running when the block was interrupted may write once more; at exit they have ended.
        atexit.register(_remove, temporary)
        raise
    finally:
        _active.discard(temporary)


def _publish(temporary: Path, final: Path) -> None:
    """Rename a complete output to its final name; what stands there is moved aside first and removed last."""
    if not os.path.lexists(final):
        os.rename(temporary, final)
        return
    replaced = _hidden_sibling(final, "replaced")
    os.rename(final, replaced)
    try:
        os.rename(temporary, final)
    except BaseException:
        os.rename(replaced, final)
        raise
    _remove(replaced)


def _hidden_sibling(final: Path, kind: str) -> Path:
    host = re.sub(r"[^A-Za-z0-9]", "", socket.gethostname()) or "host"
    return final.with_name(f".{final.name}.{kind}-{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}")


def _recover(final: Path) -> None:
    """Clean up after killed runs with the same target."""
    if not final.parent.is_dir():
        return
    pattern = re.compile(rf"\.{re.escape(final.name)}\.(partial|replaced)-([A-Za-z0-9]+)-(\d+)-[0-9a-f]{{8}}")
    for sibling in sorted(final.parent.iterdir()):
        match = pattern.fullmatch(sibling.name)
        if match is None or _in_use(sibling, match[2], int(match[3])):
            continue
        if match[1] == "replaced" and not os.path.lexists(final):
            os.rename(sibling, final)
        else:
            _remove(sibling)


def _in_use(sibling: Path, host: str, pid: int) -> bool:
    """Tell whether the process that made a hidden sibling may still be writing it."""
    here = host == re.sub(r"[^A-Za-z0-9]", "", socket.gethostname())
    if here and pid == os.getpid():
        return sibling in _active
    if here and os.name == "posix":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    # A store's writers create files in its upper two levels of folders, which changes the folders' times.
    try:
        folders = [sibling, *(child for child in sibling.glob("*") if child.is_dir())]
        latest = max(folder.stat().st_mtime for folder in folders)
    except FileNotFoundError:
        return False
    return time.time() - latest < ABANDONED_SECONDS


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
