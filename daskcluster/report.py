"""One page about a fitted model: what was done, what came out, what it took, and how to load it again.

The page is one HTML file: pictures are inside it, it asks nothing of the network and runs no script.
"""

from __future__ import annotations

import base64
import io
import platform
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

import dask.array as da
import numpy as np
from dask.utils import format_bytes

from .files import atomic_path, check_output
from .io.rasters import grid_rows
from .markup import html_lines, html_table
from .metrics.contingency import count_labels
from .typing import ArrayInput, PathInput

__all__ = ["html_outcome", "write_report", "write_run_report"]

#: Packages whose versions decide what comes out.
PACKAGES = ("daskcluster", "dask", "distributed", "zarr", "numpy", "numba", "scipy", "scikit-learn")
#: Clusters that are listed with their sizes on a page, and in a notebook.
MOST_LISTED = 50
MOST_SHOWN = 12


def write_report(
    path: PathInput,
    model: Any,
    *,
    X: ArrayInput | None = None,
    labels: ArrayInput | None = None,
    y: ArrayInput | None = None,
    title: str | None = None,
    model_path: PathInput | None = None,
    overwrite: bool = False,
) -> None:
    """Write the page of a fitted model; see `Clusterer.report`."""
    check_output(path, overwrite=overwrite, kind="file")  # before anything is computed
    labels = getattr(model, "labels_", None) if labels is None else labels
    grid = labels if getattr(labels, "ndim", 1) == 2 else None
    X, labels, y = _rows(X, labels), _column(labels), _column(y)
    title = f"{type(model).__name__}: {model.n_clusters_} clusters" if title is None else title
    record = getattr(model, "_record", None)
    sections = [
        ("What came out", _outcome(model, record, labels)),
        ("Pictures", _pictures(model, X, labels, y, grid)),
        ("Scores against given classes", _scores(y, labels)),
        ("What it took", _costs(record)),
        ("Parameters", _table(("parameter", "value"), _parameters(model))),
        ("Load it again", _loading(model, model_path)),
        ("Versions", _table(("package", "version"), _versions())),
    ]
    _write_page(path, title, sections, overwrite)


