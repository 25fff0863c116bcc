"""The calibration file and the summary of comparisons."""

import numpy as np
import pytest

from sim.calibration import Calibration, Comparison, summary
from sim.memory import CALIBRATION
from step_lang.errors import CalibrationError
from step_lang.hwconfig import HardwareConfig

HW = HardwareConfig(tile=4)


def test_round_trip(tmp_path):
    made = Calibration(
        HW.digest(),
        dict.fromkeys(CALIBRATION, 3),
        [Comparison("a", 100, 97)],
        [Comparison("b", 10, 11), Comparison("c", 7, 7)],
    )
    made.save(tmp_path / "deep" / "c.toml")
    assert Calibration.load(tmp_path / "deep" / "c.toml", HW) == made
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["c.toml"]


def test_same_text_for_the_same_measurements():
    texts = {Calibration(HW.digest(), dict(CALIBRATION), [Comparison("a", 3, 4)]).to_toml() for _ in range(3)}
    assert len(texts) == 1
    assert "error = 0.333333" in texts.pop()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CalibrationError, match="vs a writable place"):
        Calibration(HW.digest(), dict(CALIBRATION)).save(tmp_path / "file" / "c.toml")


def test_any_change_of_hardware_makes_it_another(tmp_path):
    Calibration(HW.digest(), dict(CALIBRATION)).save(tmp_path / "c.toml")
    Calibration.load(tmp_path / "c.toml", HW)
    for other in (HardwareConfig(tile=8), HardwareConfig(tile=4, link_depths={"x": 4})):
        with pytest.raises(CalibrationError, match="of other hardware"):
            Calibration.load(tmp_path / "c.toml", other)


def test_summary_by_hand():
    rows = [Comparison("a", 100, 110), Comparison("b", 200, 190), Comparison("c", 400, 400)]
    found = summary(rows)
    assert found["mape"] == pytest.approx((0.1 + 0.05 + 0) / 3)
    assert found["max_error"] == pytest.approx(0.1)
    assert found["pearson"] == pytest.approx(np.corrcoef([100, 200, 400], [110, 190, 400])[0, 1])
    assert [row.error for row in rows] == pytest.approx([0.1, -0.05, 0])


@pytest.mark.parametrize("rows", [[Comparison("a", 5, 6)], [Comparison("a", 5, 6), Comparison("b", 5, 7)]])
def test_summary_without_variation(rows):
    assert summary(rows)["pearson"] == 1.0
