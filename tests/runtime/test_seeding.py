"""Seeds: one root integer, streams by purpose, draws by row number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.runtime.seeding import draw_ranks, root_seed, stream


def numbers(generator):
    return generator.integers(2**62, size=4).tolist()


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), np.uint8(200), 2**40])
def test_an_integer_stands_for_itself(seed):
    assert root_seed(seed) == seed
    assert type(root_seed(seed)) is int


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_its_next_number(make):
    source = make(3)
    first, second = root_seed(source), root_seed(source)
    assert first != second
    assert root_seed(make(3)) == first
    assert 0 <= first < 2**32


def test_none_draws_a_fresh_seed():
    assert len({root_seed(None) for _ in range(5)}) == 5


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="random_state must be >= 0, got -1"):
        root_seed(-1)


@pytest.mark.parametrize("seed", ["7", 1.5, [1]])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="cannot be used to seed"):
        root_seed(seed)


def test_a_stream_depends_on_root_purpose_and_numbers_only():
    expected = numbers(stream(5, "starts", 2))
    numbers(stream(5, "sample"))
    assert numbers(stream(5, "starts", 2)) == expected
    others = [stream(6, "starts", 2), stream(5, "sample", 2), stream(5, "starts", 1), stream(5, "starts")]
    assert all(numbers(other) != expected for other in others)


@given(n_samples=st.integers(1, 400), size=st.integers(0, 500), seed=st.integers(0, 99))
def test_ranks_are_distinct_rows_in_ascending_order(n_samples, size, seed):
    ranks = draw_ranks(np.random.default_rng(seed), n_samples, size)
    assert ranks.dtype == np.int64
    assert len(ranks) == min(size, n_samples)
    assert (np.diff(ranks) > 0).all()
    assert ((ranks >= 0) & (ranks < n_samples)).all()


def test_a_draw_as_large_as_the_data_takes_every_row():
    assert draw_ranks(np.random.default_rng(0), 5, 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("n_samples", "size"), [(40, 10), (20_000, 200)])
def test_every_row_is_equally_likely(n_samples, size):
    """Of 4,000 draws in all 1,000 fall in each quarter of the rows: 27 is one standard deviation."""
    counts = np.zeros(4)
    for seed in range(4000 // size):
        ranks = draw_ranks(np.random.default_rng(seed), n_samples, size)
        counts += np.bincount(ranks * 4 // n_samples, minlength=4)
    assert counts.sum() == 4000
    assert np.abs(counts - 1000).max() < 110


def test_a_small_draw_from_many_rows_takes_little_memory():
    """An array of all row numbers would have 8 TB."""
    ranks = draw_ranks(np.random.default_rng(0), 10**12, 1000)
    assert len(np.unique(ranks)) == 1000
    assert 4e11 < ranks.mean() < 6e11
