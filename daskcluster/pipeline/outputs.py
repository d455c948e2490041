"""The end of a fit: outputs with an entry a row, handed out as the input came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da

from ..io.inputs import Rows, follow_input
from ..runtime.execution import active_client, compute
from ..runtime.forecast import Cost, Sizes
from ..runtime.stages import Run, Stage

__all__ = ["Label", "hand_out"]


@dataclass(frozen=True)
class Label(Stage):
    """Compute, hold and hand out what a fit says of every row.

    Attributes
    ----------
    task_row_bytes : int
        What a task needs for each row of a tile besides the edges: its points, and distances to centres.
    outputs : tuple of str
        Their names, in a named store too; 4 bytes a row each.
    over_input : bool
        Whether they are made from the input, and not from what is held.
    more_row_bytes : int
        Bytes a row of further outputs that are handed out in memory for rows in memory.
    """

    title = "labels"
    task_row_bytes: int
    outputs: tuple[str, ...] = ("labels",)
    over_input: bool = False
    more_row_bytes: int = 0

    def __call__(
        self, run: Run, lazy: Mapping[str, da.Array], again: Callable[[str], da.Array] | None = None
    ) -> dict[str, Any]:
        """Outputs by name.

        Parameters
        ----------
        run : Run
        lazy : mapping of dask arrays (n, ...)
        again : callable, optional
            Name of an output -> the same as the fitted model makes it anew from the rows.

        Returns
        -------
        dict
            NumPy for rows in memory; else lazy, and held: as other products are, or, on a cluster without a named
            store, as `Results` says.
        """
        return {
            name: self._keep(run, name, array, None if again is None else partial(again, name))
            for name, array in lazy.items()
        }

    def _keep(self, run: Run, name: str, array: da.Array, again: Callable[[], da.Array] | None) -> Any:
        """Compute, hold and hand out one output; `again` gives it as the fitted model makes it from the rows."""
        if run.products.named or (run.rows.chunked and active_client() is None):
            array = run.products.rows(name, array)[0]
        elif run.rows.chunked:
            array = run.results.keep(name, array, again)
        return hand_out(array, run.rows)

    def cost(self, sizes: Sizes) -> Cost:
        """A pass for each output; 4 bytes a row stay, and as many again where outputs are handed out in memory."""
        times, n_bytes = len(self.outputs), 4 * sizes.n_samples
        tile = sizes.tile_rows * (20 * sizes.n_edges + self.task_row_bytes + 16)
        task = sizes.block_rows * 8 + tile
        more: dict[str, Any] = {
            "written_bytes": times * n_bytes,
            "held": (n_bytes,) * times,
            "eager_bytes": 2 * (n_bytes * times + self.more_row_bytes * sizes.n_samples) if sizes.in_memory else 0,
        }
        if self.over_input:
            return sizes.over_input(task + sizes.tile_rows * sizes.prepared_bytes, times=times, **more)
        return sizes.over_held(task, times=times, **more)

    @property
    def kept(self) -> tuple[str, ...]:
        """The outputs."""
        return self.outputs


def hand_out(array: da.Array, rows: Rows) -> Any:
    """NumPy for NumPy; for chunked input lazy, in its row chunks."""
    return follow_input(array, rows) if rows.chunked else compute(array)[0]
