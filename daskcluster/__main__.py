"""``python -m daskcluster``: the command line."""

from __future__ import annotations

from .cli import main

# Worker processes import this module again under another name and must not start the command once more.
if __name__ == "__main__":
    main(prog_name="daskcluster")
