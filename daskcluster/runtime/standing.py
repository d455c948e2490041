"""How far the run of a named store is: told from its files, by whoever looks, while it runs or after it was killed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import zarr

from ..files import Place, is_complete, zarr_place
from ..files.digests import Damage, check_digest, reading
from ..files.locks import holder, holder_text
from ..files.records import Records
from .execution import FAN_IN
from .parts import describe_parts
from .store import PARTS, SCAN, read_key

__all__ = ["describe_run", "resumption"]


def describe_run(folder: Place) -> dict[str, Any]:
    """What a named store has, and what the next run does.

    Returns
    -------
    dict, as JSON takes it
        The entries of the key; ``products``, by name, those that are complete: shape, dtype and chunks of their arrays,
        None where the description is damaged; ``stages``, for each its `title`, `products`, which of these are
        `complete`, and what `grows`, by name (blocks that are `done` of all `blocks`, and `passes` before them);
        ``holder``, who is writing to it, or None; ``next``, in words.

    Raises
    ------
    DamagedStoreError, ValueError
        As `read_key`.
    """
    key = read_key(folder) or {}
    inside: list[Place] = sorted(folder.iterdir(), key=str)
    products = {
        path.name: describe_product(path)
        for path in inside
        if not path.name.startswith(".") and path.is_dir() and is_complete(path)
    }
    stages = [_stage(folder, stage, products, first=not number) for number, stage in enumerate(key.get("stages", []))]
    found = holder(folder)
    held = None if found is None else holder_text(found)
    return {**key, "stages": stages, "products": products, "holder": held, "next": _next(stages, held)}


def describe_product(path: Place) -> dict[str, dict[str, Any]] | None:
    """Shape, dtype and chunks of the arrays of a product by name, as JSON; None where its description is damaged."""
    try:
        with reading("its description"):
            group = zarr.open_group(zarr_place(path), mode="r")
            if not group.attrs.get("daskcluster"):  # a model has its own digest
                check_digest(group.attrs.asdict(), "its description")
            return {
                name: {"shape": list(array.shape), "dtype": str(array.dtype), "chunks": list(array.chunks)}
                for name, array in sorted(group.arrays())
            }
    except Damage:
        return None


def _stage(folder: Place, stage: Mapping[str, Any], products: Mapping[str, Any], *, first: bool) -> dict[str, Any]:
    names = list(stage["products"])
    grows = {name: found for name in names if name not in products and (found := _grown(folder, name))}
    if first:  # its passes over the input are kept where this tells whether it changed
        for path in folder.glob(f"{SCAN}*{PARTS}"):
            grows["the input"] = _parts(path)
    complete = [name for name in names if products.get(name) is not None]
    return {"title": stage["title"], "products": names, "complete": complete, "grows": grows}


def _grown(folder: Place, name: str) -> dict[str, int]:
    """How far a product is that is not complete; empty where nothing is there."""
    path = folder / f".{name}{PARTS}"
    try:
        records = Records(path)
        if "rows" not in records:
            return describe_parts(path, FAN_IN)
        form = records.get("rows")
    except (OSError, ValueError, KeyError):  # not begun, or just being written anew or removed
        return {}
    return {"done": len(records) - 1, "blocks": -(-form["shape"][0] // form["chunks"][0])}


def _parts(path: Place) -> dict[str, int]:
    try:
        return describe_parts(path, FAN_IN)
    except (OSError, ValueError, KeyError):  # just being written anew, or removed
        return {}


def _next(stages: list[dict[str, Any]], held: str | None) -> str:
    """What the next run does, in words."""
    if held is not None:
        return f"waits: {held} is writing"
    begun = [number for number, stage in enumerate(stages) if stage["complete"] or stage["grows"]]
    if not begun:
        return "begins"
    stage = stages[begun[-1]]
    if growth_text(stage["grows"]):
        return f"goes on in {stage['title']!r}: {growth_text(stage['grows'])}"
    if len(stage["complete"]) < len(stage["products"]):
        return f"goes on in {stage['title']!r}: {len(stage['complete'])} of {len(stage['products'])} products"
    if begun[-1] + 1 < len(stages):
        return f"goes on with {stages[begun[-1] + 1]['title']!r}"
    return "computes nothing: all products are there"


def growth_text(grows: Mapping[str, Mapping[str, int]]) -> str:
    """What grows, in words; empty where nothing does."""
    texts = []
    for name, found in grows.items():
        counts = []
        if found.get("passes") and name != "the input":
            counts.append(f"{found['passes']} passes")
        if "blocks" in found:
            counts.append(f"{found['done']} of {found['blocks']} blocks")
        if counts:
            texts.append(" and ".join(counts) + (f" of {name}" if len(grows) > 1 else ""))
    return ", ".join(texts)


def resumption(folder: Place) -> str:
    """One line about what a run finds at its start: "nearest representatives 37 of 153 blocks"."""
    found = describe_run(folder)
    stages = found["stages"]
    n_complete = sum(bool(stage["complete"]) for stage in stages)
    texts = [f"{stage['title']} {text}" for stage in stages if (text := growth_text(stage["grows"]))]
    if n_complete:
        n_keeping = sum(bool(stage["products"]) for stage in stages)
        texts.insert(0, f"products of {n_complete} of {n_keeping} stages")
    return ", ".join(texts) or "nothing is kept yet"
