"""Fewer slices of work where there are too many, and none of the work lost."""

import numpy as np

from sim.slices import bounded, merged


def test_merging_by_hand():
    slices = np.array([[1, 0, 2, 2], [0, 5, 7, 2], [0, 0, 4, 3], [0, 4, 5, 1], [1, 9, 10, 1]])
    assert merged(slices, -1).tolist() == [[0, 0, 4, 3], [0, 4, 5, 1], [0, 5, 7, 2], [1, 0, 2, 2], [1, 9, 10, 1]]
    assert merged(slices, 0).tolist() == [[0, 0, 7, 6], [1, 0, 2, 2], [1, 9, 10, 1]]
    assert merged(slices, 6).tolist() == [[0, 0, 7, 6], [1, 0, 2, 2], [1, 9, 10, 1]]
    assert merged(slices, 7).tolist() == [[0, 0, 7, 6], [1, 0, 10, 3]]
    assert merged(slices[:0], 0).shape == (0, 4)


def test_a_slice_inside_another_does_not_end_it():
    assert merged(np.array([[0, 0, 10, 5], [0, 2, 4, 2], [0, 9, 12, 1]]), -1).tolist() == [[0, 0, 12, 8]]


def test_bounded():
    random = np.random.default_rng(0)
    begins = np.sort(random.choice(10_000, 1_000, replace=False))
    slices = np.stack([np.arange(1_000) % 3, begins, begins + 1, np.ones(1_000, dtype=np.int64)], axis=1)
    same, gap = bounded(slices, 1_000)
    assert (len(same), gap) == (1_000, -1)
    fewer, gap = bounded(slices, 50)
    assert 3 <= len(fewer) <= 50 and gap >= 1
    assert [fewer[fewer[:, 0] == t, 3].sum() for t in range(3)] == [334, 333, 333]
    least, _ = bounded(slices, 1)
    assert len(least) == 3
