"""``python -m daskcluster.cli``, the same as ``python -m daskcluster``."""

from __future__ import annotations

from . import main

if __name__ == "__main__":
    main(prog_name="daskcluster")
