"""`report`: one page about a saved model."""

from __future__ import annotations

import click

from .cluster import Job, job_options
from .options import PATH
from .outputs import check_outputs
from .report import show

__all__ = ["report"]


@click.command(short_help="Write one HTML page about a model.")
@click.argument("model", metavar="MODEL.zarr", type=PATH)
@click.argument("page", metavar="PAGE.html", type=PATH)
@click.option("--labels", type=PATH, metavar="LABELS.zarr", help="Labels that the model gave its rows: their sizes.")
@click.option("--rows", type=PATH, metavar="X.zarr", help="The rows, for a picture; needs --labels.")
@click.option("--true", type=PATH, metavar="TRUE.zarr", help="Classes of the rows, for scores; needs --labels.")
@click.option("--title", help="Of the page.")
@job_options(writes=True)
def report(
    model: str, page: str, labels: str | None, rows: str | None, true: str | None, title: str | None, job: Job
) -> None:
    """Write what there is to say of the model MODEL.zarr into PAGE.html.

    One file with its pictures in it, which asks nothing of the network.
    """
    from ..io import load_model
    from ..report import write_report

    if labels is None and (rows is not None or true is not None):
        raise click.UsageError("--rows and --true need --labels, the model's labels of these rows")
    inputs = {"the model": model, "--labels": labels, "--rows": rows, "--true": true}
    check_outputs(job.overwrite, inputs, {"report": page})
    fitted = load_model(model)
    with job.running():
        write_report(
            page, fitted, X=rows, y=true, labels=labels, title=title, model_path=model, overwrite=job.overwrite
        )
    show({"command": "report", "page": page}, job.as_json, f"{type(fitted).__name__} of {model}", [("page", page)])
