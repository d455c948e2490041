"""Failures: one line on stderr, an exit code, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcluster.io import write_array
from tests.cli.calls import ROOT, fail, run, start, succeed, wait_for_end_of_group
from tests.slow import slowly


def test_failures_of_a_run_have_code_1_and_show_where_with_debug(stores, monkeypatch):
    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("daskcluster.cli.info.describe_array", broken)
    assert fail(1, "info", stores / "x.zarr") == (
        "Error: ZeroDivisionError: a bug (`daskcluster --debug COMMAND ...` shows where)"
    )
    assert isinstance(run("--debug", "info", stores / "x.zarr").exception, ZeroDivisionError)


def test_errors_of_libraries_are_failures_of_the_run(stores, monkeypatch):
    monkeypatch.setattr("daskcluster.cli.info.describe_array", lambda array: np.zeros(3).reshape(2))
    assert fail(1, "info", stores / "x.zarr").startswith("Error: ValueError: cannot reshape array")
    monkeypatch.setattr("daskcluster.cli.info.describe_array", lambda array: np.empty(2**55, dtype=np.int8))
    assert fail(1, "info", stores / "x.zarr").startswith("Error: out of memory")


def test_interrupt_has_code_130(stores, monkeypatch):
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("daskcluster.cli.info.describe_array", interrupted)
    assert fail(130, "info", stores / "x.zarr").startswith("Interrupted")


posix = pytest.mark.skipif(os.name != "posix", reason="sends signals")

#: Signals and what they do to a command: exit codes, and the first words of its last line.
ENDINGS = {
    # An interrupt inside code from a string makes Python end by the signal itself, which a shell shows as 130 too.
    "SIGINT": ((130, -signal.SIGINT), "Interrupted."),
    "SIGTERM": ((143,), "Ended by SIGTERM."),
    "SIGHUP": ((129,), "Ended by SIGHUP."),
}


def end_when(process: subprocess.Popen[str], ready: Callable[[], Any], name: str) -> str:
    """Send a signal to a command and all it has started, when it is as far as that; its stderr."""
    while not ready():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.killpg(process.pid, getattr(signal, name))  # as a terminal does, and a queue
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode in ENDINGS[name][0], stderr
    assert stdout == ""
    return stderr


@posix
@pytest.mark.parametrize("name", ["SIGINT", *slowly("SIGTERM", "SIGHUP")])
def test_interrupted_run_leaves_nothing(tmp_path, name):
    with start("make", "flower", tmp_path / "x.zarr", "-n", "1G", "--quiet") as process:
        stderr = end_when(process, lambda: os.listdir(tmp_path), name)
    told = f"{ENDINGS[name][1]} Unfinished outputs are removed; --storage keeps finished stages."
    assert stderr.splitlines() == [told]
    assert os.listdir(tmp_path) == []


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """Rows that take some time."""
    folder = tmp_path_factory.mktemp("large")
    write_array(da.random.default_rng(0).normal(size=(1_000_000, 8), chunks=(100_000, 8)), folder / "x.zarr")
    return folder / "x.zarr"


@pytest.fixture
def temporary(tmp_path) -> tuple[Path, dict[str, str]]:
    """An empty folder of temporary files, and the settings that have a command use it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder, {"DASK_TEMPORARY_DIRECTORY": str(folder), "TMPDIR": str(folder)}


#: What ends a command, with threads and with workers; by default as a queue ends workers; others above and below.
ENDED = [
    pytest.param(name, workers, id=f"{name}-{kind}", marks=[] if name == "SIGTERM" and workers else [pytest.mark.slow])
    for kind, workers in (("threads", []), ("workers", ["--workers", "1"]))
    for name in ENDINGS
]


@posix
@pytest.mark.parametrize(("name", "workers"), ENDED)
def test_a_fit_that_was_ended_goes_on(large, tmp_path, temporary, name, workers):
    """With the same command; meanwhile there are finished stages and nothing else, nor any process."""
    folder, settings = temporary
    fit = ["fit", large, "-k", "3", "--representatives", "500", "--seed", "0", "--labels", tmp_path / "l.zarr"]
    fit += ["--storage", tmp_path / "run", "--quiet"]
    with start(*fit, *workers, **settings) as process:
        stderr = end_when(process, lambda: list(tmp_path.glob("run/.nearest.growing/rows/c/*")), name)
    told = f"{ENDINGS[name][1]} Unfinished outputs are removed; the same command goes on where it stopped."
    assert stderr.splitlines() == [told]
    wait_for_end_of_group(process.pid)
    assert not list(folder.iterdir())
    assert not list(tmp_path.rglob("*partial*"))
    assert not list(tmp_path.glob("*l.zarr*"))
    assert (tmp_path / "run" / "representatives").exists()
    if name == "SIGTERM":  # what is left is the same for all
        succeed(*fit)


