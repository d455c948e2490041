"""Kill fits at random moments, again and again: none may be lost, and none may end with other labels.

    ci/benchmarks/run soak                                 100 kills over the algorithms in turn
    ci/benchmarks/run soak --kills 20 --algorithm usenc
    ci/benchmarks/run soak --workers 2                     with worker processes, which die with the command or alone
    ci/benchmarks/run soak --workers 2 --cluster           of a scheduler that all commands use, which dies with none
    ci/benchmarks/run soak --log soak.log                  a line a kill

A run is one command, ``daskcluster fit --storage``, given again after every kill until it ends by itself. Kills are
SIGKILL and SIGTERM in turn, at a moment that is drawn between the start of the command and the time that an unbroken
one takes; with workers, between the moment at which the fit begins and then, and every third kill hits a worker process
instead. Lost is a run whose command fails and was not killed; wrong is one whose labels are not those of an unbroken
run, bit by bit. The sum of both is the exit code. Seconds are from a signal to the end of the command.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import psutil

from daskcluster.files.locks import LOCK_FILE

ALGORITHMS = ("uspec", "kmeans", "usenc", "fastcsc", "ensemble")
#: A run that is killed so often in a row without an end makes no progress.
MOST_CALLS = 60
SCHEDULER = "scheduler.json"
#: Seconds within which a fit begins, which with workers is long after its command, on however loaded a machine.
BEGINS_SECONDS = 300.0


def command(given: argparse.Namespace, algorithm: str, folder: Path, *more: str) -> list[str]:
    """The command of a run."""
    call = [sys.executable, "-m", "daskcluster", "fit", str(folder / "X.zarr"), "-k", "13", "--seed", "0"]
    call += ["--algorithm", algorithm]
    if given.cluster:
        call += ["--scheduler-file", str(folder / SCHEDULER)]
    elif given.workers:
        call += ["--workers", str(given.workers)]
    call += ["--base", "kmeans"] if algorithm == "ensemble" else []
    return [*call, "--quiet", "--json", *more]


def labels(path: Path) -> Any:
    """Stored labels, as they are."""
    import zarr

    return zarr.open_array(str(path), mode="r")[:]


def stage_of(store: Path) -> str:
    """Where a killed run stands, as `daskcluster info` tells it."""
    if not store.exists():
        return "nothing kept yet"
    call = [sys.executable, "-m", "daskcluster", "info", str(store)]
    told = subprocess.run(call, capture_output=True, text=True)
    if told.returncode:
        return f"info failed: {told.stderr.strip()}"
    return next((line.strip() for line in told.stdout.splitlines() if line.startswith("the next run")), told.stdout)


@contextlib.contextmanager
def cluster(given: argparse.Namespace, folder: Path) -> Iterator[int | None]:
    """A scheduler and workers that outlive commands, if they are asked for; the process whose children workers are."""
    if not given.cluster:
        yield None
        return
    own = ["--scheduler-file", str(folder / SCHEDULER), "--host", "127.0.0.1", "--no-dashboard"]
    local = ["--nworkers", str(given.workers), "--nthreads", "1", "--local-directory", str(folder / "local")]
    local += ["--preload", "daskcluster.preload"]
    dask = [sys.executable, "-m", "dask"]
    commands = [*dask, "scheduler", "--port", "0", *own], [*dask, "worker", *local, *own]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # As many workers die here as are killed, and tasks of a client that is killed are not to blame.
    settings = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100"}
    processes = [subprocess.Popen(command, env=settings, **quiet) for command in commands]
    try:
        while not (folder / SCHEDULER).exists():
            time.sleep(0.1)
        yield processes[1].pid
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def strike(process: subprocess.Popen[str], number: int, workers_of: int | None) -> str:
    """Kill a command, or a worker, which is a child of a process; says what was done."""
    if workers_of is not None and number % 3 == 2:
        children = [child for child in psutil.Process(workers_of).children(recursive=True) if is_worker(child)]
        if children:
            random.choice(children).kill()
            return "SIGKILL of a worker"
    sent = (signal.SIGKILL, signal.SIGTERM)[number % 2]
    process.send_signal(sent)
    return sent.name


def is_worker(process: psutil.Process) -> bool:
    """Whether a process runs tasks."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def wait_for(process: subprocess.Popen[str], store: Path) -> float:
    """Wait until the fit of a command that was just given holds its store, or the command has ended; the seconds."""
    start, given_at = time.monotonic(), time.time()
    while process.poll() is None and time.monotonic() - start < BEGINS_SECONDS:
        with contextlib.suppress(FileNotFoundError):
            if (store / LOCK_FILE).stat().st_mtime > given_at:
                break
        time.sleep(0.02)
    return time.monotonic() - start


