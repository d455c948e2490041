"""Kill fits at random moments, again and again: none may be lost, and none may end with other labels.

    ci/benchmarks/run soak                                 100 kills over the algorithms in turn
    ci/benchmarks/run soak --kills 20 --algorithm usenc
    ci/benchmarks/run soak --workers 2                     with worker processes, which die with the command or alone
    ci/benchmarks/run soak --log soak.log                  a line a kill

A run is one command, ``daskcluster fit --storage``, given again after every kill until it ends by itself. Kills are
SIGKILL and SIGTERM in turn, at a moment that is drawn between the start of the command and the time that an unbroken
one takes; with workers, every third kill hits a worker process instead. Lost is a run whose command fails and was
not killed; wrong is one whose labels are not those of an unbroken run, bit by bit. The sum of both is the exit code.
"""

from __future__ import annotations

import argparse
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
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import psutil

ALGORITHMS = ("uspec", "kmeans", "usenc", "fastcsc", "ensemble")
#: A run that is killed so often in a row without an end makes no progress.
MOST_CALLS = 60


def command(given: argparse.Namespace, algorithm: str, folder: Path, *more: str) -> list[str]:
    """The command of a run."""
    call = [sys.executable, "-m", "daskcluster", "fit", str(folder / "X.zarr"), "-k", "13", "--seed", "0"]
    call += ["--algorithm", algorithm, "--workers", str(given.workers)] if given.workers else ["--algorithm", algorithm]
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


def strike(process: subprocess.Popen[str], number: int, workers: bool) -> str:
    """Kill a command, or a worker of it; says what was done."""
    if workers and number % 3 == 2:
        children = [child for child in psutil.Process(process.pid).children(recursive=True) if is_worker(child)]
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


def soak(given: argparse.Namespace, folder: Path, log: TextIO | None) -> int:
    """Kill runs; prints the table, returns how many were lost or wrong."""
    draw = random.Random(given.seed)
    random.seed(given.seed)
    expected, lasts = {}, {}
    for algorithm in given.algorithm:
        start = time.monotonic()
        out = folder / f"{algorithm}.zarr"
        subprocess.run(command(given, algorithm, folder, "--labels", str(out)), check=True, stdout=subprocess.DEVNULL)
        expected[algorithm], lasts[algorithm] = labels(out), time.monotonic() - start
        say(f"{algorithm}: unbroken {lasts[algorithm]:.1f} s", log)
    counts: dict[str, Counter[str]] = {algorithm: Counter() for algorithm in given.algorithm}
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
            try:
                # As often as not it is let to its end after some kills, so that runs end.
                process.wait(None if call > given.most or kills >= given.kills else draw.uniform(0, lasts[algorithm]))
            except subprocess.TimeoutExpired:
                struck = strike(process, kills, bool(given.workers))
                kills += 1
                count["kills"] += 1
            _, errors = process.communicate()
            if struck:
                say(f"{kills}: {algorithm}, call {call}, {struck}, exit {process.returncode}; {stage_of(store)}", log)
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
    say(json.dumps({"kills": kills, "scratch folders left": len(left)}), log)
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
    given = parser.parse_args()

    from daskcluster import datasets
    from daskcluster.io import write_array

    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        write_array(datasets.make_flower(given.rows, chunks=50_000, random_state=0)[0], str(folder / "X.zarr"))
        if given.log is None:
            return soak(given, folder, None)
        with open(given.log, "w", encoding="utf-8") as log:
            return soak(given, folder, log)


if __name__ == "__main__":
    sys.exit(main())
