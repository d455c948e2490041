"""What the attributes of a store or an xarray variable say of its numbers: no data, scale, offset."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.rows import compute_dtype

__all__ = ["Declared", "declared"]

#: Attributes that name numbers which stand for no value, by the conventions of CF and netCDF.
NODATA = ("_FillValue", "missing_value")


@dataclass(frozen=True)
class Declared:
    """How stored numbers become values: those that stand for no value, then scale and offset.

    Attributes
    ----------
    nodata : tuple of numbers
        In the stored dtype.
    unsigned : bool
        Whether signed integers are read as unsigned ones.
    scale, offset : float
    label : bool
        Whether no value is -1, among labels, and not NaN.
    names : tuple of str
        The attribute that declares each of `nodata`.
    """

    nodata: tuple[Any, ...]
    unsigned: bool = False
    scale: float = 1.0
    offset: float = 0.0
    label: bool = False
    names: tuple[str, ...] = ()

    def absent(self, stored: np.dtype[Any]) -> str:
        """How a message says what is stored where NaN is behind the door."""
        said = [f"{number}, its {name}" for number, name in zip(self.nodata, self.names, strict=True)]
        return ", or ".join(["NaN"] * (stored.kind == "f" or not said) + said)

    def dtype(self, stored: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of values: a floating one, which has NaN; labels stay integers where they can."""
        stored = self._read_as(stored)
        if self.label and stored.kind != "f":
            return np.result_type(stored, np.int8)  # has -1
        if stored.kind == "f" and self.offset == 0 and self.scale == 1:
            return stored
        # A large offset costs float32 its digits; a scale does not.
        return np.dtype(np.float64) if self.offset else compute_dtype(stored)

    def __call__(self, block: NDArray[Any]) -> NDArray[Any]:
        """Turn a block of stored numbers into values."""
        stored = self._read_as(block.dtype)
        block = block.view(stored) if self.unsigned else block
        dtype = self.dtype(stored)
        values = block.astype(dtype)
        if self.scale != 1:
            values *= dtype.type(self.scale)
        if self.offset:
            values += dtype.type(self.offset)
        for number in self.nodata:
            values[block == number] = -1 if self.label else np.nan
        return values

    def _read_as(self, stored: np.dtype[Any]) -> np.dtype[Any]:
        return np.dtype(f"{stored.byteorder}u{stored.itemsize}") if self.unsigned and stored.kind == "i" else stored


def declared(
    name: str, dtype: np.dtype[Any], attributes: Mapping[str, Any], encoding: Mapping[str, Any], *, label: bool = False
) -> Declared | None:
    """What attributes say of numbers, or None where they say nothing that matters.

    Parameters
    ----------
    name : str
        The argument, for messages.
    dtype : dtype
        Of the stored numbers.
    attributes : mapping
    encoding : mapping
        Of an xarray variable: how it was, or is to be, stored. Integers that name nodata there hold it still; anything
        else has been decoded.
    label : bool
        See `Declared`.

    Raises
    ------
    ValueError
        If an attribute is no number, or scale or offset differ between columns.

    Notes
    -----
    The fill value of a Zarr array alone says nothing: 0 by default, it is what chunks that are not stored are read as.
    """
    if dtype.kind not in "biuf":
        return None
    unsigned = dtype.kind == "i" and str(attributes.get("_Unsigned", "false")).lower() == "true"
    scale = _single(name, attributes, "scale_factor", 1.0)
    offset = _single(name, attributes, "add_offset", 0.0)
    if scale == 0:
        raise ValueError(f"{name} has the attribute scale_factor=0, which makes all its numbers equal; remove it")
    if label and (scale != 1 or offset != 0):
        raise ValueError(
            f"{name} has the attributes scale_factor={scale} and add_offset={offset}, which are not applied to labels "
            "and weights: store the values themselves"
        )
    found = Declared((), unsigned, scale, offset, label)
    where = {**(encoding if dtype.kind in "iu" else {}), **attributes}
    stored = found._read_as(dtype)
    named: dict[Any, str] = {}
    for key in NODATA:
        for number in _numbers(name, where, key):
            named.setdefault(_as_stored(number, dtype, stored), key)
    named.pop(None, None)
    nodata = tuple(named)
    if not nodata and not unsigned and scale == 1 and offset == 0:
        return None
    return Declared(nodata, unsigned, scale, offset, label, tuple(named.values()))


def _as_stored(number: float | int, dtype: np.dtype[Any], stored: np.dtype[Any]) -> Any:
    """A number in the stored dtype; None where no stored number equals it, or where it is missing without our help."""
    if stored.kind == "f":
        with np.errstate(over="ignore"):
            value = stored.type(number)
        return value if np.isfinite(value) else None
    if number != number or number in (np.inf, -np.inf) or number != int(number):
        return None
    if stored != dtype and number < 0:  # written as the signed number
        number = int(number) + 2 ** (8 * stored.itemsize)
    if stored.kind == "b":
        return None
    limits = np.iinfo(stored)
    return int(number) if limits.min <= number <= limits.max else None


def _numbers(name: str, attributes: Mapping[str, Any], key: str) -> list[Any]:
    """The numbers of an attribute: one, a list of them, or their text as JSON and xarray write it."""
    value = attributes.get(key)
    if value is None:
        return []
    items = value if isinstance(value, list | tuple) else np.ravel(np.asarray(value)).tolist()
    return [_number(name, key, item) for item in items if item is not None]


def _number(name: str, key: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float):
        return value
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        try:
            return float(value)  # "NaN", "-Infinity", "1e20"
        except ValueError:
            pass
        try:
            return float(struct.unpack("<d", base64.b64decode(value, validate=True))[0])  # as xarray writes floats
        except (binascii.Error, struct.error):
            pass
    raise ValueError(f"{name} has the attribute {key}={value!r}, which is no number; remove or correct it")


def _single(name: str, attributes: Mapping[str, Any], key: str, default: float) -> float:
    """An attribute that must be one finite number."""
    numbers = {float(number) for number in _numbers(name, attributes, key)}
    if len(numbers) > 1 or not np.isfinite([*numbers]).all():
        raise ValueError(
            f"{name} has the attribute {key}={attributes[key]!r}; one finite number for all columns is applied, "
            "anything else is not: store the values themselves"
        )
    return numbers.pop() if numbers else default
