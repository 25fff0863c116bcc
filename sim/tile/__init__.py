"""The performance model at tile fidelity: logical tiles, for models of full size. See `sim.tile.prediction.predict`."""

from .machine import BeatMachine, Machine, RooflineMachine
from .prediction import TilePrediction, predict

__all__ = ["BeatMachine", "Machine", "RooflineMachine", "TilePrediction", "predict"]
