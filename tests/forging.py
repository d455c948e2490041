"""Forged folders, at seeded places: what somebody writes into stored JSON on purpose, with digests that fit.

A digest is no signature: whoever can write to a folder can make one that fits.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from daskcluster.files.digests import json_digest

__all__ = ["forged_copies"]

DEEP: Any = 1
for _ in range(400):
    DEEP = [DEEP]

#: What stands where a number, a name or a list was.
VALUES: list[Any] = [
    None,
    -1,
    0,
    10**12,
    1e308,
    float("nan"),
    "",
    "../outside",
    "/etc/passwd",
    "a/../../outside",
    "object",
    "|O",
    "<U100000000",
    "float64",
    "pickle",
    "os.system",
    "builtins.eval",
    [],
    {},
    [10**9, 10**9],
    {"$array": "../outside"},
    {"$scalar": {"dtype": "object", "value": 1}},
    {"$estimator": {"class": "subprocess.Popen", "parameters": {"args": "id"}, "fitted": {}}},
    DEEP,
]


def forged_copies(origin: Path, folder: Path, n_copies: int, seed: int) -> Iterator[tuple[str, Path]]:
    """Copies of a folder with one entry of JSON exchanged, or one file or folder a link that leaves the folder."""
    rng = np.random.default_rng(seed)
    described = sorted(path.relative_to(origin) for path in origin.rglob("*.json"))
    others = sorted(path.relative_to(origin) for path in origin.rglob("*") if path.suffix != ".json")
    outside = folder / "outside"
    for number in range(n_copies):
        copy = folder / "copy"
        shutil.copytree(origin, copy)
        if number % 5 == 4:
            name = others[rng.integers(len(others))]
            what = f"link {name}"
            path = copy / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            os.symlink(os.path.relpath(outside, path.parent) if rng.random() < 0.5 else outside, path)
        else:
            name = described[rng.integers(len(described))]
            content = json.loads((copy / name).read_text())
            places = list(_places(content))
            keep, key = places[rng.integers(len(places))]
            value = VALUES[rng.integers(len(VALUES))]
            what = f"{name}: {key} becomes {value!r:.60}"
            keep(value)
            _sign(content)
            (copy / name).write_text(json.dumps(content))
        yield what, copy
        shutil.rmtree(copy)


def _places(value: Any) -> Iterator[tuple[Callable[[Any], None], str]]:
    """Every entry below a JSON value: what puts another one there, and its key. Names are exchanged as well."""
    if isinstance(value, dict):
        for key in list(value):
            yield partial(value.__setitem__, key), str(key)
            yield partial(_rename, value, key), f"the name {key}"
            yield from _places(value[key])
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield partial(value.__setitem__, number), str(number)
            yield from _places(item)


def _rename(value: dict[str, Any], key: str, new: Any) -> None:
    value[str(new)[:200]] = value.pop(key)


def _sign(value: Any) -> None:
    """Make the digests of all objects fit, inner ones first."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _sign(item)
    if isinstance(value, dict) and isinstance(value.get("digest"), str) and len(value) > 3:
        rest = {key: item for key, item in value.items() if key != "digest"}
        # As it is read again.
        value["digest"] = json_digest(json.loads(json.dumps(rest)))