def soak(given: argparse.Namespace, folder: Path, log: TextIO | None, workers_of: int | None) -> int:
    """Kill runs; prints the table, returns how many were lost or wrong."""
    draw = random.Random(given.seed)
    random.seed(given.seed)
    expected, lasts = {}, {}
    for algorithm in given.algorithm:
        out, store = folder / f"{algorithm}.zarr", folder / "unbroken"
        call = command(given, algorithm, folder, "--labels", str(out), "--overwrite", "--storage", str(store))
        for _ in range(1 + given.cluster):  # workers that stay load kernels once
            start = time.monotonic()
            process = subprocess.Popen(call, stdout=subprocess.DEVNULL, text=True)
            begins = wait_for(process, store) if given.workers else 0.0
            if process.wait():
                raise SystemExit(f"{algorithm} fails without a kill")
            expected[algorithm], lasts[algorithm] = labels(out), time.monotonic() - start - begins
            shutil.rmtree(store)
        say(f"{algorithm}: unbroken {lasts[algorithm]:.1f} s, begun after {begins:.1f} s", log)
    counts: dict[str, Counter[str]] = {algorithm: Counter() for algorithm in given.algorithm}
    ends: list[float] = []
    kills, turn = 0, 0
    while kills < given.kills:
        algorithm = given.algorithm[turn % len(given.algorithm)]
        turn += 1
        count, store, out = counts[algorithm], folder / "run", folder / "found.zarr"
        for call in range(1, MOST_CALLS + 1):
            more = ("--storage", str(store), "--labels", str(out), "--overwrite")
            process = subprocess.Popen(
                command(given, algorithm, folder, *more),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            struck = ""
            if given.workers:
                wait_for(process, store)
            try:
                # As often as not it is let to its end after some kills, so that runs end.
                process.wait(None if call > given.most or kills >= given.kills else draw.uniform(0, lasts[algorithm]))
            except subprocess.TimeoutExpired:
                sent = time.monotonic()
                struck = strike(process, kills, workers_of or (process.pid if given.workers else None))
                kills += 1
                count["kills"] += 1
            _, errors = process.communicate()
            if struck:
                seconds = time.monotonic() - sent
                ends += [seconds] if struck == "SIGTERM" else []
                how = f"{struck}, exit {process.returncode} after {seconds:.1f} s"
                stands = stage_of(store) if process.returncode else "it has ended all the same"
                say(f"{kills}: {algorithm}, call {call}, {how}; {stands}", log)
            if process.returncode == 0:
                count["ended"] += 1
                if not np.array_equal(labels(out), expected[algorithm]):
                    count["wrong"] += 1
                    say(f"WRONG: {algorithm} after {call} calls", log)
                break
            if not struck:
                count["lost"] += 1
                say(f"LOST: {algorithm} after {call} calls: {errors.strip()[-500:]}", log)
                break
        else:
            count["lost"] += 1
        shutil.rmtree(store, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
    say(f"{'algorithm':<12}{'kills':>8}{'runs':>8}{'lost':>8}{'wrong':>8}", log)
    for algorithm, count in counts.items():
        say(f"{algorithm:<12}{count['kills']:>8}{count['ended']:>8}{count['lost']:>8}{count['wrong']:>8}", log)
    left = [name.name for name in Path(tempfile.gettempdir()).glob("daskcluster-*")]
    slowest = round(max(ends, default=0.0), 1)
    say(json.dumps({"kills": kills, "scratch folders left": len(left), "slowest end after SIGTERM, s": slowest}), log)
    return sum(count["lost"] + count["wrong"] for count in counts.values())


def say(line: str, log: TextIO | None) -> None:
    """A line on the terminal, and in the log."""
    print(line, flush=True)
    if log is not None:
        log.write(line + "\n")
        log.flush()


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--algorithm", choices=ALGORITHMS, nargs="+", default=list(ALGORITHMS))
    parser.add_argument("--workers", type=int, default=0, help="worker processes of a command; none by default")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--most", type=int, default=8, help="calls of a run that may be killed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", help="a file that gets every line, too")
    parser.add_argument("--cluster", action="store_true", help="one scheduler with these workers for all commands")
    given = parser.parse_args()
    if given.cluster and not given.workers:
        parser.error("--cluster needs --workers")

    from daskcluster import datasets
    from daskcluster.io import write_array

    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        write_array(datasets.make_flower(given.rows, chunks=50_000, random_state=0)[0], str(folder / "X.zarr"))
        with contextlib.ExitStack() as stack:
            log = None if given.log is None else stack.enter_context(open(given.log, "w", encoding="utf-8"))
            return soak(given, folder, log, stack.enter_context(cluster(given, folder)))


if __name__ == "__main__":
    sys.exit(main())
