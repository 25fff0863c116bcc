"""Which experts serve which token: from a trace, or made so that given counts come out."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from step_lang.errors import BadParameter

__all__ = ["MIXTRAL_B64", "TRACE_COUNTS", "choose_experts", "expert_counts", "load_experts", "spread_counts"]

MIXTRAL_B64 = (13, 10, 17, 14, 17, 10, 24, 23)
"""Tokens of each expert of Mixtral-8x7B, 64 tokens with two experts each (the paper's trace)."""

TRACE_COUNTS: Mapping[tuple[int, int, int], tuple[int, ...]] = {
    (64, 2, 8): MIXTRAL_B64,
    (1024, 2, 8): tuple(map(int, (
        "236 219 279 215 164 414 301 220").split())),
    (64, 8, 128): tuple(map(int, (
        "5 0 1 0 0 3 3 0 0 15 0 0 7 0 9 4 0 1 0 0 0 0 1 0 1 7 18 1 0 0 0 0 10 0 2 0 3 0 14 0 0 1 20 13 2 0 7 0 0 "
        "0 0 3 7 23 1 0 4 0 6 1 0 5 5 24 0 0 0 0 17 4 0 1 0 0 32 6 13 0 2 4 0 0 0 0 0 2 0 29 0 0 0 0 0 0 0 0 1 20 "
        "0 3 18 0 6 10 42 0 0 7 0 0 0 0 0 0 6 6 24 0 13 0 4 0 0 7 4 1 0 3").split())),
    (1024, 8, 128): tuple(map(int, (
        "0 1 0 0 11 0 5 326 88 201 0 304 34 25 50 335 45 363 617 0 203 0 1 1 42 2 12 4 1 76 101 0 0 41 0 2 2 32 0 "
        "30 74 1 3 204 22 697 0 1 0 0 37 42 9 4 0 175 0 66 9 0 40 0 1 0 0 100 1 0 0 0 1 0 17 406 0 201 6 116 275 "
        "94 73 1 1 814 107 0 0 0 0 6 1 5 0 1 20 0 0 0 7 0 4 4 403 29 0 4 0 0 60 10 22 5 0 0 30 228 0 231 0 95 0 "
        "77 0 188 147 0 0 62").split())),
}
"""Tokens of each expert in the paper's traces, by (tokens, experts a token, experts): Mixtral-8x7B, Qwen3-30B-A3B."""


def load_experts(path: str | Path, batch: int, top_k: int, experts: int) -> np.ndarray:
    """Expert indices ``[batch, top_k]`` of a trace: a .npz file with key ``data``, or a directory that holds one.

    Raises `BadParameter` for a file that is none, or whose sizes are others.
    """
    place = Path(path)
    if place.is_dir():
        place = next(iter(sorted(place.glob("*.npz"))), place)
    try:
        with np.load(place) as archive:
            found = np.asarray(archive["data"])
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise BadParameter(f"routing trace: '{path}' vs a .npz file with key 'data' ({error})") from None
    if found.shape != (batch, top_k) or found.dtype.kind not in "iu":
        raise BadParameter(f"routing trace '{path}': {found.dtype} of shape {list(found.shape)} vs integers of "
                           f"[batch, top_k] = [{batch}, {top_k}]", fix="give the trace's batch and top_k")
    outside = found[(found < 0) | (found >= experts)]
    if len(outside):
        raise BadParameter(f"routing trace '{path}': expert {int(outside[0])} vs experts 0..{experts - 1}")
    if any(len(set(row)) < top_k for row in found.tolist()):
        raise BadParameter(f"routing trace '{path}': a token with one expert twice vs {top_k} different ones")
    return found.astype(np.int64)


def spread_counts(batch: int, top_k: int, experts: int, idle: int = 0, seed: int = 0) -> tuple[int, ...]:
    """Tokens of each expert where no trace says: uneven as a router's choices are, ``idle`` of them without any, the
    others with at least one as far as they go round, no expert with more than ``batch``, ``batch * top_k`` in all.

    Raises `BadParameter` unless at least ``top_k`` experts are not idle.
    """
    if not 0 <= idle <= experts - top_k:
        raise BadParameter(f"idle experts: {idle} vs 0..{experts - top_k}, so that {top_k} of {experts} serve a token")
    rng = np.random.default_rng([seed, batch, top_k, experts, idle])
    busy = rng.permutation(experts)[idle:]
    weight = rng.gamma(2.0, size=len(busy))
    counts = np.zeros(experts, dtype=np.int64)
    counts[busy[:batch * top_k]] = 1
    for _ in range(batch * top_k - int(counts.sum())):
        # The one that lags most behind its share, of those that have room.
        share = np.where(counts[busy] < batch, weight / (counts[busy] + 1), -1.0)
        counts[busy[int(np.argmax(share))]] += 1
    return tuple(counts.tolist())


def choose_experts(counts: Sequence[int], batch: int, top_k: int, seed: int = 0) -> np.ndarray:
    """Expert indices ``[batch, top_k]``, different ones for each token, expert i chosen ``counts[i]`` times.

    Raises `BadParameter` for counts that no choice has.
    """
    left = np.array(counts, dtype=np.int64)
    if left.sum() != batch * top_k or (left < 0).any() or (left > batch).any():
        raise BadParameter(f"tokens of each expert: {list(map(int, counts))} vs {batch} tokens x {top_k} experts, "
                           f"each expert at most {batch}")
    rng = np.random.default_rng([seed, batch, top_k])
    chosen = np.empty((batch, top_k), dtype=np.int64)
    for token in range(batch):
        # An expert that every token left needs must be taken; the others by chance, as often as they are still due.
        due = np.flatnonzero(left == batch - token)
        others = np.flatnonzero((left > 0) & (left < batch - token))
        more = top_k - len(due)
        if more:
            share = left[others] / left[others].sum()
            due = np.concatenate([due, rng.choice(others, more, replace=False, p=share)])
        chosen[token] = rng.permutation(due)
        left[chosen[token]] -= 1
    return chosen


def expert_counts(chosen: np.ndarray, experts: int) -> np.ndarray:
    """How many tokens each expert serves."""
    return np.bincount(chosen.reshape(-1), minlength=experts)
