"""Results kept on disk by content, so that no finished point is evaluated twice."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from step_lang.errors import BuildError

from ..dispatch import cache_directory

__all__ = ["Store"]

_PARTIAL = ".part"
_STALE_SECONDS = 3600.0


class Store:
    """Entries by key in ``directory`` (default: ``$STEP_HW_CACHE/sweep``, else the user's cache directory).

    An entry is a file whose first line is the hash of the rest, JSON. It is written whole or not at all; one that is
    damaged all the same is no entry, and is removed.
    """

    def __init__(self, directory: Path | str | None = None):
        self.directory = Path(directory or cache_directory() / "sweep").expanduser().resolve()

    def path(self, key: str) -> Path:
        """Where the entry of ``key`` is or would be."""
        return self.directory / key[:2] / f"{key[2:]}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The entry, None where there is none."""
        path = self.path(key)
        try:
            digest, _, text = path.read_text().partition("\n")
            if digest == _digest(text):
                return json.loads(text)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            pass
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        """Keep ``entry`` (JSON). Raises `BuildError` when there is no room, or no right to write."""
        path, text = self.path(key), json.dumps(entry)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=path.parent, suffix=_PARTIAL)
            try:
                with os.fdopen(handle, "w") as file:
                    file.write(f"{_digest(text)}\n{text}")
                os.replace(partial, path)
            except BaseException:
                os.unlink(partial)
                raise
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise BuildError(
                f"cache {self.directory}: {error.strerror or error} vs {'room' if full else 'a place'} for results",
                fix="make room" if full else "set STEP_HW_CACHE to a directory that can be written") from None

    def clean(self) -> int:
        """Remove what processes that were killed while they wrote left behind; how many files."""
        oldest, removed = time.time() - _STALE_SECONDS, 0
        for partial in self.directory.glob(f"*/*{_PARTIAL}"):
            with contextlib.suppress(OSError):
                if partial.stat().st_mtime < oldest:  # a younger one may be another process's that writes now
                    partial.unlink()
                    removed += 1
        return removed


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
