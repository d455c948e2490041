"""Damage to stored folders, at seeded places: what disks, transfers and hands do to files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

__all__ = ["KINDS", "damaged_copies"]

KINDS = ("flip a bit", "change a byte", "cut", "empty", "zero", "zero a part", "swap", "delete", "delete a folder")


def damaged_copies(origin: Path, folder: Path, n_copies: int, seed: int) -> Iterator[tuple[str, Path]]:
    """Copies of a folder with one damage each, and what was done; a copy is gone when the next one is asked for."""
    rng = np.random.default_rng(seed)
    files = sorted(path.relative_to(origin) for path in origin.rglob("*") if path.is_file())
    for number in range(n_copies):
        copy = folder / "copy"
        shutil.copytree(origin, copy)
        kind = KINDS[number % len(KINDS)]
        name = files[rng.integers(len(files))]
        other = files[rng.integers(len(files))]
        _damage(copy, kind, name, other, rng)
        yield f"{kind}: {name}" + (f" and {other}" if kind == "swap" else ""), copy
        shutil.rmtree(copy, ignore_errors=True)


def _damage(copy: Path, kind: str, name: Path, other: Path, rng: np.random.Generator) -> None:
    file = copy / name
    content = bytearray(file.read_bytes())
    place = int(rng.integers(max(1, len(content))))
    if kind == "flip a bit" and content:
        content[place] ^= 1 << int(rng.integers(8))
    elif kind == "change a byte" and content:
        # Digits and letters most of the time: what is still JSON is the more dangerous.
        old = content[place]
        content[place] = int(rng.choice(np.frombuffer(b"0123456789ax", np.uint8))) if chr(old).isalnum() else old ^ 0x55
    elif kind == "cut":
        del content[place:]
    elif kind == "empty":
        content.clear()
    elif kind == "zero":
        content[:] = bytes(len(content))
    elif kind == "zero a part":
        content[place : place + 16] = bytes(len(content[place : place + 16]))
    if kind == "swap":
        second = (copy / other).read_bytes()
        (copy / other).write_bytes(content)
        file.write_bytes(second)
    elif kind == "delete":
        file.unlink()
    elif kind == "delete a folder":
        shutil.rmtree(file.parent if file.parent != copy else copy / min(copy.iterdir()).name, ignore_errors=True)
    else:
        file.write_bytes(content)
