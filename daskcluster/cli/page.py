"""`report`: one page about a saved model, or about the named store of a run."""

from __future__ import annotations

import click

from .cluster import Job, job_options
from .options import PATH
from .outputs import check_outputs
from .report import show

__all__ = ["report"]


@click.command(short_help="Write one HTML page about a model or a run.")
@click.argument("model", metavar="RUN", type=PATH)
@click.argument("page", metavar="PAGE.html", type=PATH)
@click.option("--labels", type=PATH, metavar="LABELS.zarr", help="The labels of the fit: their sizes.")
@click.option("--rows", type=PATH, metavar="X.zarr", help="The rows, for a picture; needs --labels.")
@click.option("--true", type=PATH, metavar="TRUE.zarr", help="Classes of the rows, for scores; needs --labels.")
@click.option("--title", help="Of the page.")
@job_options(writes=True)
def report(
    model: str, page: str, labels: str | None, rows: str | None, true: str | None, title: str | None, job: Job
) -> None:
    """Write what there is to say of RUN into PAGE.html: of a model that `fit` stored, or of the --storage of a run.

    A run that keeps its labels needs no --labels. One file with its pictures in it, which asks nothing of the network.
    """
    from ..files.places import KEY_FILE, place_at
    from ..io import load_model
    from ..report import write_report, write_run_report

    is_storage = (place_at(model) / KEY_FILE).is_file()
    if labels is None and not is_storage and (rows is not None or true is not None):
        raise click.UsageError("--rows and --true need --labels, the model's labels of these rows")
    inputs = {"the model": model, "--labels": labels, "--rows": rows, "--true": true}
    check_outputs(job.overwrite, inputs, {"report": page})
    if is_storage:
        from ..runtime.standing import describe_run

        about = describe_run(place_at(model))
        with job.running():
            write_run_report(page, model, about, X=rows, y=true, labels=labels, title=title, overwrite=job.overwrite)
        show({"command": "report", "page": page}, job.as_json, f"the run in {model}", [("page", page)])
        return
    fitted = load_model(model)
    with job.running():
        write_report(
            page, fitted, X=rows, y=true, labels=labels, title=title, model_path=model, overwrite=job.overwrite
        )
    show({"command": "report", "page": page}, job.as_json, f"{type(fitted).__name__} of {model}", [("page", page)])
