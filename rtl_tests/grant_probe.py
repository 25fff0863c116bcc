"""The simulator's side of grants: records what an arbitrating unit grants, cycle by cycle. Loads nothing else."""

__all__ = ["grants"]


class _Grants:
    """``note``: (cycle, input) of every grant."""

    def __init__(self, dut):
        self._valid, self._index = dut.grant_valid, dut.grant_index
        self.clear()

    def clear(self) -> None:
        self.note: list[tuple[int, int]] = []

    def drive(self, cycle: int) -> None:
        """Nothing: a monitor is passive."""

    def sample(self, cycle: int) -> None:
        if str(self._valid.value) == "1":
            self.note.append((cycle, int(str(self._index.value), 2)))


def grants(dut, case):
    """Agents of a bench (`harness.bench_unit`, `model_bench`) for a unit with the ports of a grant."""
    return [_Grants(dut)]
