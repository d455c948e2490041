"""What docs/hpc.md and docs/security.md tell: job scripts, a scheduler of one's own, TLS, jobs that end at walltime."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskcluster as dc
from tests.cli.calls import ROOT, start
from tests.slow import slowly

PAGE = ROOT / "docs" / "hpc.md"


def part(page: Path, pattern: str) -> str:
    """A part of a page."""
    found = re.search(pattern, page.read_text(encoding="utf-8"), re.DOTALL)
    assert found, pattern
    return found[1]


def test_the_job_script_of_the_page(tmp_path, monkeypatch):
    """The cluster of the page asks Slurm for what the page says; nothing is submitted."""
    pytest.importorskip("dask_jobqueue")
    monkeypatch.chdir(tmp_path)
    code = part(PAGE, r"```python\n(from dask_jobqueue.*?)```")
    assert "SLURMCluster" in code
    names: dict[str, Any] = {}
    code = code.replace('"ib0"', '"lo"')
    exec(compile(code, str(PAGE), "exec"), names)
    with names["cluster"] as cluster:
        script = cluster.job_script()
    for line in ("#SBATCH -p compute", "#SBATCH -t 02:00:00", "#SBATCH --requeue", "#SBATCH --cpus-per-task=16"):
        assert line in script
    for option in (
        "--nthreads 16 --memory-limit 59.60GiB",
        "--local-directory /local/scratch/$SLURM_JOB_ID",
        "--lifetime 110m",
        "--lifetime-stagger 8m",
        "--preload daskcluster.preload",
    ):
        assert option in script, script


def dask_commands(file: Path, *options: str, of_workers: Sequence[str] = ()) -> list[list[str]]:
    """A scheduler and two workers, with options of their own."""
    dask = [sys.executable, "-m", "dask"]
    scheduler = [*dask, "scheduler", "--scheduler-file", str(file), "--host", "127.0.0.1", "--port", "0", *options]
    local = str(file.parent / "w")
    worker = [*dask, "worker", "--scheduler-file", str(file), "--nworkers", "2", "--nthreads", "1"]
    worker += ["--local-directory", local, "--host", "127.0.0.1", *options, *of_workers]
    return [[*scheduler, "--no-dashboard"], [*worker, "--no-dashboard"]]


def mpi_commands(file: Path) -> list[list[str]]:
    """The line of the page, with what this machine has."""
    pytest.importorskip("dask_mpi")
    line = part(PAGE, r"\n(mpirun dask-mpi .*?) &\n").replace("\\\n", "")
    line = line.replace("/shared", str(file.parent)).replace("ib0", "lo").replace("--nthreads 16", "--nthreads 1")
    line = line.replace("60GB", "2GB").replace("/local/scratch/$SLURM_JOB_ID", str(file.parent / "w"))
    programs = Path(sys.executable).parent
    words = line.replace("dask-mpi", str(programs / "dask-mpi")).split()
    return [[str(programs / "mpirun"), "-n", "4", *words[1:]]]


@contextmanager
def dask_processes(folder: Path, of_workers: Sequence[str] = (), **variables: str) -> Iterator[Path]:
    """A scheduler and workers as a user starts them; gives the scheduler's file."""
    file = folder / "scheduler.json"
    with running(dask_commands(file, of_workers=of_workers), folder, **variables):
        yield file


@contextmanager
def running(commands: list[list[str]], folder: Path, **variables: str) -> Iterator[None]:
    """Processes that run meanwhile, with these variables of the environment."""
    log = open(folder / "log", "w")  # noqa: SIM115
    env = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    own: dict[str, Any] = {"stdout": log, "stderr": log, "env": env, "cwd": folder}
    started = [subprocess.Popen(command, **own) for command in commands]
    try:
        yield
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:  # a nanny whose worker dies while it starts may miss its end
                process.kill()
                process.wait()
        log.close()


@pytest.fixture
def rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 2)).astype("f4") + 9 * (np.arange(3000) % 3)[:, None]
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(1000, 2))
    return tmp_path / "x.zarr"


def certificate(folder: Path) -> dict[str, str]:
    """A certificate as the page makes one; gives the settings of TLS."""
    command = part(ROOT / "docs" / "security.md", r"```text\n(openssl .*?)\n```")
    subprocess.run(["bash", "-euc", command], cwd=folder, check=True, capture_output=True)
    names = {"CA_FILE": "dask.pem", "CLIENT__CERT": "dask.pem", "CLIENT__KEY": "dask.key"}
    settings = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(folder / file) for name, file in names.items()}
    return settings | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}


@pytest.mark.parametrize("kind", slowly("tcp", "tls", "mpi"))
def test_a_scheduler_of_ones_own(kind, rows, tmp_path):
    """A scheduler file and workers; with certificates, which a client without one cannot pass; as an MPI program."""
    settings: dict[str, str] = {}
    options: list[str] = []
    tls, file = kind == "tls", tmp_path / "scheduler.json"
    if tls:
        settings = certificate(tmp_path)
        names = {"--tls-ca-file": "dask.pem", "--tls-cert": "dask.pem", "--tls-key": "dask.key"}
        options = [
            "--protocol",
            "tls",
            *(word for name, file in names.items() for word in (name, str(tmp_path / file))),
        ]
    labels = tmp_path / "labels.zarr"
    fit = ["fit", rows, "--algorithm", "kmeans", "-k", "3", "--seed", "0", "--labels", labels, "--json", "--quiet"]
    commands = mpi_commands(file) if kind == "mpi" else dask_commands(file, *options)
    with running(commands, tmp_path):
        deadline = 600
        while not file.exists() and deadline:
            deadline -= 1
            subprocess.run(["sleep", "0.1"], check=True)
        address = json.loads(file.read_text())["address"]
        assert address.startswith("tls://" if tls else "tcp://")
        if tls:
            refused = start(
                *fit, "--scheduler", address.replace("tls://", "tcp://"), DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="3s"
            )
            refused.communicate(timeout=120)
            assert refused.returncode == 1
        out, err = start(*fit, "--scheduler-file", file, **settings).communicate(timeout=200)
    assert json.loads(out)["n_clusters"] == 3, err
    expected = dc.KMeans(3, random_state=0).fit(zarr.open_array(rows)[:]).labels_
    np.testing.assert_array_equal(zarr.open_array(labels)[:], expected)


@pytest.mark.slow
def test_a_chain_of_jobs_ends(rows, tmp_path):
    """Jobs that SIGTERM ends: each leaves a store that the next goes on with, and the last writes the labels."""
    labels = tmp_path / "labels.zarr"
    fit = ["fit", rows, "-k", "3", "--representatives", "300", "--seed", "0", "--storage", tmp_path / "run"]
    codes, ended = [], False
    for _ in range(20):
        job = start(*fit, "--labels", labels, "--overwrite", "--json")
        try:
            job.wait(None if ended else 1.0 + 2.0 * len(codes))
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGTERM)
        job.communicate(timeout=100)
        codes.append(job.returncode)
        if job.returncode == 0:
            break
    assert codes[-1] == 0
    assert set(codes[:-1]) <= {128 + signal.SIGTERM, -signal.SIGTERM}
    assert len(codes) > 1
    model = dc.USPEC(3, n_representatives=300, random_state=0).fit(zarr.open_array(rows)[:])
    np.testing.assert_array_equal(zarr.open_array(labels)[:], model.labels_)
