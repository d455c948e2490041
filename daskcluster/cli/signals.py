"""A signal that ends a command."""

from __future__ import annotations

import signal

__all__ = ["Ended"]


class Ended(KeyboardInterrupt):
    """A signal that ends the command; everything cleans up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number
