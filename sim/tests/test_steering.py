"""Control values: what the model computes is what the functions compute, and what it does not is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from sim.engine import run_graph
from sim.network import BASE, EMPTY
from sim.prediction import predict
from sim.steering import check_steering
from step_hw.design import Design
from step_lang import Program, Selector, bf16, fn, int32, ops, scalar, u32
from step_lang.errors import UnknownFunction
from step_lang.hwconfig import HardwareConfig
from step_lang.numerics import Numerics
from step_lang.types import DTYPES
from step_lang.unitgraph import LinkSpec, Payload, UnitGraph, UnitSpec

HW = HardwareConfig(tile=2, link_depth=64)
U32 = scalar(u32)
INTEGERS = ("int8", "int32", "u32")
CASES = [(function, dtype, dtype) for function in (fn.add(), fn.sub(), fn.mul(), fn.max()) for dtype in INTEGERS]
CASES += [(fn.cast(target), source, target) for source in (*INTEGERS, "bool") for target in INTEGERS]
CASES += [(fn.scale(constant=-3), "int32", "int32"), (fn.scale(constant=5), "u32", "u32")]


def _patterns(array) -> list[int]:
    bits = array.dtype.itemsize * 8
    return [int(value) & (1 << bits) - 1 for value in array.reshape(-1)]


def _kept(net, link: int, n: int) -> np.ndarray:
    """The first ``n`` (token, value) that moved on a link of at least that depth."""
    first = net.links[link, BASE]
    return net.ring[first:first + n]


def _modelled(function, sources, targets, operands, config) -> list[int]:
    """Control values behind a map unit; the link keeps them because it is as deep as the stream is long."""
    n = len(operands[0])
    graph = UnitGraph([], [])
    for port, type_ in enumerate([*sources, targets]):
        graph.links.append(LinkSpec(port, f"l{port}", Payload(type_.dtype.bits, 1, type_), n + 1))
    for port, values in enumerate(operands):
        beats = [(0, 1 << 6, value) for value in values] + [(0, 3 << 4, 0)]
        graph.units.append(UnitSpec(port, "source", f"s{port}", [], [port], {"beats": beats}))
    last = len(operands)
    params = {"function": function, "in_types": tuple(sources), "out_type": targets, "tile": 2, "rows_per_cycle": 1,
              "k_per_cycle": 2}
    graph.units.append(UnitSpec(last, "map", "map", list(range(last)), [last], params, config))
    graph.units.append(UnitSpec(last + 1, "sink", "sink", [last], [], {}, {}, True))
    outcome = run_graph(graph, HW)
    assert outcome.reason == "finished"
    return _kept(outcome.net, last, n)[:, 1].tolist()


@pytest.mark.parametrize("function,source,target", CASES, ids=str)
def test_integers(function, source, target):
    """As the function itself says, at and around every border of its types."""
    source, target = DTYPES[source], DTYPES[target]
    if source.name == "bool":
        numbers = np.array([0, 1, 1])
    else:
        info = np.iinfo(source.numpy)
        borders = [0, 1, 2, 127, 128, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
        near = [n for border in borders for n in (border, -border, border + 1) if info.min <= n <= info.max]
        numbers = np.array([*near, info.min, info.max], dtype=np.int64)
    rng = np.random.default_rng(7)
    operands = [numbers, rng.permutation(numbers)][:function.arity]
    arrays = [operand.astype(source.numpy).reshape(-1, 1, 1) for operand in operands]
    config = {}
    if function.name == "scale":
        config = {"constant": int(function.params["constant"]) & (1 << 32) - 1}
    expected = function.apply(Numerics(), *arrays)
    found = _modelled(function, [scalar(source)] * len(arrays), scalar(target), [_patterns(a) for a in arrays], config)
    assert found == _patterns(expected)


def _steered(make) -> Design:
    with Program("p") as p:
        w = p.tensor("w", (64, 1), int32)
        addr = make(p)
        ops.linear_offchip_store(ops.random_offchip_load(addr, w, (1, 1), name="rows"), p.tensor("y", (64, 1), int32))
    given = {name: [1, 2, 3, 4] for name in ("a", "b") if any(op.name == name for op in p.operators)}
    return Design(p, HW, given | ({"s": [{0}, {1}, {0}, {1}]} if any(op.name == "s" for op in p.operators) else {}))


def _input(name="a"):
    return ops.input_stream(name, U32, (4,))


def _routed(p):
    parts = ops.partition(_input(), ops.input_stream("s", Selector(2), (4,)), rank=0)
    return ops.flatten(ops.reassemble(parts, p.operator("s").output, rank=0), 0, 1)


KNOWN = {
    "shapes": lambda p: ops.flatten(ops.promote(ops.repeat(_input(), 2)), 0, 2),
    "buffers": lambda p: ops.flatten(ops.streamify(ops.bufferize(ops.promote(_input()), rank=1), repeat=2), 0, 2),
    "routing": _routed,
    "merging": lambda p: ops.eager_merge([_input(), _input("b")])[0],
    "padding by 0": lambda p: ops.flatten(ops.reshape(_input(), chunk=3, pad=0)[0], 0, 1),
    "sums": lambda p: ops.accum(fn.add(), ops.reshape(_input(), chunk=2)[0], rank=1, init=5),
    "maxima": lambda p: ops.accum(fn.max(), ops.reshape(_input(), chunk=2)[0], rank=1),
    "counts of padding": lambda p: ops.accum(fn.add(), ops.map(fn.cast("u32"), _flags(p)), rank=1),
    "names of a merge": lambda p: ops.map(fn.selector_index(), _names(p)),
}


def _flags(p):
    data, flags = ops.reshape(_input(), chunk=3, pad=0)
    ops.linear_offchip_store(data, p.tensor("padded", (6, 1), u32))
    return flags


def _names(p):
    data, names = ops.eager_merge([_input(), _input("b")])
    ops.linear_offchip_store(data, p.tensor("merged", (8, 1), u32))
    return names


@pytest.mark.parametrize("way", KNOWN)
def test_known_values(way):
    """All of them arrive, the interpreter's: links as deep as the stream is long keep them."""
    design = _steered(KNOWN[way])
    check_steering(design.graph)
    prediction = predict(design.graph, design.hw)
    link = next(link for link in design.graph.links if design.graph.units[link.destination[0]].name == "rows")
    expected = design.interpret({"w": np.zeros((64, 1), np.int32)}, arbitration=prediction.arbitration)
    beats = _kept(prediction.outcome.net, link.index, prediction.beats[link.name])
    assert beats[beats[:, 0] & EMPTY == 0, 1].tolist() == expected.streams[link.stream].data.reshape(-1).tolist()


