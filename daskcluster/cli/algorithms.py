"""Which estimator: its options, as a table from which the command line and its help are made."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from .options import COUNT_FROM_1, PATH, ParamType, clusters_option, combined, seed_option

__all__ = [
    "ALGORITHMS",
    "CONSENSUS",
    "CONSENSUS_PARAMETERS",
    "CONSENSUS_VALUES",
    "ESTIMATOR_OPTIONS",
    "ChosenEstimator",
    "check_consensus_option",
    "estimator_options",
]

ALGORITHMS = {
    "uspec": "USPEC",
    "usenc": "USENC",
    "ensemble": "Ensemble",
    "fastcsc": "FastCSC",
    "kmeans": "KMeans",
}
CONSENSUS = {
    "cut": "BipartiteCut",
    "sec": "SEC",
    "kcc": "KCC",
    "eac": "EAC",
    "ptgp": "PTGP",
    "ecpcs": "ECPCS",
    "isec": "ISEC",
}
#: Parameter of a consensus that an option sets -> those that have it.
CONSENSUS_PARAMETERS = {
    "weights": {"cut", "eac"},
    "linkage": {"eac"},
    "max_distinct": {"eac", "ptgp"},
    "utility": {"kcc"},
    "n_components": {"sec"},
    "n_representatives": {"isec"},
}
#: Parameter whose values differ from consensus to consensus -> values of each.
CONSENSUS_VALUES = {"weights": {"cut": ("none", "local"), "eac": ("none", "local", "wct")}}


@dataclass(frozen=True)
class EstimatorOption:
    """An option that sets a parameter of an estimator; its default is the estimator's own."""

    flag: str
    parameter: str  # of a consensus inside the estimator: "consensus__" and its own
    type: ParamType | None  # None for an option without a value, which means True
    help: str
    defaults: Mapping[str, Any]  # by algorithm; the others do not have the parameter

    def check(self, value: Any, algorithm: str, consensus: str) -> None:
        """Refuse the option for an algorithm, or a consensus inside it, that does not have the parameter."""
        if algorithm not in self.defaults:
            raise click.UsageError(f"{self.flag} does not apply to --algorithm {algorithm}")
        inside = self.parameter.removeprefix("consensus__")
        if inside != self.parameter:
            check_consensus_option(self.flag, inside, value, "--consensus", consensus)

    def click_option(self) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return the option for click."""
        if self.type is None:
            return click.option(self.flag, self.parameter, is_flag=True, default=None, help=self.help)
        return click.option(
            self.flag,
            self.parameter,
            type=self.type,
            default=None,
            help=self.help,
            show_default=self._default_text(),
            metavar={click.IntRange: "N", click.FloatRange: "X"}.get(type(self.type)),
        )

    def _default_text(self) -> str:
        """Return the defaults as help shows them."""
        values = {name: _text(value) for name, value in self.defaults.items() if value is not None}
        if len(values) == len(ALGORITHMS) and len(set(values.values())) == 1:
            return next(iter(values.values()))
        if len(self.defaults) > 1:
            return ", ".join(f"{value} with {name}" for name, value in values.items())
        return "; ".join([*values.values(), f"{next(iter(self.defaults))} only"])


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_consensus_option(flag: str, parameter: str, value: Any, method_flag: str, method: str) -> None:
    """Refuse an option that sets a parameter which the chosen consensus does not have, or a value that it has not."""
    values = CONSENSUS_VALUES.get(parameter, {}).get(method, (value,))
    if method not in CONSENSUS_PARAMETERS[parameter]:
        raise click.UsageError(f"{flag} does not apply to {method_flag} {method}")
    if value not in values:
        raise click.UsageError(f"{flag} {value} does not apply to {method_flag} {method}")


ESTIMATOR_OPTIONS = (
    EstimatorOption(
        "--representatives",
        "n_representatives",
        COUNT_FROM_1,
        "Representatives, p.",
        {"uspec": 1000, "fastcsc": 500, "usenc": 1000},
    ),
    EstimatorOption(
        "--neighbors",
        "n_neighbors",
        COUNT_FROM_1,
        "Nearest representatives of a row, K.",
        {"uspec": 5, "fastcsc": 3, "usenc": 5},
    ),
    EstimatorOption(
        "--alpha", "alpha", click.FloatRange(min=0), "Trust in must-links against the data.", {"fastcsc": 5.0}
    ),
    EstimatorOption(
        "--direction-factor",
        "direction_factor",
        click.FloatRange(min=0),
        "Eigenvectors beyond the first K among which constraints choose, for each constrained row.",
        {"fastcsc": 0.3},
    ),
    EstimatorOption(
        "--sample-rate",
        "sample_rate",
        click.FloatRange(min=0, min_open=True, max=1),
        "Share of the rows: on which k-means runs, or that a base clusterer sees.",
        {"fastcsc": 0.1, "ensemble": 1.0},
    ),
    EstimatorOption(
        "--base-clusterings",
        "n_base_clusterings",
        COUNT_FROM_1,
        "Base clusterings of an ensemble, m.",
        {"usenc": 20, "ensemble": 20},
    ),
    EstimatorOption(
        "--graphs",
        "n_graphs",
        COUNT_FROM_1,
        "Graphs that the base clusterings share; as many as these for the paper's U-SENC.",
        {"usenc": 4},
    ),
    EstimatorOption(
        "--predict-unsampled",
        "predict_unsampled",
        None,
        "With --algorithm ensemble: rows that a base clusterer has not seen get what it predicts, not -1.",
        {"ensemble": False},
    ),
    EstimatorOption(
        "--k-range",
        "k_range",
        click.Tuple([COUNT_FROM_1, COUNT_FROM_1]),
        "Clusters of a base clustering: fewest and most; for an ensemble by default K and the root of the rows, "
        "and K - 5 and K + 4 with --base fastcsc.",
        {"usenc": (20, 60), "ensemble": None},
    ),
    EstimatorOption(
        "--base",
        "base",
        click.Choice(["uspec", "kmeans", "fastcsc"]),
        "Base clusterer of an ensemble, by default uspec.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--consensus",
        "consensus",
        click.Choice(list(CONSENSUS)),
        "Consensus of an ensemble, by default cut.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--consensus-weights",
        "consensus__weights",
        click.Choice(["none", "local", "wct"]),
        "With --consensus cut or eac: weigh base clusters by how far the others bear them out; with eac, wct: by "
        "connected triples; none by default.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--consensus-linkage",
        "consensus__linkage",
        click.Choice(["average", "complete", "single"]),
        "With --consensus eac: how clusters are compared; average by default.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--consensus-max-distinct",
        "consensus__max_distinct",
        COUNT_FROM_1,
        "With --consensus eac or ptgp: distinct rows of base labels at most; 20000 and 10000 by default.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--consensus-utility",
        "consensus__utility",
        click.Choice(["entropy", "categorical", "cosine", "lp"]),
        "With --consensus kcc: what the consensus is to tell of the base clusterings; entropy by default.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--consensus-components",
        "consensus__n_components",
        COUNT_FROM_1,
        "With --consensus sec: components of a random projection.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--consensus-representatives",
        "consensus__n_representatives",
        COUNT_FROM_1,
        "With --consensus isec: rows to learn on; all by default.",
        {"ensemble": None},
    ),
    EstimatorOption(
        "--selection",
        "selection",
        click.Choice(["hybrid", "random", "kmeans"]),
        "How representatives are chosen.",
        {"uspec": "hybrid", "fastcsc": "random", "usenc": "hybrid"},
    ),
    EstimatorOption(
        "--neighbor-search",
        "neighbors",
        click.Choice(["approximate", "exact"]),
        "How the nearest representatives are found.",
        {"uspec": "approximate", "fastcsc": "approximate", "usenc": "approximate"},
    ),
    EstimatorOption(
        "--candidate-factor",
        "candidate_factor",
        COUNT_FROM_1,
        "Candidates per representative in the hybrid selection.",
        {"uspec": 10, "fastcsc": 10, "usenc": 10},
    ),
    EstimatorOption(
        "--neighbor-factor",
        "neighbor_factor",
        COUNT_FROM_1,
        "Representatives looked at per neighbor in the approximate search.",
        {"uspec": 10, "fastcsc": 10, "usenc": 10},
    ),
    EstimatorOption(
        "--affinity",
        "affinity",
        click.Choice(["gaussian", "adaptive"]),
        "Affinity of a row and its nearest representatives.",
        {"uspec": "gaussian", "usenc": "adaptive"},
    ),
    EstimatorOption(
        "--metric",
        "metric",
        click.Choice(["euclidean", "cosine"]),
        "Distance of rows.",
        {"uspec": "euclidean", "fastcsc": "euclidean", "usenc": "euclidean", "kmeans": "euclidean"},
    ),
    EstimatorOption(
        "--init",
        "init",
        click.Choice(["k-means++", "k-means||", "random"]),
        "Starting centers of k-means.",
        {"kmeans": "k-means++"},
    ),
    EstimatorOption(
        "--n-init", "n_init", COUNT_FROM_1, "Starts of k-means.", {"uspec": 3, "fastcsc": 3, "kmeans": 1, "usenc": 3}
    ),
    EstimatorOption(
        "--max-iter",
        "max_iter",
        COUNT_FROM_1,
        "Passes of k-means, at most.",
        {"uspec": 100, "fastcsc": 100, "kmeans": 100, "usenc": 100},
    ),
    EstimatorOption(
        "--tol", "tol", click.FloatRange(min=0), "Movement of centers that ends k-means.", {"kmeans": 1e-4}
    ),
    EstimatorOption(
        "--missing",
        "missing",
        click.Choice(["raise", "label"]),
        "Rows with NaN or infinity: an error, or the label -1.",
        {name: "raise" for name in ("uspec", "fastcsc", "kmeans", "usenc", "ensemble")},
    ),
)


@dataclass(frozen=True)
class ChosenEstimator:
    """The estimator that the options name; making it imports it."""

    algorithm: str
    parameters: Mapping[str, Any]  # as the options give them; of a consensus inside: "consensus__" and its own

    def make(self, **more: Any) -> Any:
        """Make the estimator, not fitted; `more` are parameters that no option sets."""
        from .. import estimators

        own = {name: value for name, value in self.parameters.items() if "__" not in name}
        if len(own) < len(self.parameters):  # the default consensus has parameters, too, once it is named
            own.setdefault("consensus", "cut")
        for name, classes in (("base", ALGORITHMS), ("consensus", CONSENSUS)):
            if name in own:
                own[name] = getattr(estimators, classes[own[name]])()
        made = getattr(estimators, ALGORITHMS[self.algorithm])(**own, **more)
        return made.set_params(**{name: value for name, value in self.parameters.items() if "__" in name})


def estimator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose an estimator; the command gets a `ChosenEstimator` as its argument `chosen`."""

    @combined(
        clusters_option,
        click.option(
            "--algorithm",
            type=click.Choice(list(ALGORITHMS)),
            default="uspec",
            show_default=True,
            help="U-SPEC finds nonlinear clusters, Fast CSC does so with constraints, k-means finds round ones; U-SENC "
            "is an ensemble of U-SPEC, ensemble one of any.",
        ),
        *(option.click_option() for option in ESTIMATOR_OPTIONS),
        click.option(
            "--storage",
            type=PATH,
            metavar="DIR",
            help="Keep the product of each stage here, a path or URL: a killed run continues where it stopped.",
        ),
        seed_option,
    )
    @functools.wraps(command)
    def wrapped(*, clusters: int, algorithm: str, storage: str | None, seed: int, **options: Any) -> Any:
        parameters: dict[str, Any] = {"n_clusters": clusters, "random_state": seed, "storage": storage}
        for option in ESTIMATOR_OPTIONS:
            value = options.pop(option.parameter)
            if value is not None:
                option.check(value, algorithm, parameters.get("consensus", "cut"))
                parameters[option.parameter] = value
        return command(chosen=ChosenEstimator(algorithm, parameters), **options)

    return wrapped
