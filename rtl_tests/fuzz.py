"""Random small programs over the operators that hardware has, and what every layer must agree on about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from examples.data import random_tensors
from rtl_tests.cosim import check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, Stream, Tile, bf16, fn, fp32, int8, int32, metrics, ops, ragged, scalar, u32
from step_lang.dims import is_static
from step_lang.errors import DeadlockError, StepError
from step_lang.hwconfig import HardwareConfig

__all__ = ["Outcome", "RandomProgram", "random_program", "run"]

MOST = 48
"""Elements that a stream of a random program has at most."""


@dataclass
class RandomProgram:
    """A program with the values of its input streams and the number it was drawn from."""

    seed: int
    program: Program
    inputs: dict[str, Any]

    def __str__(self) -> str:
        steps = "\n".join(f"  {op.name}({', '.join(s.name for s in op.inputs)}) {op.describe()} -> "
                          f"{', '.join(f'{list(s.shape)} of {s.type}' for s in op.outputs)}"
                          for op in self.program.operators)
        return f"random program {self.seed}\n{steps}"


@dataclass
class Outcome:
    """``refused``: what a layer said to a program it cannot run; ``wrong``: where layers disagree."""

    refused: str = ""
    wrong: list[str] = field(default_factory=list)


def random_program(seed: int, tile: int) -> RandomProgram:
    """One to three sources, two to seven operators on random streams of them, everything left over stored."""
    rng = Random(seed)
    inputs: dict[str, Any] = {}
    with Program(f"random_{seed}") as p:
        live: list[Stream] = []
        for i in range(rng.randint(1, 3)):
            live.append(_input(rng, inputs, i) if rng.random() < 0.3 else _load(rng, p, i, tile, live))
        for _ in range(rng.randint(2, 7)):
            stream = rng.choice(live)
            try:
                made = rng.choice(_STEPS)(rng, stream, live)
            except StepError:  # not for this stream; nothing was added
                continue
            live += made
        for i, stream in enumerate(s for s in p.streams if not s.consumers and not s.optional):
            _store(p, i, stream)
    return RandomProgram(seed, p, inputs)


def run(made: RandomProgram, hw: HardwareConfig, *, rtl: bool = False) -> Outcome:
    """Run ``made`` through interpreter, lowering, unit graph and model, and with ``rtl`` on RTL."""
    design = Design(made.program, hw, made.inputs)
    try:
        tensors = random_tensors(made.program, made.seed)
        logical = design.interpret(tensors, lowered=False)
        lowered = design.interpret(tensors)
        prediction = predict(design.graph, design.hw)
    except DeadlockError as error:
        return Outcome(refused=f"deadlock: {error}")
    except StepError as error:
        return Outcome(refused=str(error))
    wrong = [f"tensor '{name}': lowered program vs program" for name, values in logical.tensors.items()
             if values.tobytes() != lowered.tensors[name].tobytes()]
    costs = metrics(made.program).substitute(logical.symbols)
    counts = {"symbolic": int(costs.offchip_bytes), "interpreter": logical.offchip_bytes,
              "model": prediction.offchip_bytes}
    if len(set(counts.values())) > 1:
        wrong.append(f"off-chip bytes: {counts}")
    int(costs.onchip_bytes), int(costs.flops)  # have a value
    if rtl:
        done = run_rtl(design, tensors)
        wrong += check(design, done, lowered, logical).differences
        if done.cycles != prediction.cycles:
            wrong.append(f"cycles: RTL {done.cycles} vs model {prediction.cycles}")
    return Outcome(wrong=wrong)


# Sources and sinks


def _input(rng: Random, inputs: dict[str, Any], i: int) -> Stream:
    """A stream of scalars, its vectors between 0 and 3 long."""
    dtype = rng.choice((u32, int32))
    values = [[rng.randrange(100) for _ in range(rng.randint(0, 3))] for _ in range(rng.randint(1, 3))]
    inputs[f"v{i}"] = values
    return ops.input_stream(f"v{i}", scalar(dtype), (len(values), ragged(f"r{i}")))


def _load(rng: Random, p: Program, i: int, tile: int, live: list[Stream]) -> Stream:
    """Tiles of one or two physical tiles a side, or one row or column of them, read in order or by a random view."""
    rows, cols = (rng.choice((1, tile, 2 * tile)) for _ in range(2))
    grid = rng.randint(1, 3), rng.randint(1, 3)
    dtype = rng.choice((bf16, bf16, fp32, int8, int32, u32))
    tensor = p.tensor(f"x{i}", (rows * grid[0], cols * grid[1]), dtype)
    view: dict[str, Any] = {}
    if rng.random() < 0.5:
        shape = [rng.randint(1, 3) for _ in range(rng.randint(1, 2))]
        view = {"shape": shape, "stride": [rng.randint(0, (grid[0] * grid[1] - 1) // (2 * n)) for n in shape]}
    ref = rng.choice(live) if live and rng.random() < 0.3 else None
    return ops.linear_offchip_load(tensor, (rows, cols), ref=ref, **view)


def _store(p: Program, i: int, stream: Stream) -> None:
    """Stores tiles below one another; what was not stored stays zero."""
    type_ = stream.type
    if not isinstance(type_, Tile):
        return
    count = int(np.prod(stream.shape)) if all(map(is_static, stream.shape)) else 4 * MOST
    ops.linear_offchip_store(stream, p.tensor(f"y{i}", (int(type_.rows) * max(1, count), int(type_.cols)), type_.dtype))


# Operators: each gives the new streams, or raises a StepError


def _size(stream: Stream) -> int:
    """Elements, a ragged dimension counting as 3."""
    return int(np.prod([dim if isinstance(dim, int) else 3 for dim in stream.shape]))


def _unary(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    function = rng.choice((fn.silu, fn.exp, fn.row_sum, fn.row_max, lambda: fn.scale(constant=2),
                           lambda: fn.cast(dtype=rng.choice(("bf16", "fp32", "int32", "int8", "u32")))))
    return [ops.map(function(), stream)]


def _binary(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    function = rng.choice((fn.add, fn.sub, fn.mul, fn.div, fn.max, fn.matmul, lambda: fn.matmul(transpose_b=True)))
    return [ops.map(function(), stream, rng.choice([stream, *live]))]


def _accum(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    function = rng.choice((fn.add, fn.max, fn.row_max, fn.mul))
    result = ops.accum(function(), stream, rank=rng.randint(1, max(1, stream.rank)))
    # An empty vector between is an element of the result: a dimension of its own.
    return [result.assume([d if isinstance(d, int) else ragged(f"q_{result.name}_{k}") for k, d in
                           enumerate(result.shape)])]


def _scan(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    return [ops.scan(rng.choice((fn.add, fn.max))(), stream, rank=rng.randint(1, max(1, stream.rank)))]


def _flatten(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    lo = rng.randint(0, max(0, stream.rank - 1))
    return [ops.flatten(stream, lo, rng.randint(lo, stream.rank))]


def _reshape(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    data, _ = ops.reshape(stream, rng.randint(1, 3), dim=rng.choice((0, 0, 1)), pad=rng.choice((1, None)))
    return [data]


def _promote(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    return [ops.promote(stream)]


def _repeat(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    return [ops.repeat(stream, rng.randint(1, 3))] if 3 * _size(stream) <= MOST else []


def _expand(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    folded = ops.accum(fn.max(), stream, rank=1)
    one = ops.repeat(folded, 1)
    return [ops.expand(one, stream, rank=1)]


def _buffered(rng: Random, stream: Stream, live: list[Stream]) -> list[Stream]:
    if 3 * _size(stream) > MOST:
        return []
    stream = ops.promote(stream) if stream.rank < 1 else stream
    return [ops.streamify(ops.bufferize(stream, rank=rng.randint(1, stream.rank)), repeat=rng.randint(1, 3))]


_STEPS = (_unary, _unary, _binary, _binary, _accum, _scan, _flatten, _reshape, _promote, _repeat, _expand, _buffered)
