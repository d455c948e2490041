"""`info`: what stands under a path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from .inputs import open_array
from .options import PATH, json_option, storage_options_option
from .rasters import describe_raster
from .report import bytes_text, show
from .running import describe_running

if TYPE_CHECKING:
    import zarr

__all__ = ["array_lines", "describe_array", "info"]

Lines = list[tuple[str, str]]


@click.command(short_help="Describe an array, a model or a store.")
@click.argument("path", metavar="PATH", type=PATH)
@storage_options_option
@json_option
def info(path: str, as_json: bool) -> None:
    """Describe what stands under PATH: a Zarr array, a model, a group, or the --storage of a run."""
    from ..files.places import KEY_FILE, place_at

    is_storage = (place_at(path) / KEY_FILE).is_file()
    result, lines = _describe_storage(path) if is_storage else _describe_node(path)
    show({"path": path, **result}, as_json, f"{result['kind']} {path}", [("kind", result["kind"]), *lines])


def _describe_node(path: str) -> tuple[dict[str, Any], Lines]:
    """Describe an array, a model or another group."""
    import zarr

    from ..files.nodes import open_node
    from ..io import model_summary

    if (raster := describe_raster(path)) is not None:
        return {"kind": "raster", **raster}, _raster_lines(raster)
    if (table := _describe_table(path)) is not None:
        return table
    node: zarr.Array[Any] | zarr.Group
    try:
        node = open_node(path)
    except (OSError, ValueError, KeyError, ImportError):
        node = open_array(path)  # raises, and says what stands there
    if isinstance(node, zarr.Array):
        about = describe_array(node)
        return {"kind": "array", **about}, array_lines(about)
    ours = node.attrs.get("daskcluster")
    if isinstance(ours, Mapping) and ours.get("kind") == "model":
        about = model_summary(path)
        return {"kind": "model", **about}, _model_lines(about)
    attributes, arrays = dict(node.attrs), _describe_arrays(node)
    lines = [(name, _array_text(about)) for name, about in arrays.items()]
    return {"kind": "group", "attributes": attributes, "arrays": arrays}, lines + _attribute_lines(attributes)


def _describe_table(path: str) -> tuple[dict[str, Any], Lines] | None:
    """Describe a file of rows that is no Zarr array; None where there is none."""
    from ..io.tables import open_table

    table = open_table(path, sparse=True)
    if table is None:
        return None
    shape, dtype = list(map(int, table.array.shape)), str(table.array.dtype)
    lines = [("shape", _shape_text(shape)), ("dtype", dtype)]
    if table.columns is not None:
        lines.append(("columns", ", ".join(table.columns)))
    return {"kind": "file of rows", "shape": shape, "dtype": dtype, "columns": table.columns}, lines


def _raster_lines(about: Mapping[str, Any]) -> Lines:
    """Show what `describe_raster` says."""
    lines = [("dimensions", ", ".join(f"{dim} {length:,}" for dim, length in about["dims"].items()))]
    lines.append(("coordinates", ", ".join(about["coordinates"]) or "none"))
    for name, each in about["variables"].items():
        chunks = "" if each["chunks"] is None else f", chunks {_shape_text(each['chunks'])}"
        lines.append((name, f"({', '.join(each['dims'])}) {_array_text(each)}{chunks}"))
        lines += [(f"  {key}", value) for key, value in _attribute_lines(each["attributes"])]
    unclear = "not clear: a fit needs --variable, --sample-dims or --feature-dim"
    lines.append(("rows of a fit", unclear if about["shape"] is None else _shape_text(about["shape"])))
    return lines


def describe_array(array: zarr.Array[Any]) -> dict[str, Any]:
    """Describe a Zarr array, as JSON takes it."""
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "chunks": list(array.chunks),
        "shards": None if array.shards is None else list(array.shards),
        "bytes": array.nbytes,
        "bytes_stored": array.nbytes_stored(),
        "attributes": array.attrs.asdict(),
    }


def array_lines(about: Mapping[str, Any]) -> Lines:
    """Show what `describe_array` says."""
    lines = [(name, _shape_text(about[name])) for name in ("shape", "chunks", "shards") if about[name] is not None]
    lines.insert(1, ("dtype", about["dtype"]))
    lines.append(("size", f"{bytes_text(about['bytes'])}, stored in {bytes_text(about['bytes_stored'])}"))
    return lines + _attribute_lines(about["attributes"])


def _attribute_lines(attributes: Mapping[str, Any]) -> Lines:
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in attributes.items()]


def _shape_text(lengths: Sequence[int]) -> str:
    return " x ".join(f"{length:,}" for length in lengths) or "scalar"


def _array_text(about: Mapping[str, Any]) -> str:
    return f"{_shape_text(about['shape'])} {about['dtype']}"


def _model_lines(about: Mapping[str, Any]) -> Lines:
    """Show what `model_summary` says."""
    steps = [step["$tuple"] for step in about["parameters"].get("steps", [])]
    parts = [(name, part["$estimator"]) for name, part in steps] or [("class", about)]
    lines = [("format version", str(about["format_version"]))]
    for name, part in parts:
        lines.append((name, part["class"]))
        lines += _parameter_lines(part["parameters"])
    lines += [(name, _array_text(array)) for name, array in about["arrays"].items()]
    lines += [("note", note) for note in about.get("notes", [])]
    lines.append(("versions", ", ".join(f"{name} {version}" for name, version in about["versions"].items())))
    return lines


def _parameter_lines(parameters: Mapping[str, Any]) -> Lines:
    return [(f"  {name}", json.dumps(value)) for name, value in parameters.items()]


def _describe_storage(path: str) -> tuple[dict[str, Any], Lines]:
    """Describe a named store: what made it, how far its stages are, and which products it has."""
    from ..files import place_at
    from ..runtime.standing import describe_run

    about = describe_run(place_at(path))
    lines = [("method", str(about.get("method"))), *_parameter_lines(about.get("parameters", {}))]
    lines += [_stage_line(stage) for stage in about["stages"]]
    lines.append(("the next run", about["next"]))
    for product, arrays in about["products"].items():
        if arrays is None:
            lines.append((product, "damaged; the next run makes it again"))
            continue
        lines.append((product, "complete"))
        lines += [(f"  {name}", _array_text(array)) for name, array in arrays.items()]
    running, running_lines = describe_running(place_at(path))
    return {"kind": "storage", **about, "running": running}, lines + running_lines


def _stage_line(stage: Mapping[str, Any]) -> tuple[str, str]:
    """Say how far a stage of a run is: by the products that it keeps, of which some runs need only a part."""
    from ..runtime.standing import growth_text

    wanted, there = stage["products"], stage["complete"]
    text = f"{len(there)} of {len(wanted)} products" if wanted else "keeps nothing"
    if stage["grows"] and not wanted:
        text = "complete, as long as the input stays"
    text += f": {', '.join(there)}" if there and len(wanted) <= 4 else ""
    growth = growth_text(stage["grows"])
    if growth:
        text = growth if not wanted else f"{text}; {growth}"
    return (f"stage {stage['title']}", text)


def _describe_arrays(group: zarr.Group) -> dict[str, Any]:
    """Describe the arrays of a group, by their paths inside it."""
    import zarr

    return {
        name: {"shape": list(node.shape), "dtype": str(node.dtype), "chunks": list(node.chunks)}
        for name, node in sorted(group.members(max_depth=None), key=lambda member: member[0])
        if isinstance(node, zarr.Array)
    }
