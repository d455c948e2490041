"""One BLAS thread while anybody is inside, and what was there before when the last one leaves."""

from threading import Barrier, Event, Thread

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from daskcluster.runtime.threads import one_blas_thread


def blas_threads():
    """Threads of each BLAS in this process."""
    import scipy.linalg  # noqa: F401  # NumPy's and SciPy's may be two

    return {
        library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def several():
    """More than one thread to begin with, on any machine."""
    blas_threads()
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads().values()) == {2}
        yield


def test_one_thread_inside_and_as_before_after():
    before = blas_threads()
    with one_blas_thread():
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before


def test_it_nests():
    before = blas_threads()
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads().values()) == {1}
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before


def test_an_error_restores_the_threads():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == before


def test_it_can_be_entered_again():
    for _ in range(3):
        with one_blas_thread():
            assert set(blas_threads().values()) == {1}
        assert set(blas_threads().values()) == {2}


def test_the_first_thread_may_leave_before_the_second():
    before = blas_threads()
    inside, leave, left = Event(), Event(), Event()

    def first():
        with one_blas_thread():
            inside.set()
            assert leave.wait(30)
        left.set()

    thread = Thread(target=first)
    thread.start()
    assert inside.wait(30)
    with one_blas_thread():
        leave.set()
        assert left.wait(30)
        assert set(blas_threads().values()) == {1}
    thread.join()
    assert blas_threads() == before


def test_many_threads_at_once():
    before = blas_threads()
    together, seen = Barrier(8), []

    def work():
        together.wait(30)
        for _ in range(20):
            with one_blas_thread():
                seen.append(set(blas_threads().values()))

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{1}] * 160
    assert blas_threads() == before
