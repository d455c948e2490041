"""How `ci/reproduce` runs draws: which, several at a time, in processes with limits, until it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ci.reproduction import __main__ as command
from ci.reproduction.records import Records
from ci.reproduction.running import Job, Order, jobs_of, run_jobs
from ci.reproduction.values import Experiment, Paper, Table
from ci.reproduction.worker import Stopped, Worker, load_paper
from tests.reproduction.small_table import nothing, table

ROOT = Path(__file__).parents[2]


class Hand:
    """A worker that notes what it is to draw; system b fails."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int]] = []

    def run(self, paper: str, experiment: Experiment, system: str, column: str, number: int, sizes: bool) -> Any:
        self.calls.append((system, column, number))
        if system == "b":
            raise Stopped("time limit")
        return {"NMI": 0.5, "seconds": 1.0}

    def stop(self) -> None:
        pass


def test_draws_that_are_there_are_not_run_again(tmp_path):
    """Nor is a system that failed once tried at the next draw, unless asked for."""

    def run(*options: str, until: float = float("inf"), retry: bool = False) -> list[tuple[str, int]]:
        worker: Any = Hand()
        arguments = command.parser().parse_args(["--results", str(tmp_path), *options])
        command.run(Paper("paper", "", (table(),)), arguments, Order(tmp_path, False, retry, until), [worker])
        return [(system, number) for system, _, number in worker.calls]

    assert run("--draws", "2", until=0.0) == []
    assert run("--draws", "2") == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("c", 1)]
    assert run("--draws", "2") == []
    assert run() == [("a", 2), ("c", 2)]  # the plan names no such paper: 3
    assert run("--draws", "3", "--systems", "b", retry=True) == [("b", 0), ("b", 1), ("b", 2)]


def test_what_failed_for_want_of_time_is_run_with_more(tmp_path):
    calls: list[float] = []

    def run(paper: str, experiment: Experiment, *cell: Any) -> Any:
        calls.append(experiment.seconds)
        raise Stopped("time limit")

    worker: Any = SimpleNamespace(run=run)
    for seconds in (50.0, 50.0, 20.0, 600.0, 600.0):
        job = Job("paper", Experiment("methods", nothing, seconds), "X", {"a": 3})
        run_jobs([job], Order(tmp_path), [worker])
    assert calls == [50, 600]


def test_papers_have_draws_of_their_own(tmp_path):
    workers: Any = [Hand()]
    run_jobs(
        [Job(name, Experiment("methods", nothing), "X", {"a": 1}) for name in ("p", "q")], Order(tmp_path), workers
    )
    assert [len(Records(tmp_path, name, "methods").of("a", "X", False)) for name in ("p", "q")] == [1, 1]


def test_the_limits_of_a_draw_can_be_given(tmp_path):
    used: list[Experiment] = []
    worker: Any = SimpleNamespace(run=lambda paper, experiment, *cell: used.append(experiment) or {"NMI": 1})
    for number, options in enumerate([[], ["--limit", "50", "--memory", "20"]], 1):
        arguments = command.parser().parse_args(["--draws", str(number), "--systems", "a", *options])
        command.run(Paper("paper", "", (table(),)), arguments, Order(tmp_path), [worker])
    assert [(one.seconds, one.gigabytes) for one in used] == [(600, 6), (50, 20)]


@pytest.mark.parametrize("option", ["--jobs 0", "--draws -1", "--limit 0", "--memory 0", "--hours -1"])
def test_numbers_of_the_command_are_checked(option, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ci/reproduce", *option.split()])
    with pytest.raises(SystemExit):
        command.main()
    assert f"{option.split()[0]} must be" in capsys.readouterr().err


def test_a_column_of_an_experiment_is_one_job():
    """Draws that two tables read are made once, and systems that share base clusterings stand together."""
    methods, other = Experiment("methods", nothing), Experiment("other", nothing)
    sets = ("TB-1M", "SF-2M", "no such set")
    tables = (
        Table("1", "", methods, "NMI", ("a", "b"), sets),
        Table("2", "", methods, "accuracy", ("b", "c"), sets[:1]),
        Table("3", "", other, "NMI", ("a",), sets[:1]),
    )
    paper, draws = Paper("paper", "", tables), lambda table, system, column: len(column)
    found = [(job.experiment.name, job.column, dict(job.draws)) for job in jobs_of(paper, tables, draws)]
    assert found == [
        ("methods", "TB-1M", {"a": 5, "b": 5, "c": 5}),
        ("methods", "SF-2M", {"a": 5, "b": 5}),
        ("other", "TB-1M", {"a": 5}),
    ]
    few = jobs_of(paper, tables, draws, sets=("TB-1M",), systems=("c", "a"))
    assert [(job.column, list(job.draws)) for job in few] == [("TB-1M", ["a", "c"]), ("TB-1M", ["a"])]


def test_jobs_are_shared_out(tmp_path):
    """Two workers draw at a time, each a column, and all draws are kept."""
    both = threading.Barrier(2, timeout=60)

    class Waits(Hand):
        def run(self, *cell: Any) -> Any:
            both.wait()
            return super().run(*cell)

    jobs = [Job("paper", Experiment("methods", nothing), column, {"a": 2}) for column in ("X", "Y")]
    workers: Any = [Waits(), Waits()]
    run_jobs(jobs, Order(tmp_path), workers)
    assert sorted({column for _, column, _ in worker.calls} == {"X"} for worker in workers) == [False, True]
    records = Records(tmp_path, "paper", "methods")
    assert [[r.draw for r in records.of("a", column, False)] for column in ("X", "Y")] == [[0, 1], [0, 1]]


def test_a_run_that_is_stopped_keeps_no_failure(tmp_path):
    """At a signal what runs is ended, and is not said to have failed; nothing else begins."""
    both, ended = threading.Barrier(2, timeout=60), threading.Event()

    class Long(Hand):
        def run(self, *cell: Any) -> Any:
            self.calls.append(cell)
            if both.wait() == 0:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)  # it waits for the draws
            assert ended.wait(60)
            raise Stopped("the process died")

        def stop(self) -> None:
            ended.set()

    jobs = [Job("paper", Experiment("methods", nothing), column, {"a": 1}) for column in ("X", "Y", "Z")]
    workers: Any = [Long(), Long()]
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_jobs(jobs, Order(tmp_path), workers)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sum(len(worker.calls) for worker in workers) == 2
    assert not list(tmp_path.rglob("*.jsonl"))


