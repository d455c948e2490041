"""Progress by named stages: log lines, bars, and a logger that is left as it was found."""

import json
import logging
import os
import re
import sys
import threading
import types
from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import futures_of, wait

import daskcluster as dc
from daskcluster.hooks import ON_COMPILING
from daskcluster.runtime import compiling
from daskcluster.runtime import progress as progress_module
from daskcluster.runtime import status as status_module
from daskcluster.runtime.blocks import check_blocks
from daskcluster.runtime.counting import ClusterWork, LocalWork
from daskcluster.runtime.displays import Lines, Table
from daskcluster.runtime.execution import add_parts, compute, map_rows, reduce_blocks
from daskcluster.runtime.pieces import recut
from daskcluster.runtime.progress import Progress, StageState, watch_each
from daskcluster.runtime.status import STATUS_FILE, StatusWriter, read_status
from tests.blocks import blocks_of
from tests.cli.calls import as_json, succeed

LOGGER = logging.getLogger("daskcluster")
USPEC_STAGES = [
    "check and sample",
    "representatives",
    "nearest representatives",
    "transfer cut",
    "discretize",
    "labels",
]


@pytest.fixture
def no_terminal(monkeypatch):
    """What rich takes for a sign of a terminal is absent."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def terminal(monkeypatch, capsys):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda file: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(autouse=True)
def nothing_compiles(monkeypatch):
    """A kernel that another test compiled a moment ago is not told by the next stage."""
    monkeypatch.setattr(compiling, "_last", -compiling.COMPILING_SECONDS)


@pytest.fixture(autouse=True)
def logger_is_left_alone():
    level, handlers, propagate = LOGGER.level, list(LOGGER.handlers), LOGGER.propagate
    yield
    assert (LOGGER.level, LOGGER.handlers, LOGGER.propagate) == (level, handlers, propagate)


def logged(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "daskcluster"]


def test_a_stage_is_one_line_on_the_logger(caplog, capsys):
    with caplog.at_level(logging.INFO, "daskcluster"), Progress(verbose=False) as progress:
        with progress.stage("first"):
            pass
        assert len(logged(caplog)) == 1
        with progress.stage("second"):
            pass
    assert [re.fullmatch(r"(\w+): \d+\.\d\d s", line)[1] for line in logged(caplog)] == ["first", "second"]
    assert capsys.readouterr().err == ""


def test_a_stage_that_fails_logs_nothing(caplog):
    caplog.set_level(logging.INFO, "daskcluster")
    with pytest.raises(ZeroDivisionError), Progress(verbose=False) as progress, progress.stage("failing"):
        _ = 1 / 0
    assert logged(caplog) == []


@pytest.mark.parametrize("model", [dc.USPEC(2, n_representatives=20, random_state=0), dc.KMeans(2, random_state=0)])
def test_a_fit_logs_its_stages_in_order(caplog, capsys, model):
    X = np.random.default_rng(0).normal(size=(200, 2))
    with caplog.at_level(logging.INFO, "daskcluster"):
        model.fit(X)
    expected = USPEC_STAGES if isinstance(model, dc.USPEC) else ["check and sample", "starts", "Lloyd passes", "labels"]
    assert [line.partition(":")[0] for line in logged(caplog)] == expected
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.usefixtures("no_terminal")
def test_verbose_writes_a_line_a_stage_to_stderr(capsys, monkeypatch, forced):
    if forced:
        monkeypatch.setenv("FORCE_COLOR", "1")  # as kernels do for the programs that a notebook starts
    X = np.random.default_rng(0).normal(size=(200, 2))
    dc.USPEC(2, n_representatives=20, random_state=0, verbose=True).fit(X)
    out, err = capsys.readouterr()
    assert out == ""
    lines = [re.fullmatch(r"\d\d:\d\d:\d\d daskcluster: (.+): \d+\.\d\d s", line) for line in err.splitlines()]
    assert [line and line[1] for line in lines] == USPEC_STAGES


@pytest.mark.usefixtures("no_terminal")
@pytest.mark.parametrize("level", [logging.NOTSET, logging.ERROR, logging.DEBUG])
def test_verbose_restores_the_logger(capsys, level):
    before = LOGGER.level
    LOGGER.setLevel(level)
    try:
        with Progress(verbose=True) as progress, progress.stage("work"):
            assert len(LOGGER.handlers) == 1
        assert LOGGER.level == level
        assert LOGGER.handlers == []
        with pytest.raises(ZeroDivisionError), Progress(verbose=True), progress.stage("work"):
            _ = 1 / 0
        assert LOGGER.level == level
        assert LOGGER.handlers == []
    finally:
        LOGGER.setLevel(before)
    assert capsys.readouterr().err.count("work") == 1


@pytest.mark.usefixtures("no_terminal")
def test_verbose_twice_is_not_said_twice(capsys):
    for _ in range(2):
        with Progress(verbose=True) as progress, progress.stage("work"):
            pass
    assert capsys.readouterr().err.count("work") == 2


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_bars_that_count_tasks(capsys):
    blocks = da.ones((6, 1), chunks=1)
    with Progress(verbose=True) as progress:
        with progress.stage("counting"):
            compute(blocks.map_blocks(np.negative, dtype=float, meta=np.empty((0, 0))))
        with progress.stage("no tasks"):
            pass
    out, err = capsys.readouterr()
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in err.splitlines()]
    assert out == ""
    counting = [match for line in lines if (match := re.search(r"^counting .* +(\d+)/(\d+) ", line))]
    done, total = map(int, counting[-1].groups())
    assert done == total >= 6
    assert any(re.search(r"^no tasks .* 1/1 ", line) for line in lines)
    assert not any("daskcluster:" in line for line in lines)


def test_bars_of_the_user_still_count(capsys):
    """A progress bar of dask that is active around a fit shows the fit's tasks."""
    seen = []
    blocks = da.ones((6, 1), chunks=1)
    callback = dask.callbacks.Callback(posttask=lambda *arguments: seen.append(arguments[0]))
    with callback, Progress(verbose=False) as progress, progress.stage("work"):
        compute(blocks + 1)
    assert len(seen) >= 6
    assert capsys.readouterr() == ("", "")


