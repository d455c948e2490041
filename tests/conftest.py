"""Options, profiles and schedulers that every test may use."""

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

# Before anything loads OpenMP or OpenBLAS, whose threads keep cores busy while they wait for work that is too small for
# them. Tests about threads say how many they want; programs that tests start inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import dask
import hypothesis
import pytest

from tests.blocks import blocks_of

if TYPE_CHECKING:
    from distributed import Client

    from tests.object_store import ObjectStore

# Before distributed is imported: it sets its loggers once, from this. Closing a cluster logs warnings in
# normal use. Worker processes inherit it.
dask.config.set({"logging.distributed": "error"})
# Clusters live as long as the tests: an idle one shall cost nothing.
dask.config.set(
    {
        "distributed.worker.profile.enabled": False,
        "distributed.worker.memory.monitor-interval": "5s",
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "10s",
    }
)

# The same examples in every run, and no deadline: a first call may compile a kernel. What a fixture of a test sets
# (`small_blocks`) may hold for all of its examples.
hypothesis.settings.register_profile(
    "daskcluster",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
# Examples here compute task graphs: as many as usual with --run-slow only.
hypothesis.settings.register_profile("fast", hypothesis.settings.get_profile("daskcluster"), max_examples=10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="run the tests that are marked slow, too")


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("daskcluster" if config.getoption("--run-slow") else "fast")


#: Files that take longest. A file is the work of one process, and those that come last should be short ones.
LONG = ["test_memory", "test_examples", "test_failures", "test_ensemble", "test_storage", "test_determinism"]
LONG += ["test_input", "test_sklearn", "test_constrained", "test_forking", "test_damaged_products", "test_jit"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    if config.getoption("--run-slow"):
        return
    skip = pytest.mark.skip(reason="slow; give --run-slow to run it")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is collected stays until the end: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def run_slow(pytestconfig: pytest.Config) -> bool:
    """Whether slow tests run, and others take more of their cases and drawings."""
    return bool(pytestconfig.getoption("--run-slow"))


@pytest.fixture
def small_blocks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Canonical blocks of 128 rows, or of as many as the test's module says with `BLOCK_ROWS`."""
    with blocks_of(getattr(request.module, "BLOCK_ROWS", 128)):
        yield


@pytest.fixture
def several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of several row blocks, however few there are."""
    from daskcluster.runtime import groups

    monkeypatch.setattr(groups, "LEAST_BLOCKS", 2)
    monkeypatch.setattr(groups, "TASKS_A_THREAD", 0)


# A free port for the dashboard's server, which cannot be turned off: 8787 may be taken, which warns.
DASHBOARD = "127.0.0.1:0"


@pytest.fixture(scope="session")
def _inprocess(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Client"]:
    from distributed import Client

    with Client(
        processes=False,
        n_workers=1,
        threads_per_worker=2,
        dashboard_address=DASHBOARD,
        local_directory=str(tmp_path_factory.mktemp("inprocess")),
        set_as_default=False,
    ) as client:
        yield client


@pytest.fixture
def client_inprocess(_inprocess: "Client") -> Iterator["Client"]:
    """A distributed client in this process, current while the test runs and for no other test."""
    with _inprocess.as_current():
        yield _inprocess


@pytest.fixture(scope="session")
def _processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Client"]:
    from distributed import Client, LocalCluster

    local_directory: Path = tmp_path_factory.mktemp("workers")
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp://",
            dashboard_address=DASHBOARD,
            local_directory=str(local_directory),
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Two processes for dask's local process scheduler, which would start new ones for every pass."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


@pytest.fixture
def cluster_processes(_processes: "Client") -> Iterator["Client"]:
    """The client of two worker processes over TCP, current while the test runs and for no other test."""
    with _processes.as_current():
        yield _processes


@pytest.fixture(scope="session")
def _s3() -> Iterator["ObjectStore"]:
    from tests.object_store import serving

    with serving() as store:
        yield store


@pytest.fixture
def s3(_s3: "ObjectStore") -> Iterator["ObjectStore"]:
    """An S3 server on this machine, whose bucket ``s3://bucket`` is empty; URLs are opened with its options."""
    from daskcluster.files.objects import ObjectPath

    with dask.config.set({"daskcluster.storage-options": _s3.options}):
        ObjectPath("s3://bucket").remove()
        _s3.requests.clear()
        _s3.peak = 0
        yield _s3