@posix
@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["threads", "workers"])
def test_scratch_of_a_fit_that_was_ended(large, tmp_path, temporary, workers):
    folder, settings = temporary
    fit = ["fit", large, "-k", "3", "--representatives", "500", "--labels", tmp_path / "l.zarr", "--quiet", *workers]
    settings["DASK_DASKCLUSTER__MEMORY_BUDGET"] = "1 MiB"
    where = "daskcluster-*/dask-scratch-space/worker-*" if workers else "daskcluster-*/nearest/rows/c/*"
    with start(*fit, **settings) as process:
        stderr = end_when(process, lambda: list(folder.glob(where)), "SIGTERM")
    (line,) = stderr.splitlines()
    assert line.startswith("Ended by SIGTERM.")
    wait_for_end_of_group(process.pid)
    assert not list(folder.iterdir())


@posix
@pytest.mark.slow
def test_workers_that_start_are_ended_too(large, tmp_path, temporary):
    folder, settings = temporary
    fit = ["fit", large, "-k", "3", "--labels", tmp_path / "l.zarr", "--quiet", "--workers", "2"]
    with start(*fit, **settings) as process:  # the folder of the workers is made before they are
        stderr = end_when(process, lambda: list(folder.glob("daskcluster-*/.lock")), "SIGTERM")
    (line,) = stderr.splitlines()
    assert line.startswith("Ended by SIGTERM.")
    wait_for_end_of_group(process.pid)
    assert not list(folder.iterdir())


@posix
def test_what_is_ignored_stays_so(tmp_path):
    """`nohup` starts a command that ignores SIGHUP: it goes on when the terminal closes."""
    program = """
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from daskcluster.cli.signals import Ended
from daskcluster.runtime.signals import ending_signals
with ending_signals(Ended, last=True):
    os.kill(os.getpid(), signal.SIGHUP)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        print("not ended")
    except Ended as ended:
        os.kill(os.getpid(), signal.SIGTERM)  # does not disturb the cleaning
        print(ended.exit_code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "143\n", "")


def test_warnings_are_lines_on_stderr(tmp_path):
    write_array(da.from_array(np.repeat(np.eye(2), 20, axis=0), chunks=40), tmp_path / "x.zarr")
    program = "import sys; from daskcluster.cli import main; main(sys.argv[1:])"
    options = ["fit", str(tmp_path / "x.zarr"), "-k", "3", "--labels", str(tmp_path / "l.zarr"), "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", program, *options], check=True, capture_output=True, text=True, cwd=ROOT
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("Warning: ")
    assert "clusters       2\n" in done.stdout


def test_the_end_of_a_scheduler_is_one_short_line(blobs, monkeypatch):
    class FutureCancelledError(RuntimeError):
        """As distributed raises it, with the names of all tasks."""

    def lost(*arguments: Any, **more: Any) -> None:
        raise FutureCancelledError(" ".join(f"('dc-nearest-{number}', 0)" for number in range(1000)))

    monkeypatch.setattr("daskcluster.estimators.KMeans.fit", lost)
    command = ["fit", "X.zarr", "-k", 3, "--algorithm", "kmeans", "--labels", "l.zarr", "--quiet"]
    line = "Error: the Dask scheduler or its workers are lost (FutureCancelledError)"
    assert fail(1, *command) == line
    again = "; --storage keeps the finished stages: give the same command again to go on from there"
    assert fail(1, *command, "--storage", "run") == line + again
    assert fail(1, *command, "--storage=run") == line + again


def test_long_messages_are_cut(stores, monkeypatch):
    def broken(*arguments: Any) -> None:
        raise RuntimeError("word " * 3000)

    monkeypatch.setattr("daskcluster.cli.info.describe_array", broken)
    message = fail(1, "info", stores / "x.zarr")
    assert len(message) < 800
    assert "more characters)" in message


@pytest.mark.filterwarnings("default")
def test_warnings_name_options(blobs):
    options = ["-k", 3, "--algorithm", "ensemble", "--base", "kmeans", "--base-clusterings", 1, "--sample-rate", "0.5"]
    result = run("fit", "X.zarr", *options, "--labels", "l.zarr", "--quiet")
    assert result.exit_code == 0
    assert "raise --base-clusterings or --sample-rate, or set --predict-unsampled" in result.stderr
