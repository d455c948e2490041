"""Failures: one line on stderr, an exit code, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcluster.io import write_array
from tests.cli.calls import ROOT, fail, run, start


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


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to a group of processes")
def test_interrupted_run_leaves_nothing(tmp_path):
    with start("make", "flower", tmp_path / "x.zarr", "-n", "1G", "--quiet") as process:
        while not os.listdir(tmp_path):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        stdout, stderr = process.communicate(timeout=60)
    # An interrupt inside code from a string makes Python end by the signal itself, which a shell shows as 130 too.
    assert process.returncode in (130, -signal.SIGINT)
    assert stdout == ""
    assert stderr.splitlines() == ["Interrupted. Unfinished outputs are removed; --storage keeps finished stages."]
    assert os.listdir(tmp_path) == []


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
