"""`consensus`: one labeling of many."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import click

from .algorithms import CONSENSUS, check_consensus_option
from .cluster import Job, job_options
from .inputs import open_array
from .options import COUNT_FROM_1, PATH, bundled, clusters_option, seed_option, shards_option
from .outputs import about_estimator, check_outputs, write_labels, write_rows
from .report import memory_lines, path_lines, peak_memory, seconds_text, show, size_lines

__all__ = ["ChosenConsensus", "ConsensusOutputs", "consensus"]


@dataclass(frozen=True)
class ChosenConsensus:
    """The consensus function that the options name; making it imports it."""

    clusters: int
    method: str
    weights: str | None
    linkage: str | None
    max_distinct: int | None
    utility: str | None
    components: int | None
    representatives: int | None
    storage: str | None
    seed: int

    def __post_init__(self) -> None:
        """Refuse options that the method does not have."""
        for flag, parameter, value in self._given():
            check_consensus_option(flag, parameter, value, "--method", self.method)

    def _given(self) -> list[tuple[str, str, int | str]]:
        """Return the options of one method only that were given: flag, parameter, value."""
        options: tuple[tuple[str, str, int | str | None], ...] = (
            ("--weights", "weights", self.weights),
            ("--linkage", "linkage", self.linkage),
            ("--max-distinct", "max_distinct", self.max_distinct),
            ("--utility", "utility", self.utility),
            ("--components", "n_components", self.components),
            ("--representatives", "n_representatives", self.representatives),
        )
        return [(flag, parameter, value) for flag, parameter, value in options if value is not None]

    def make(self, *, verbose: bool) -> Any:
        """Make the consensus function, not fitted."""
        from .. import estimators

        kind = getattr(estimators, CONSENSUS[self.method])
        own = {parameter: value for _, parameter, value in self._given()}
        return kind(self.clusters, random_state=self.seed, storage=self.storage, verbose=verbose, **own)


@dataclass(frozen=True)
class ConsensusOutputs:
    """Where to keep what a consensus finds."""

    labels: str
    agreement: str | None
    model: str | None


@click.command(short_help="Find the consensus of many labelings.")
@click.argument("base", metavar="LABELS.zarr", type=PATH)
@clusters_option
@click.option("--method", type=click.Choice(list(CONSENSUS)), default="cut", show_default=True, help="How.")
@click.option(
    "--weights",
    type=click.Choice(["none", "local", "wct"]),
    help="With --method cut or eac: weigh base clusters by how far the others bear them out; with eac, wct: by "
    "connected triples; none by default.",
)
@click.option(
    "--linkage",
    type=click.Choice(["average", "complete", "single"]),
    help="With --method eac: how clusters are compared; average by default.",
)
@click.option(
    "--max-distinct",
    type=COUNT_FROM_1,
    metavar="U",
    help="With --method eac or ptgp: distinct rows of labels at most; 20000 and 10000 by default.",
)
@click.option(
    "--utility",
    type=click.Choice(["entropy", "categorical", "cosine", "lp"]),
    help="With --method kcc: what the consensus is to tell of the labelings; entropy by default.",
)
@click.option(
    "--components", type=COUNT_FROM_1, metavar="RD", help="With --method sec: components of a random projection."
)
@click.option(
    "--representatives", type=COUNT_FROM_1, metavar="P", help="With --method isec: rows to learn on; all by default."
)
@click.option("--labels", type=PATH, metavar="OUT.zarr", required=True, help="Store the labels here.")
@click.option("--agreement", type=PATH, metavar="OUT.zarr", help="Store each row's agreement, 0 to 1, here.")
@click.option("--model", type=PATH, metavar="M.zarr", help="Store the model here.")
@click.option("--storage", type=PATH, metavar="DIR", help="Keep the product of each stage here, a path or URL.")
@seed_option
@shards_option
@job_options(writes=True)
@bundled("chosen", ChosenConsensus)
@bundled("outputs", ConsensusOutputs)
def consensus(base: str, chosen: ChosenConsensus, outputs: ConsensusOutputs, job: Job) -> None:
    """Find the consensus of base clusterings, a column each of the Zarr array LABELS.zarr; -1 is no label."""
    array = open_array(base)
    check_outputs(job.overwrite, {"the input": base}, {**asdict(outputs), **job.outputs()}, chosen.storage)
    estimator = chosen.make(verbose=not job.quiet)
    start = time.perf_counter()
    with job.running():
        estimator.fit(base)
        estimator.set_params(verbose=False)  # progress is this command's matter, not the model's
        about = about_estimator(estimator)
        sizes = _keep(estimator, about, outputs, job)
    result = {
        "command": "consensus",
        "n_samples": array.shape[0],
        "n_base_clusterings": array.shape[1],
        "class": about["class"],
        "parameters": about["parameters"],
        "n_clusters": int(estimator.n_clusters_),
        "cluster_sizes": sizes,
        "seconds": time.perf_counter() - start,
        **asdict(outputs),
        **peak_memory(job.cluster),
    }
    lines = [
        ("base clusterings", f"{array.shape[1]} of {array.shape[0]:,} rows"),
        ("clusters", str(result["n_clusters"])),
        *size_lines(sizes, estimator),
        ("seconds", seconds_text(result["seconds"])),
        *memory_lines(result),
        *path_lines(asdict(outputs)),
    ]
    show(result, job.as_json, f"consensus of {base}", lines)


def _keep(estimator: Any, about: dict[str, Any], outputs: ConsensusOutputs, job: Job) -> dict[str, int]:
    """Store what was asked for; return the rows of each label."""
    from ..io import save_model

    if outputs.model is not None:
        save_model(estimator, outputs.model, overwrite=job.overwrite)
    if outputs.agreement is not None:
        write_rows("agreement", estimator.agreement_, outputs.agreement, about, job)
    return write_labels(estimator.labels_, outputs.labels, about, job)
