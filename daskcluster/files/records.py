"""Records that are added one after the other, each with a checksum: what a killed program left is read.

A record is a key and a value of plain things: numbers, text, bytes, None, lists, tuples, dicts and NumPy arrays. It is
written as JSON and the bytes of its arrays, so reading one never runs code. The last record may be torn; it, and what
comes behind a damaged one, counts as never written.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from .logs import log_at
from .objects import Place

__all__ = ["Records", "decode", "encode", "keep_kind"]

#: Before each record: checksum, bytes of its JSON, bytes of its arrays.
_HEAD = 32
#: A file is written anew when so many bytes of it are superseded, and half of it is.
_MOST_DEAD_BYTES = 2**26


class Records:
    """A file of records.

    Parameters
    ----------
    path : Path or ObjectPath
        Is made with the first record, and its folder. What is there is read.

    Notes
    -----
    One process writes at a time. The bytes are in a log, see `logs.py`.
    """

    def __init__(self, path: Place) -> None:
        self.path = path
        self._log = log_at(path)
        #: Key -> place of the record and its lengths; the last one of a key counts.
        self._index: dict[str, tuple[int, int, int]] = {}
        self._size = 0
        self._dead = 0
        self._log.load(self._accept)

    def __contains__(self, key: str) -> bool:
        return key in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: str) -> Any:
        """The value of a key; KeyError where there is none."""
        place, text_bytes, array_bytes = self._index[key]
        content = self._log.read(place + _HEAD, text_bytes + array_bytes)
        return _decoded(content[:text_bytes], content[text_bytes:])[1]

    def put(self, values: Mapping[str, Any], forget: tuple[str, ...] = ()) -> None:
        """Add records, in one write; `forget` names others that are superseded, and may be found once more."""
        encoded = [(key, *_encoded(key, value)) for key, value in values.items()]
        content = b"".join(record for _, record, _ in encoded)
        place = self._log.add(content) if content else 0
        for key in (*forget, *values):
            if key in self._index:
                self._dead += _HEAD + sum(self._index.pop(key)[1:])
        for key, record, lengths in encoded:
            self._index[key] = (place, *lengths)
            place += len(record)
        self._size += len(content)
        if self._dead > max(_MOST_DEAD_BYTES, self._size // 2):
            self._replace()

    def forget(self, keys: list[str]) -> None:
        """Remove records, so that they are not found again either."""
        for key in keys:
            del self._index[key]
        self._replace()

    def clear(self) -> None:
        """Remove the file."""
        self._index.clear()
        self._size = self._dead = 0
        self._log.clear()

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def _accept(self, file: BinaryIO, place: int, size: int) -> int:
        """Find the whole records in so many bytes, which begin at a place; how many bytes those are."""
        length = 0
        while True:
            head = file.read(_HEAD)
            lengths = _lengths(head)
            if lengths is None or length + _HEAD + sum(lengths) > size:  # torn, or no lengths of ours
                return length
            text, arrays = (file.read(part) for part in lengths)
            if (len(text), len(arrays)) != lengths or _checksum(text, arrays) != head[:8]:
                return length
            try:
                key = _decoded(text, arrays)[0]
            except (ValueError, LookupError, TypeError, AttributeError):
                return length
            if key in self._index:
                self._dead += _HEAD + sum(self._index[key][1:])
            self._index[key] = (place + length, *lengths)
            length += _HEAD + sum(lengths)
            self._size += _HEAD + sum(lengths)

    def _replace(self) -> None:
        """Write the records anew, without what is superseded."""
        old = list(self._index.values())
        places = self._log.replace(self._log.read(place, _HEAD + sum(lengths)) for place, *lengths in old)
        found = zip(self._index, places, old, strict=True)
        self._index = {key: (place, *lengths) for key, place, (_, *lengths) in found}  # type: ignore[misc]
        self._size, self._dead = sum(_HEAD + sum(lengths) for _, *lengths in old), 0


# -- the form of a record ----------------------------------------------------------------------------------------------


def _checksum(text: bytes, arrays: bytes) -> bytes:
    return b"%08x" % zlib.crc32(arrays, zlib.crc32(text))


def _lengths(head: bytes) -> tuple[int, int] | None:
    """Lengths of a record from its head; None where it is torn."""
    match = re.fullmatch(rb"[0-9a-f]{8} +(\d+) +(\d+)\n", head)
    return (int(match[1]), int(match[2])) if match is not None and len(head) == _HEAD else None


def _encoded(key: str, value: Any) -> tuple[bytes, tuple[int, int]]:
    arrays: list[np.ndarray[Any, Any]] = []
    plain = encode(value, arrays)
    orders = ["F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C" for array in arrays]
    forms = [[array.dtype.str, list(array.shape), order] for array, order in zip(arrays, orders, strict=True)]
    text = json.dumps([key, plain, forms], separators=(",", ":")).encode()
    content = b"".join(array.tobytes("A") for array in arrays)
    head = b"%s %10d %11d\n" % (_checksum(text, content), len(text), len(content))
    return head + text + content, (len(text), len(content))


def _decoded(text: bytes, content: bytes) -> tuple[str, Any]:
    key, plain, forms = json.loads(text)
    arrays, start = [], 0
    for dtype, shape, order in forms:
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(content, np.dtype(dtype), count, start).reshape(shape, order=order)
        start += array.nbytes
        arrays.append(array.copy("A"))  # in its order: products of matrices may have other last digits in another one
    return str(key), decode(plain, arrays)


#: Further kinds of values: name -> type, what gives plain things of one, and what makes one of these.
_kinds: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {}


def keep_kind(name: str, kind: type, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
    """Let records hold values of one more type."""
    _kinds[name] = (kind, pack, unpack)


def encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """A value as JSON takes it; its arrays are put into a list, and named by their place there.

    Raises
    ------
    TypeError
        If something in it is of another kind than those that come back as they were.
    """
    if value is None or type(value) in (bool, int, str, float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"no array of {array.dtype} is kept in a record")
        arrays.append(array)
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays) - 1}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    for kind, (of_type, pack, _) in _kinds.items():
        if type(value) is of_type:
            return {kind: encode(pack(value), arrays)}
    if type(value) in (list, tuple):
        return {type(value).__name__: [encode(item, arrays) for item in value]}
    if type(value) is dict:
        return {"dict": [[encode(key, arrays), encode(item, arrays)] for key, item in value.items()]}
    raise TypeError(f"no {type(value).__name__} is kept in a record")


def decode(plain: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """The value of which `encode` made this."""
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "array":
        return arrays[content]
    if kind == "number":
        return arrays[content][()]
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "dict":
        return {decode(key, arrays): decode(item, arrays) for key, item in content}
    if kind in _kinds:
        return _kinds[kind][2](decode(content, arrays))
    items = (decode(item, arrays) for item in content)
    return tuple(items) if kind == "tuple" else list(items)
