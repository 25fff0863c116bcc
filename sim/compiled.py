"""The decorator of all code that runs inside the compiled engine."""

from typing import Any

from numba import njit

__all__ = ["compiled"]

_OPTIONS: dict[str, Any] = {  # some of them unknown to Numba's type stubs
    "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

compiled = njit(**_OPTIONS)
"""Numba without the wrappers that calls from Python would need: only the engine loop is called from there, and the
wrappers are a large part of the time to compile. Without reference counts, because no step makes an array: that is
a factor of three in speed. Integer division by zero gives 0, as in hardware, not an exception."""
