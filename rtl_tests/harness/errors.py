"""Errors of the harness: those a user can cause are the language's, a failing simulation is a failing test."""

from step_lang.errors import BuildError, SimulatorError

__all__ = ["BuildError", "SimulationFailed", "SimulationTimeout", "SimulatorError"]


class SimulationTimeout(SimulatorError):
    """A simulation took more wall-clock time than it was given."""


class SimulationFailed(AssertionError):
    """A test inside the simulation failed; the message is that test's own message."""