# -- how far a stage is ------------------------------------------------------------------------------------------------

FAR = StageState("nearest representatives", 3, 250.0, done=412, total=1530, left=720.0)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FAR, "412 of 1,530 blocks, 27 %, about 12 min left"),
        (replace(FAR, block_bytes=2**22), "412 of 1,530 blocks, 1.6 of 6.0 GiB, 27 %, about 12 min left"),
        (replace(FAR, total=1, done=0, left=None), "0 of 1 block, 0 %"),
        (
            replace(FAR, passes=2, detail="3 of 20"),
            "3 of 20, 412 of 1,530 blocks, 27 %, about 12 min left in this pass",
        ),
        (replace(FAR, left=20_000.0, detail=""), "412 of 1,530 blocks, 27 %, about 5.6 h left"),
        (StageState("labels", 1, 75.4), "since 75 s"),
        (replace(FAR, ended=True), "250.00 s"),
    ],
)
def test_how_far_a_stage_is_in_words(state, text):
    assert state.text() == text


def test_a_batch_job_gets_a_line_a_minute(caplog):
    caplog.set_level(logging.INFO, "daskcluster")
    lines = Lines(to_stderr=False)
    for seconds in (0, 30, 61, 90, 119, 121, 122, 180.9, 200):
        lines.update(replace(FAR, seconds=float(seconds)))
    lines.update(replace(FAR, seconds=400.0, ended=True))
    # At 61, 121 and 200 seconds.
    assert logged(caplog) == ["nearest representatives: 412 of 1,530 blocks, 27 %, about 12 min left"] * 3


GATES: list["Gate"] = []


def gate_of(number):
    """A gate, in the same process."""
    return GATES[number]


