"""Two fits at once on one named store: the second says who holds it, and a killed fit holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.files.locks import LOCK_FILE
from daskcluster.pipeline.cut import Cut
from tests.cli.calls import fail

ROWS = np.random.default_rng(0).normal(size=(300, 2))


def model(storage: Path) -> Any:
    return dc.USPEC(3, n_representatives=30, random_state=0, storage=storage)


def in_the_cut(monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Do something in the middle of a fit, with the products of the first stages there."""
    cut = Cut.__call__

    def acting(*arguments: Any) -> Any:
        monkeypatch.setattr(Cut, "__call__", cut)
        action()
        return cut(*arguments)

    monkeypatch.setattr(Cut, "__call__", acting)


def test_the_second_fit_says_who_holds_the_store(tmp_path, monkeypatch):
    store, refused = tmp_path / "run", []

    def second() -> None:
        assert (store / LOCK_FILE).exists()
        with pytest.raises(dc.StorageBusyError) as error:
            model(store).fit(ROWS)
        refused.append(str(error.value))

    in_the_cut(monkeypatch, second)
    first = model(store).fit(ROWS)
    assert f"storage {str(store)!r} is in use by this process ({os.getpid()} on " in refused[0]
    assert ", since 20" in refused[0]
    assert not (store / LOCK_FILE).exists()
    assert np.array_equal(model(store).fit(ROWS).labels_, first.labels_)


def test_the_command_line_says_so_and_advises_nothing_harmful(tmp_path, monkeypatch):
    zarr.create_array(str(tmp_path / "x.zarr"), data=ROWS)
    said: list[str] = []
    command = ["fit", tmp_path / "x.zarr", "-k", 3, "--storage", tmp_path / "run", "--labels", tmp_path / "l.zarr"]
    in_the_cut(monkeypatch, lambda: said.append(fail(1, *command)))
    model(tmp_path / "run").fit(ROWS)
    assert said[0].startswith("Error: storage")
    assert f"in use by this process ({os.getpid()}" in said[0]
    assert "overwrite" not in said[0]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_fit_that_ends_early_gives_the_store_free(error, tmp_path, monkeypatch):
    def fail_now() -> None:
        raise error("stop")

    in_the_cut(monkeypatch, fail_now)
    with pytest.raises(error, match="stop"):
        model(tmp_path / "run").fit(ROWS)
    assert not list((tmp_path / "run").glob(".*"))
    assert np.array_equal(model(tmp_path / "run").fit(ROWS).labels_, model(tmp_path / "new").fit(ROWS).labels_)


KILLED = """
    import os, signal, sys
    import numpy as np
    import daskcluster as dc
    from daskcluster.pipeline.cut import Cut

    Cut.__call__ = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
    dc.USPEC(3, n_representatives=30, random_state=0, storage=sys.argv[2]).fit(np.load(sys.argv[1]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_a_killed_fit_goes_on_at_once(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    code = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "x.npy"), str(tmp_path / "run")]
    # Not waited for: a dead process that its parent has not noticed is gone as well.
    process = subprocess.Popen(code, cwd=Path(__file__).parents[2])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert (tmp_path / "run" / LOCK_FILE).exists()
    assert np.array_equal(model(tmp_path / "run").fit(ROWS).labels_, model(tmp_path / "new").fit(ROWS).labels_)
    assert not list((tmp_path / "run").glob(".*"))
    assert process.wait() == -signal.SIGKILL
