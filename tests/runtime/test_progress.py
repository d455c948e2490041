"""Progress by named stages: log lines, bars, and a logger that is left as it was found."""

import logging
import re

import dask
import dask.array as da
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.runtime.execution import compute
from daskcluster.runtime.progress import Progress

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
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")


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


@pytest.mark.usefixtures("no_terminal")
def test_verbose_writes_a_line_a_stage_to_stderr(capsys):
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
