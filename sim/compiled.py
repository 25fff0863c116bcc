"""The decorator of all code that runs inside the compiled engine."""

from numba import njit

__all__ = ["compiled"]

compiled = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""Numba without the wrappers that calls from Python would need: only the engine loop is called from there, and the
wrappers are a large part of the time to compile. Integer division by zero gives 0, as in hardware, not an exception."""