class Gate:
    """Blocks that wait: the first ones go through, the others when the gate is opened."""

    def __init__(self, n_open):
        self.left, self.lock, self.opened, self.reached = n_open, threading.Lock(), threading.Event(), threading.Event()
        GATES.append(self)

    def __reduce__(self):
        return gate_of, (GATES.index(self),)

    def __call__(self, block):
        with self.lock:
            self.left -= 1
            waits = self.left < 0
        if waits:
            self.reached.set()
            assert self.opened.wait(60)
        return block


def blocks_through(gate, n_blocks=8):
    X = da.ones((n_blocks * 64, 2), chunks=(64, 2))
    return X.map_blocks(gate, dtype=float, meta=np.empty((0, 0)), token="mine")


def test_blocks_of_a_local_scheduler_are_counted_once():
    """Whatever the chunks of the user are, and however many other tasks there are."""
    work = LocalWork()
    given = recut(check_blocks("X", da.ones((60, 2), chunks=(5, 1))), ((20, 20, 20), (2,)))
    with dask.config.set(scheduler="synchronous"):
        dask.compute(reduce_blocks(sums, add_parts, given, name="dc-sums"), callbacks=[work.callback])
    assert (work.done, work.total) == (3, 3)


HOW = {"name": "dc-test", "columns": 2, "dtype": float}


def test_a_cluster_counts_what_is_to_be_done(client_inprocess):
    gate = Gate(3)
    held = client_inprocess.persist(map_rows(np.negative, da.ones((20 * 64, 2), chunks=(64, 2)), **HOW))
    wait(held)
    first = reduce_blocks(sums, add_parts, held, name="dc-first")  # done before: not counted
    assert client_inprocess.compute(first).result()["n"] == 20
    lazy = reduce_blocks(sums, add_parts, blocks_through(gate), name="dc-second")
    both = dask.persist(lazy, held)
    work = ClusterWork(client_inprocess, [future.key for future in futures_of(both)])
    assert gate.reached.wait(60)
    try:
        until(lambda: work.poll() or work.done == 3)
        assert work.total == 8
    finally:
        gate.opened.set()
    wait(both)
    work.poll()
    assert (work.done, work.total) == (8, 8)


def sums(block):
    return {"n": 1}


def until(condition):
    for _ in range(600):
        if condition():
            return
        threading.Event().wait(0.05)
    pytest.fail("it did not happen")


def test_a_scheduler_that_is_gone_is_no_failure_of_the_progress():
    class Gone:
        def run_on_scheduler(self, *arguments, **more):
            raise OSError

    work = ClusterWork(Gone(), ["dc-x-1"])
    work.poll()
    assert (work.done, work.total) == (0, 0)


# -- notebooks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def notebook(monkeypatch):
    """A kernel, as IPython shows itself; what was displayed under each handle last."""
    shown = {}

    class Handle:
        def update(self, value):
            shown[id(self)] = (repr(value), value._repr_html_())

    def display(value, display_id):
        handle = Handle()
        handle.update(value)
        return handle

    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    module.display = types.ModuleType("IPython.display")
    module.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)
    return shown


def test_a_notebook_keeps_a_table_that_ends(notebook, capsys):
    dc.USPEC(2, n_representatives=20, random_state=0, verbose=True).fit(np.random.default_rng(0).normal(size=(200, 2)))
    ((text, page),) = notebook.values()
    assert [re.match(r"(.+?)  +\d+\.\d\d s$", line)[1] for line in text.splitlines()] == USPEC_STAGES
    assert page.count('<progress max="1" value="1.000"') == len(USPEC_STAGES)
    assert capsys.readouterr() == ("", "")


