"""Tile fidelity against beat fidelity: mean absolute error at most 4%, worst at most 10%, rank correlation at least
0.98, on workloads that it was not fitted to."""

import numpy as np
import pytest

from sim.tests.tile_workloads import WORKLOADS, compare

FEW = ("matmul, T 16", "ragged softmax", "MoE dynamic, T 16, usual", "attention dynamic, usual")
"""Every kind of program, the small ones."""


def test_a_few_workloads():
    rows = [compare(workload) for workload in WORKLOADS if workload.name in FEW]
    assert len(rows) == len(FEW)
    assert max(abs(row.error) for row in rows) <= 0.10, rows
    assert np.mean([abs(row.error) for row in rows]) <= 0.05, rows


@pytest.mark.deep
def test_all_workloads():
    assert len(WORKLOADS) >= 20
    rows = [compare(workload) for workload in WORKLOADS]
    errors = np.abs([row.error for row in rows])
    assert errors.mean() <= 0.04 and errors.max() <= 0.10, rows
    ranks = [np.argsort(np.argsort([getattr(row, which) for row in rows])) for which in ("beat", "tile")]
    assert np.corrcoef(*ranks)[0, 1] >= 0.98
