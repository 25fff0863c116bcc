"""Where runs get their experts and lengths from: a directory of the paper's traces, or generators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from step_lang.errors import BadParameter

__all__ = ["Trace", "Traces"]


@dataclass(frozen=True)
class Trace:
    """``values``: experts of each token, or lengths of requests, as lists; ``said``: where they are from."""

    values: list
    said: str


class Traces:
    """The traces under ``directory`` (laid out and named as in the paper's artifact), or generated ones where it is
    None: as many tokens an expert as in those, lengths of the same mean and deviation."""

    def __init__(self, directory: Path | None = None):
        if directory is not None and (directory / "traces").is_dir():
            directory = directory / "traces"
        self.directory = directory
        if directory is not None and not directory.is_dir():
            raise BadParameter(f"--data {directory}: no such directory vs one with expert_routing and kv_lengths")

    @property
    def said(self) -> str:
        """Where runs get their inputs from."""
        if self.directory:
            return "the paper's traces"
        return "generated (no --data): published tokens an expert, lengths of published deviations"

    def routing(self, name: str, batch: int, top_k: int, experts: int) -> Trace:
        """Experts of each token. Raises `BadParameter` where the directory has no such trace, or it has other sizes."""
        from examples.routing import TRACE_COUNTS, choose_experts, load_experts, spread_counts

        label = f"{name}_b{batch}"
        if self.directory is None:
            counts = TRACE_COUNTS.get((batch, top_k, experts)) or spread_counts(batch, top_k, experts)
            chosen = choose_experts(counts, batch, top_k)
            return Trace(chosen.tolist(), f"{label}: generated")
        path = self._file(self.directory / "expert_routing" / label, "*.npz", 0)
        return Trace(load_experts(path, batch, top_k, experts).tolist(), f"{label}: {path.name}")

    def lengths(self, batch: int, deviation: int, position: int = 0, count: int = 0) -> Trace:
        """KV-cache lengths of ``count`` (0: all) requests of a batch with this standard deviation (tokens), from the
        ``position``-th such file. Raises `BadParameter`."""
        from examples.attention import load_lengths

        count = count or batch
        if self.directory is None:
            rng = np.random.default_rng([batch, deviation, position])
            mean = 600 + 0.55 * deviation  # as in the published batches of 64
            made = np.clip(rng.gamma((mean / deviation)**2, deviation**2 / mean, batch), 1, 6431).astype(int)
            return Trace(made[:count].tolist(), f"b{batch}, deviation {deviation}: generated")
        path = self._file(self.directory / "kv_lengths" / f"b{batch}", f"*stdev{deviation:04d}_*.npy", position)
        return Trace(load_lengths(path, batch)[:count], f"b{batch}: {path.name}")

    def _file(self, place: Path, pattern: str, position: int) -> Path:
        found = sorted(place.glob(pattern))
        if position >= len(found):
            raise BadParameter(f"--data {self.directory}: {len(found)} files '{pattern}' in {place} vs {position + 1}",
                               fix="give the directory that holds expert_routing and kv_lengths, or leave --data out")
        return found[position]
