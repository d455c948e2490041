"""Digests of what is stored: written with it, and compared before any of it is believed.

Small things (models, small products, keys) have a BLAKE2 of their whole content. Row blocks have a CRC-32: it finds
every damage of a disk or a transfer but one in 2**32, at ten times the speed; nobody forges his own checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

__all__ = [
    "Damage",
    "block_digest",
    "check_digest",
    "check_numbers",
    "describe_content",
    "json_digest",
    "read_arrays",
    "reading",
]

#: What a digest begins with: another kind of digest in a store is of a newer version, and not compared.
PREFIX = "blake2b-128:"


def json_digest(value: Any) -> str:
    """The digest of a JSON value: the same for the same value, however it is laid out in a file."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return PREFIX + hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def describe_content(arrays: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Shape, dtype and digest of each array, as JSON: what is to be found when they are read again."""
    return {name: describe_array(array) for name, array in arrays.items()}


def describe_array(array: NDArray[Any]) -> dict[str, Any]:
    """Shape, dtype and digest of an array, the same for any memory and byte order."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    digest = hashlib.blake2b(plain.tobytes(), digest_size=16).hexdigest()
    return {"shape": list(array.shape), "dtype": array.dtype.newbyteorder("=").name, "digest": PREFIX + digest}


def block_digest(block: NDArray[Any]) -> str:
    """The digest of a row block in its memory; a row block has the byte order of the machine."""
    return f"{zlib.crc32(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data):08x}"


# -- what is found again ----------------------------------------------------------------------------------------------


class Damage(Exception):
    """What is wrong with something stored; whoever knows its path makes an error of it that users see."""


#: An array that says it is so much larger than its files is not believed, where no digest tells.
_MOST_BYTES, _MOST_RATIO = 2**28, 2**12


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what libraries raise over damaged files into `Damage` of `what`; not what a lack of access raises."""
    try:
        yield
    except (Damage, PermissionError, ConnectionError, TimeoutError):
        raise
    except Exception as error:  # JSON, metadata, codecs and sizes fail in every way there is
        text = " ".join(str(error).split())
        raise Damage(f"{what} cannot be read ({type(error).__name__}{': ' if text else ''}{text:.200})") from error


def check_digest(content: Mapping[str, Any], what: str, since: str | None = None) -> bool:
    """Compare the digest in a JSON object with the rest of it; False where it has none, as version 0.1.0 wrote it.

    An entry of the name `since` tells that it was written later.
    """
    if "digest" not in content:
        if since in content:
            raise Damage(f"{what} has lost its digest")
        return False
    if content["digest"] != json_digest({key: value for key, value in content.items() if key != "digest"}):
        raise Damage(f"{what} does not have the digest that was stored with it")
    return True


def read_arrays(group: zarr.Group, declared: Mapping[str, Mapping[str, Any]] | None) -> dict[str, NDArray[Any]]:
    """Read the arrays of a group, and compare them with what `describe_content` said of them.

    Parameters
    ----------
    declared : mapping, or None
        None reads all arrays that are there, as they are.

    Raises
    ------
    Damage
    """
    if declared is None:
        with reading("its list of arrays"):
            names = sorted(group.array_keys())
    else:
        names = list(declared)
    return {name: _read_array(group, name, None if declared is None else declared[name]) for name in names}


def check_numbers(what: str, array: zarr.Array[Any]) -> None:
    """Refuse an array of something else than numbers: to read objects or texts, Zarr may be told to unpickle them."""
    if array.dtype.kind not in "biuf":
        raise Damage(f"{what} holds {array.dtype}, and no numbers")


def _read_array(group: zarr.Group, name: str, declared: Mapping[str, Any] | None) -> NDArray[Any]:
    what = f"its array {name!r}"
    with reading(what):
        array = group.get(name)
        if array is None:
            raise Damage(f"{what} is missing")
        if not isinstance(array, zarr.Array):
            raise Damage(f"{what} is no array")
        check_numbers(what, array)
        if declared is None:
            if array.nbytes > max(_MOST_BYTES, _MOST_RATIO * array.nbytes_stored()):
                raise Damage(f"{what} says that it has {array.nbytes:,} bytes, which its files do not have")
        elif [list(array.shape), array.dtype.newbyteorder("=").name] != [declared["shape"], declared["dtype"]]:
            raise Damage(
                f"{what} has shape {array.shape} and dtype {array.dtype}, not {tuple(declared['shape'])} and "
                f"{declared['dtype']}"
            )
        found = np.asarray(array[...], dtype=array.dtype)
        if declared is not None and describe_array(found)["digest"] != declared["digest"]:
            raise Damage(f"the content of {what} does not have the digest that was stored with it")
    return found