UNKNOWN = {
    "a tensor's elements": (lambda p: ops.linear_offchip_load(p.tensor("t", (4, 1), u32), (1, 1), name="from"), "load"),
    "gathered elements": (lambda p: ops.random_offchip_load(_input(), p.tensor("t", (4, 1), u32), (1, 1), name="from"),
                          "random_load"),
    "sums": (lambda p: ops.scan(fn.add(), ops.promote(_input()), rank=1, name="from"), "scan"),
    "padding": (lambda p: ops.reshape(_input(), chunk=3, pad=9, name="from")[0], "reshape"),
    "rounded numbers": (lambda p: ops.map(fn.cast("u32"), ops.map(fn.cast("bf16"), _input(), name="to_bf16"),
                                          name="from"), "map"),
}


@pytest.mark.parametrize("way", UNKNOWN)
def test_unknown_values_are_refused(way):
    make, kind = UNKNOWN[way]
    design = _steered(make)
    with pytest.raises(UnknownFunction) as caught:
        predict(design.graph, design.hw)
    text = str(caught.value)
    assert text.startswith("the model of random_load 'rows' (rows (test_steering.py:"), text
    assert f"values made by {kind} 'from' (from (test_steering.py:" in text and "; fix: run it on RTL" in text


def test_an_input_without_values_is_refused():
    with Program("p") as p:
        w = p.tensor("w", (8, 2), bf16)
        ops.linear_offchip_store(ops.random_offchip_load(_input(), w, (2, 2), name="rows"), p.tensor("y", (8, 2), bf16))
    with pytest.raises(UnknownFunction, match="values made by input 'a'"):
        predict(Design(p, HW).graph, HW)


@pytest.mark.parametrize("known_first", [True, False])
def test_buffers_of_several_bufferizes(known_first):
    """Numbers that the model computes in one's buffers do not make known what is in the other's, whichever is first in
    the program."""
    def make(p):
        known = ops.bufferize(ops.promote(_input()), rank=1, name="known").assume((1,))
        loaded = ops.linear_offchip_load(p.tensor("v", (4, 1), u32), (1, 1), shape=(1, 4), stride=(4, 1))
        for _ in range(3 * known_first):    # the program's order is by distance from its sources
            loaded = ops.flatten(ops.repeat(loaded, 1), 0, 1)
        unknown = ops.bufferize(loaded, rank=1, name="unknown")
        merged, _ = ops.eager_merge([known, unknown], name="merge")
        return ops.flatten(ops.streamify(merged, repeat=1), 0, 2)

    graph = _steered(make).graph
    first = next(unit for unit in graph.units if unit.kind == "bufferize")
    assert first.name == ("known" if known_first else "unknown")
    with pytest.raises(UnknownFunction, match="values made by load 'linear_offchip_load_0'"):
        check_steering(graph)