def write_run_report(
    path: PathInput,
    run: PathInput,
    about: Mapping[str, Any],
    *,
    X: ArrayInput | None = None,
    labels: ArrayInput | None = None,
    y: ArrayInput | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the page of a named store: what `describe_run` says of it, and its labels if it has them.

    Parameters
    ----------
    path : path
        Of the page.
    run : path
        Of the store.
    about : mapping
        What `describe_run` says.
    X, labels, y, title, overwrite
        As of `Clusterer.report`; `labels` are by default those that the run keeps.

    Raises
    ------
    FileExistsError
        If `path` exists and `overwrite` is false, or it is no file.
    """
    check_output(path, overwrite=overwrite, kind="file")
    kept = about["products"].get("labels") or {}
    if labels is None and "rows" in kept:
        labels = f"{run}/labels/rows"
    method, parameters = str(about.get("method")), {**about.get("parameters", {}), "random_state": about.get("seed")}
    facts = [("the next run", str(about["next"]))]
    if "rows" in kept:
        facts.insert(0, ("rows", f"{kept['rows']['shape'][0]:,}"))
    stages = [
        (each["title"], f"{len(each['complete'])} of {len(each['products'])}", ", ".join(each["complete"]))
        for each in about["stages"]
    ]
    products = [
        (product, name, " x ".join(f"{length:,}" for length in each["shape"]), each["dtype"])
        for product, arrays in about["products"].items()
        for name, each in (arrays or {}).items()
    ]
    plain = all(isinstance(value, int | float | str | None) for value in parameters.values())
    said = sorted((name, repr(value)) for name, value in parameters.items())
    given = ", ".join([*(f"{name}={value}" for name, value in said), f"storage={str(run)!r}"])
    code = f"import daskcluster as dc\n\nmodel = dc.{method}({given}).fit(X)  # the rows of the run\n"
    sections = [
        ("What came out", _table(("figure", "value"), facts)),
        ("Sizes", "" if labels is None else _wide(_sizes(labels, MOST_LISTED))),
        ("Pictures", _pictures(None, X, labels, y, None)),
        ("Scores against given classes", _scores(y, labels)),
        ("Stages", _table(("stage", "products", "complete"), stages)),
        ("Products", _table(("product", "array", "shape", "dtype"), products) if products else ""),
        ("Parameters", _table(("parameter", "value"), [(name, _short(value)) for name, value in said])),
        ("Go on with it", f'<pre tabindex="0"><code>{escape(code)}</code></pre>' if plain else ""),
        ("Versions", _table(("package", "version"), _versions())),
    ]
    _write_page(path, f"{method}: the run in {run}" if title is None else title, sections, overwrite)


def _rows(X: Any, labels: Any) -> Any:
    """Rows of a scene, in the order in which labels on its grid are a column; what has no dimensions, as it is."""
    found = None if X is None else grid_rows(X, getattr(labels, "dims", None), None)
    return X if found is None else found.rows


def _write_page(path: PathInput, title: str, sections: Iterable[tuple[str, str]], overwrite: bool) -> None:
    body = "\n".join(f"<section><h2>{escape(head)}</h2>\n{text}</section>" for head, text in sections if text)
    page = _PAGE.format(title=escape(title), style=_STYLE, body=body)
    with atomic_path(path, overwrite=overwrite, kind="file") as temporary:
        temporary.write_bytes(page.encode("utf-8"))


def _column(values: Any) -> Any:
    """Labels (n,) of those on a grid; what has one dimension, or none that is known, as it is."""
    return getattr(values, "data", values).ravel() if getattr(values, "ndim", 1) > 1 else values


def html_outcome(model: Any) -> str:
    """What a fit found and took, for a notebook; nothing is computed, so sizes of lazy labels are not told."""
    record, labels = getattr(model, "_record", None), getattr(model, "labels_", None)
    facts = _facts(model, record)
    sizes = ""
    if isinstance(getattr(labels, "data", labels), da.Array):  # a DataArray has its array there
        facts.append(("labels", "lazy; model.report counts them"))
    elif labels is not None:
        sizes = _sizes(_column(np.asarray(labels)), MOST_SHOWN)
    if record is not None and record.seconds:
        facts.append(("time of all stages", f"{_total_seconds(record):.2f} s"))
    if record is not None and record.plan is not None:
        facts.append(("peak memory, planned", format_bytes(record.plan.peak_bytes)))
        if record.peak_bytes:
            facts.append(("peak memory, this process since it began", format_bytes(record.peak_bytes)))
    return html_table(facts, caption="What came out") + sizes


# -- sections --------------------------------------------------------------------------------------------------------


def _outcome(model: Any, record: Any, labels: Any) -> str:
    text = _table(("figure", "value"), _facts(model, record))
    return text if labels is None else text + _wide(_sizes(labels, MOST_LISTED))


def _facts(model: Any, record: Any) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if record is not None:
        facts.append(("rows", f"{record.n_samples:,}"))
    facts.append(("features", f"{model.n_features_in_:,}"))
    asked = "" if model.n_clusters_ == model.n_clusters else f", {model.n_clusters} asked for"
    facts.append(("clusters", f"{model.n_clusters_}{asked}"))
    for name, what in (("inertia_", "inertia"), ("n_iter_", "passes of the iteration")):
        value = getattr(model, name, None)
        if isinstance(value, int | float):
            facts.append((what, f"{value:,.6g}"))
    return facts


def _sizes(labels: Any, most: int) -> str:
    """The largest clusters of so many at most."""
    names, counts = count_labels(labels)
    total = int(counts.sum())
    order = np.argsort(-counts, kind="stable")
    rows = [
        (
            "no cluster" if names[place] == -1 else str(names[place]),
            f"{counts[place]:,}",
            f"{counts[place] / total:.2%}",
        )
        for place in order[:most]
    ]
    rest = html_lines([f"{len(order) - most} smaller ones are not listed."]) if len(order) > most else ""
    return html_table(rows, ("cluster", "rows", "share"), "Sizes, the largest first") + rest


def _pictures(model: Any, X: Any, labels: Any, y: Any, grid: Any) -> str:
    from . import plotting

    drawn: list[tuple[Any, ...]] = []
    if grid is not None:
        drawn.append(("Map of the clusters", plotting.plot_label_map, grid))
    if X is not None and labels is not None:
        text = "Rows in the plane of their first two features, coloured by cluster"
        drawn.append((text, plotting.plot_labels, X, labels))
    if labels is not None:
        drawn.append(("Rows of each cluster", plotting.plot_cluster_sizes, labels))
    if hasattr(model, "eigenvalues_"):
        drawn.append(("Eigenvalues, and the largest relative gap", plotting.plot_eigenvalues, model))
    if y is not None and labels is not None:
        drawn.append(("Given classes against clusters", plotting.plot_contingency, y, labels))
    return "\n".join(_figure(text, draw, *arguments) for text, draw, *arguments in drawn)


def _figure(text: str, draw: Callable[..., Any], *arguments: Any) -> str:
    import matplotlib.pyplot as plt

    axes = draw(*arguments)
    data = io.BytesIO()
    axes.figure.savefig(data, format="png", dpi=110)
    plt.close(axes.figure)
    coded = base64.b64encode(data.getvalue()).decode("ascii")
    return (
        f'<figure><img src="data:image/png;base64,{coded}" alt="{escape(text)}: {escape(axes.get_title())}">'
        f"<figcaption>{escape(text)}</figcaption></figure>"
    )


def _scores(y: Any, labels: Any) -> str:
    if y is None or labels is None:
        return ""
    from . import metrics

    table = metrics.contingency_matrix(y, labels)
    names = {
        "normalized mutual information": metrics.normalized_mutual_info_from_table,
        "accuracy under the best matching": metrics.clustering_accuracy_from_table,
        "purity": metrics.purity_from_table,
        "adjusted Rand index": metrics.adjusted_rand_index_from_table,
    }
    return _table(("score", "value"), [(name, f"{float(score(table)):.4f}") for name, score in names.items()])


def _costs(record: Any) -> str:
    if record is None or not record.seconds:
        return ""
    planned = {} if record.plan is None else {stage.name: stage for stage in record.plan.stages}
    rows = [
        (title, f"{seconds:.2f} s", format_bytes(planned[title].task_bytes) if title in planned else "")
        for title, seconds in record.seconds
    ]
    rows.append(("all stages", f"{_total_seconds(record):.2f} s", ""))
    text = _table(("stage", "time", "peak of a task, planned"), rows)
    if record.plan is not None:
        text += f"<p>Planned peak memory of a process: {format_bytes(record.plan.peak_bytes)}."
        if record.peak_bytes:
            text += f" Measured, this process since it began: {format_bytes(record.peak_bytes)}."
        text += f" The input is read {record.plan.input_passes} times.</p>"
    return text


def _total_seconds(record: Any) -> float:
    return float(sum(seconds for _, seconds in record.seconds))


def _parameters(model: Any) -> Iterable[tuple[str, str]]:
    return [(name, _short(repr(value))) for name, value in sorted(model.get_params(deep=False).items())]


def _loading(model: Any, path: PathInput | None) -> str:
    shown = "model.zarr" if path is None else str(path)
    saved = "" if path is not None else f'model.save("{shown}")  # once, from the program that fitted it\n'
    use = "labels = model.predict(X_new)\n" if hasattr(model, "predict") else ""
    code = f'import daskcluster as dc\n\n{saved}model = dc.load_model("{shown}")\n{use}'
    return f'<pre tabindex="0"><code>{escape(code)}</code></pre>'


def _versions() -> Iterable[tuple[str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    rows = [("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return rows


# -- HTML ------------------------------------------------------------------------------------------------------------


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return _wide(html_table(rows, head))


def _wide(table: str) -> str:
    return f'<div class="wide" tabindex="0">{table}</div>'


def _short(text: str, most: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


_STYLE: str = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #bbb; }
table { border-collapse: collapse; margin: .8rem 0; } caption { text-align: left; font-weight: 600; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid #ddd; font-weight: 400;
         vertical-align: top; }
thead th { font-weight: 600; } td { font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
figcaption { color: #444; } pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; }
"""

_PAGE: str = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""
