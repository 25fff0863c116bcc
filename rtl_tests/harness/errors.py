"""Errors of the harness that a user can cause, and the error that a failing simulation raises."""

try:
    from step_lang import StepError
except ImportError:  # TODO(harness): drop once step_lang is in
    class StepError(Exception):  # type: ignore[no-redef]
        """Stand-in."""


__all__ = ["BuildError", "SimulationFailed", "SimulationTimeout", "SimulatorError"]


class SimulatorError(StepError):
    """A simulator is missing, or older than what the harness supports."""


class BuildError(StepError):
    """Verilog did not compile, or the build directory cannot be written."""


class SimulationTimeout(StepError):
    """A simulation took more wall-clock time than it was given."""


class SimulationFailed(AssertionError):
    """A test inside the simulation failed; the message is that test's own message."""
