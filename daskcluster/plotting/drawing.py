"""What all pictures share: axes, colours of labels, legends, and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLOCK_ROWS",
    "MOST_NAMED",
    "PALETTE",
    "UNLABELED",
    "add_legend",
    "check_labels_given",
    "colors_of",
    "have_long_names",
    "how_many",
    "is_spectral",
    "new_axes",
    "short_count",
    "stacked_axes",
]

#: Colours that are told apart on white, by the colour-blind too: Okabe and Ito's eight (2008), then the farthest from
#: all before in OKLab, as seen by all and with deuteranopia and protanopia (Machado et al., 2009), at their nearest.
PALETTE = [
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#1a1a1a",
    "#f0e442",
    "#3d2400",
    "#000086",
    "#6d4949",
    "#0000ff",
    "#24003d",
    "#6186ff",
    "#c2e7b6",
    "#4924b6",
    "#b6dbff",
    "#243149",
    "#613d79",
    "#6d6d79",
    "#553d00",
    "#aa4918",
    "#ffb66d",
    "#006de7",
]
#: Colour of rows that belong to no cluster, label -1.
UNLABELED = "#b8b8b8"
#: Legends and marks on every cluster are drawn up to so many clusters.
MOST_NAMED = 20
#: Rows of an array in memory that are counted at a time.
BLOCK_ROWS = 2**20


def new_axes(width: float, height: float) -> Axes:
    """Axes of a new figure, in inches; raises ImportError, and says what to install, without matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'daskcluster[plot]'") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def stacked_axes(number: int) -> Any:
    """Axes of a new figure, one below the other."""
    import matplotlib.pyplot as plt

    return plt.subplots(number, 1, sharex=True, figsize=(6.4, 2.3 * number), layout="constrained")[1]


def add_legend(axes: Axes, names: Array) -> None:
    """Name the labels beside the axes, where they are few."""
    if len(names) > MOST_NAMED:
        return
    handles = [
        axes.plot([], [], marker="o", linestyle="", markersize=6, color=color, label=str(name))[0]
        for name, color in zip(names, colors_of(names), strict=True)
    ]
    axes.legend(handles=handles, title="label", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def how_many(names: Array) -> str:
    """Say how many clusters there are; label -1 is none."""
    unlabeled = int(np.count_nonzero(_is_unlabeled(names)))
    n_clusters = len(names) - unlabeled
    return f"{n_clusters:,} cluster{'s' * (n_clusters != 1)}{' and -1' * unlabeled}"


def _is_unlabeled(names: Array) -> NDArray[np.bool_]:
    return np.asarray(names == -1) if names.dtype.kind in "if" else np.zeros(len(names), bool)


def colors_of(names: Array) -> NDArray[np.float64]:
    """Colour (k, 3) of every label: by its value if labels are small and not negative, else by its rank."""
    unlabeled = _is_unlabeled(names)
    places = np.cumsum(~unlabeled) - 1
    if names.dtype.kind in "biu":
        numbered = names[~unlabeled].astype(object)
        if numbered.size and numbered.min() >= 0 and numbered.max() < 10 * len(PALETTE):
            places[~unlabeled] = numbered
    chosen = [_rgb(UNLABELED) if none else _color(int(i)) for i, none in zip(places, unlabeled, strict=True)]
    return np.array(chosen).reshape(-1, 3)


def _color(place: int) -> tuple[float, float, float]:
    """The palette, then the palette again in other lightness."""
    turn, i = divmod(place, len(PALETTE))
    red, green, blue = _rgb(PALETTE[i])
    if turn == 0:
        return red, green, blue
    strength = 0.75 ** ((turn + 1) // 2)
    target = float(turn % 2)  # towards white, then towards black
    red, green, blue = (target + (value - target) * strength for value in (red, green, blue))
    return red, green, blue


def _rgb(code: str) -> tuple[float, float, float]:
    return int(code[1:3], 16) / 255, int(code[3:5], 16) / 255, int(code[5:7], 16) / 255


def short_count(count: int) -> str:
    """A count in at most four figures: 950, 12.3k, 4.56M."""
    value = float(count)
    for suffix in ("", "k", "M", "G"):
        if value < 999.5 or suffix == "G":
            break
        value /= 1000
    return f"{count}" if suffix == "" else f"{value:.3g}{suffix}"


def have_long_names(names: Array) -> bool:
    """Whether a label takes more than three letters."""
    return max(len(str(name)) for name in names) > 3


def check_labels_given(function: str, **arrays: Any) -> None:
    """Say which picture is for an estimator, where one stands in place of an array."""
    for name, value in arrays.items():
        if hasattr(value, "get_params"):
            kind = type(value).__name__
            if name == "X":
                raise TypeError(
                    f"X of {function} must be rows, got a {kind}: give the rows that it labels, and its labels_"
                )
            way = "plot_eigenvalues draws the model itself" if is_spectral(value) else "no eigenvalues are in it"
            raise TypeError(
                f"{name} of {function} must be an array, got a {kind}: give {function} the model's labels_ "
                f"or predict(X); {way}"
            )


def is_spectral(model: Any) -> bool:
    """Whether a model has eigenvalues, or will have when it is fitted."""
    return hasattr(model, "eigenvalues_") or "eigenvalues_" in getattr(model, "_fitted_names", ())