def test_draws_at_a_time_fit_cores_and_memory(monkeypatch):
    for cores, gigabytes, jobs in ((2, 24, 2), (64, 24, 3), (8, 4, 1)):
        monkeypatch.setattr(command, "CPU_COUNT", cores)
        monkeypatch.setattr(command, "MEMORY_LIMIT", gigabytes * 2**30)
        assert command.default_jobs() == jobs
    assert command.default_jobs(1.5) == 2


class Fake:
    """A process' end of a pipe, without the process."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers

    def send(self, message: Any) -> None:
        pass

    def recv(self) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_what_stops_a_draw(monkeypatch):
    experiment = Experiment("methods", nothing, seconds=1)
    died = [EOFError(), ConnectionResetError(), BrokenPipeError(), EOFError()]
    answers: list[Any] = [("metrics", {"NMI": 1.0}), ("failed", "ValueError: no"), *died]
    codes = [None, None, -signal.SIGKILL, -signal.SIGKILL, -signal.SIGKILL, -signal.SIGPROF]
    worker = Worker()

    def start() -> Fake:
        done = lambda: None  # noqa: E731
        worker._process = SimpleNamespace(join=done, kill=done, exitcode=codes.pop(0))
        return Fake(answers)

    monkeypatch.setattr(worker, "_start", start)
    run = lambda: worker.run("paper", experiment, "a", "X", 0, False)  # noqa: E731
    assert run() == {"NMI": 1.0}
    for said in ("ValueError: no", *("the process died",) * 3, r"time limit \(1 s\)"):
        with pytest.raises(Stopped, match=said):
            run()


def test_the_limit_counts_the_processor_and_not_the_clock():
    """A process outlives its limit while it waits, and dies of it when it works."""
    program = (
        "import time; from ci.reproduction.worker import _limit; _limit(0); start = time.process_time(); _limit(0.1)\n"
        "time.sleep(0.15); print('slept', flush=True)\n"
        "while time.process_time() - start < 10: pass"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True)
    assert ended.stdout == b"slept\n"
    assert ended.returncode == -signal.SIGPROF


@pytest.mark.slow
def test_a_process_runs_draws_and_is_ended_at_its_limit():
    paper = load_paper("uspec_usenc_2019")
    experiment = paper.tables[0].experiment
    with Worker() as worker:
        assert worker.run(paper.name, experiment, "k-means", "TB-1M", 0, False)["NMI"] > 0
        with pytest.raises(Stopped, match="KeyError"):
            worker.run(paper.name, experiment, "no such system", "TB-1M", 0, False)
        start = time.perf_counter()
        with pytest.raises(Stopped, match="time limit"):
            worker.run(paper.name, Experiment("methods", nothing, seconds=0.01), "SC", "TB-1M", 0, False)
        assert time.perf_counter() - start < 5
        assert worker.run(paper.name, experiment, "k-means", "TB-1M", 0, False)["NMI"] > 0


def test_a_worker_that_was_stopped_begins_nothing():
    worker = Worker()
    worker.stop()
    with pytest.raises(Stopped, match="stopped"):
        worker.run("paper", Experiment("methods", nothing), "a", "X", 0, False)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.5, 20.0])
def test_a_worker_is_stopped_at_any_time(seconds):
    """Before its process is there, while that imports and compiles, and in a draw."""
    paper = load_paper("uspec_usenc_2019")
    experiment = replace(paper.tables[0].experiment, seconds=600)

    def draw(worker: Worker) -> None:
        for number in range(10_000):
            worker.run(paper.name, experiment, "U-SENC", "PenDigits", number, False)

    with Worker() as worker:
        threading.Timer(seconds, worker.stop).start()
        with pytest.raises(Stopped):
            draw(worker)