def test_a_stage_that_fails_is_shown_as_stopped(notebook):
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[-1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        dc.USPEC(2, n_representatives=20, verbose=True).fit(X)
    ((text, _),) = notebook.values()
    assert re.fullmatch(r"check and sample +stopped after \d+\.\d\d s, 1 of 1 block, .*", text)


def test_a_stage_that_is_stopped_says_how_far_it_came(notebook):
    def interrupted():
        with Progress(verbose=True) as progress, progress.stage("work"), watch_each(4) as advance:
            advance()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    ((text, page),) = notebook.values()
    assert re.fullmatch(r"work +stopped after \d+\.\d\d s, 1 of 4 blocks, 25 %", text)
    assert 'value="0.250"' in page


def test_titles_of_a_table_are_escaped(notebook):
    table = Table()
    table.update(StageState("<b>", 1, 0.0))
    assert "<b>" not in table._repr_html_()


# -- the status of a running fit ---------------------------------------------------------------------------------------


def test_a_running_fit_says_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_module, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(progress_module, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(status_module, "WRITE_SECONDS", 0.01)
    gate, folder, done = Gate(8 + 3), tmp_path / "run", []
    X = blocks_through(gate) + da.arange(512, chunks=64)[:, None] % 3 * 9
    model = dc.USPEC(3, n_representatives=20, random_state=0, storage=folder)
    fit = threading.Thread(target=lambda: done.append(model.fit(X)))
    with blocks_of(64), dask.config.set(scheduler="threads", num_workers=2):
        fit.start()
        assert gate.reached.wait(60)
        try:
            until(lambda: ((read_status(folder)["status"] or {}).get("blocks_done") or 0) >= 1)
            about = as_json("info", folder)["running"]
            shown = succeed("info", folder).stdout
        finally:
            gate.opened.set()
            fit.join(60)
    assert done
    status = about["status"]
    assert about["pid"] == os.getpid()
    assert (status["stage"], status["stage_number"], status["n_stages"]) == ("nearest representatives", 3, 6)
    assert 1 <= status["blocks_done"] < status["blocks_total"] == 8
    assert status["blocks_per_second"] > 0
    assert re.search(r"stage 3 of 6 +nearest representatives: \d of 8 blocks", shown)
    assert f"({os.getpid()} on " in shown
    assert read_status(folder) == {"holder": None, "status": None}
    assert as_json("info", folder)["running"] is None


def test_the_status_is_written_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(status_module.time, "monotonic", lambda: now[0])
    now, writer = [0.0], StatusWriter(lambda: tmp_path, 6)
    for now[0], done in ((10.0, 1), (11.0, 2), (12.9, 3), (13.1, 4), (13.2, 5)):
        writer(replace(FAR, done=done))
        assert json.loads((tmp_path / STATUS_FILE).read_text())["blocks_done"] == (1 if now[0] < 13 else 4)
    writer.close()
    writer(FAR)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nonsense", '{"stage": 1}', "[" * 100_000])
def test_a_damaged_status_is_none(tmp_path, text):
    (tmp_path / STATUS_FILE).write_text(text)
    assert read_status(tmp_path) == {"holder": None, "status": None}


# -- kernels that are being compiled -----------------------------------------------------------------------------------


def test_compiling_is_said_once_a_fit(caplog, monkeypatch):
    monkeypatch.setattr(compiling, "_last", compiling.time.monotonic())
    caplog.set_level(logging.INFO, "daskcluster")
    dc.KMeans(2, random_state=0).fit(np.arange(20.0)[:, None])
    said = [line for line in logged(caplog) if "compiling" in line]
    assert said == ["compiling kernels (first use on this machine); the next fits load them"]
    assert replace(FAR, compiling=True).text().startswith("compiling kernels (first use on this machine), 412 of")
    monkeypatch.setattr(compiling, "_last", -compiling.COMPILING_SECONDS)
    caplog.clear()
    dc.KMeans(2, random_state=0).fit(np.arange(20.0)[:, None])
    assert not [line for line in logged(caplog) if "compiling" in line]


def test_workers_tell_that_they_compile(client_inprocess):
    future = client_inprocess.submit(lambda: ON_COMPILING[-1](), pure=False)
    future.result()
    work = ClusterWork(client_inprocess, [future.key])
    until(lambda: work.poll() or work.compiling)
