"""scikit-learn's callbacks, from its version 1.9 on: a fit is a task to them, and so is each of its stages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..runtime.stages import Teller

__all__ = ["CallbackSupport", "stage_teller", "take_callbacks", "without_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # an older scikit-learn: its estimators have no `set_callbacks` either

    class CallbackSupport:  # type: ignore[no-redef]
        """Nothing to support."""

    with_callbacks = None

Estimator = TypeVar("Estimator", bound=Any)


def take_callbacks(cls: type[Any]) -> None:
    """Let the callbacks of an estimator be told when its `fit` ends, well or not."""
    if with_callbacks is not None and "fit" in cls.__dict__:
        cls.fit = with_callbacks(cls.__dict__["fit"])


def stage_teller(estimator: Any, X: Any, n_stages: int) -> Teller | None:
    """Begin a fit for the estimator's callbacks, and give what tells them of its stages.

    No callback can end a fit before its time: the next stages would have nothing to go on.
    """
    if with_callbacks is None:
        return None
    whole = estimator._init_callback_context(max_subtasks=n_stages)
    whole.call_on_fit_task_begin(estimator=estimator, X=X)

    @contextmanager
    def stage(title: str) -> Iterator[None]:
        task = whole.subcontext(task_name=title)
        task.call_on_fit_task_begin(estimator=estimator, X=X)
        yield
        task.call_on_fit_task_end(estimator=estimator, X=X)

    # The estimator is fitted by then: a copy of it needs no other attributes.
    return Teller(stage, lambda: whole.call_on_fit_task_end(estimator=estimator, X=X, reconstruction_attributes=dict))


def without_callbacks(estimator: Estimator) -> Estimator:
    """The estimator, without the callbacks that it was given: clones have those of their original."""
    if with_callbacks is not None:
        estimator.set_callbacks()
    return estimator
