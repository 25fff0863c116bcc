"""Whole programs with random access: RTL, model and interpreter agree in values, tokens, traffic and cycles."""

import numpy as np
import pytest

from examples.data import random_tensors
from rtl_tests.cosim import check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, Selector, Tile, bf16, fn, int32, ops, ragged, scalar, u32
from step_lang.errors import RtlError, StepError, UnknownFunction
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

T = 2
HW = HardwareConfig(tile=T)
BANKED = HardwareConfig(tile=T, memory=MemoryConfig(model="banked", channels=2, capacity_bytes=1 << 14, banks=4,
                                                    queue=4))
U32 = scalar(u32)


def agree(design: Design, tensors=None, **options):
    """RTL on Icarus equals the interpreter, lowered and not, and the model's cycles and traffic are RTL's."""
    tensors = random_tensors(design.program, 0) | (tensors or {})
    run = run_rtl(design, tensors, simulator="icarus", native=False, **options)
    expected = design.interpret(tensors, arbitration=run.arbitration)
    logical = design.interpret(tensors, lowered=False, arbitration=run.arbitration)
    found = check(design, run, expected, logical)
    assert found.bit_exact, found.differences
    model = predict(design.graph, design.hw)
    assert (model.cycles, model.offchip_bytes) == (run.cycles, run.offchip_bytes)
    assert model.arbitration == run.arbitration
    return run


def embedding(tile=(1, 4 * T), words: int = 12) -> Program:
    """Rows of a table at the addresses that the host gives, ragged sentences of them."""
    with Program("embedding") as p:
        table = p.tensor("table", (words * tile[0], tile[1]), bf16)
        addr = ops.input_stream("addr", U32, (ragged("sentences"), ragged("length")))
        rows = ops.random_offchip_load(addr, table, tile, name="lookup")
        ops.linear_offchip_store(rows, p.tensor("y", (8 * tile[0], tile[1]), bf16), name="store_y")
    return p


def experts(n: int = 3, rows: int = 2, k: int = 2, cols: int = 2) -> Program:
    """Each token is multiplied by the weights of the expert that its selector names, which are loaded for it."""
    with Program("experts_by_address") as p:
        x, w = p.tensor("x", (4 * rows * T, k * T), bf16), p.tensor("w", (n * k * T, cols * T), bf16)
        selector = ops.input_stream("selector", Selector(n), (4,))
        tokens = ops.linear_offchip_load(x, (rows * T, k * T), shape=(4,), stride=(1,), name="tokens")
        index = ops.map(fn.selector_index(), selector, name="index")
        weights = ops.random_offchip_load(index, w, (k * T, cols * T), name="weights")
        y = ops.map(fn.cast("bf16"), ops.map(fn.matmul(), tokens, weights, name="product"), name="rounded")
        ops.linear_offchip_store(y, p.tensor("y", (4 * rows * T, cols * T), bf16), name="store_y")
    return p


def blocks() -> Program:
    """Column blocks of an expert's weights: selector to index to the affine addresses of its blocks."""
    with Program("blocks") as p:
        w = p.tensor("w", (3 * 2 * 2 * T, T), bf16)      # 3 experts of 2 blocks of 2T rows
        selector = ops.input_stream("selector", Selector(3), (ragged("n"),))
        index = ops.map(fn.selector_index(), selector, name="index")
        addr = ops.flat_map(fn.affine_addresses((1, 2), scale=2), index, name="addresses")
        loaded = ops.random_offchip_load(addr, w, (2 * T, T), name="weights")
        total = ops.accum(fn.add(), loaded, rank=1, name="sum")
        ops.linear_offchip_store(total, p.tensor("y", (8 * T, T), bf16), name="store_y")
    return p


def scatter(acknowledged: bool, tile=(2 * T, T)) -> Program:
    """Tiles to the places that the host gives; where acknowledged, read back behind the store."""
    with Program("scatter") as p:
        x = p.tensor("x", (6 * tile[0], tile[1]), bf16)
        y = p.tensor("y", (9 * tile[0], tile[1]), bf16)
        addr = ops.input_stream("addr", U32, (6,))
        tiles = ops.linear_offchip_load(x, tile, shape=(6,), stride=(1,), name="load_x")
        ack = ops.random_offchip_store(addr, tiles, y, name="scatter")
        if acknowledged:
            again = ops.map(fn.mul(), addr, ops.map(fn.cast("u32"), ack, name="ones"), name="behind")
            back = ops.random_offchip_load(again, y, tile, name="back")
            ops.linear_offchip_store(back, p.tensor("z", (6 * tile[0], tile[1]), bf16), name="store_z")
    return p


def gather() -> Program:
    """Ragged gathers: ranges that the host gives as start and count, zero counts among them, and counters."""
    with Program("gather") as p:
        w = p.tensor("w", (12 * T, 2 * T), bf16)
        dims = (ragged("m"), ragged("n"))
        start, count = (ops.input_stream(name, U32, dims) for name in ("start", "count"))
        ranges = ops.flat_map(fn.address_range(), ops.zip(start, count, name="pairs"), name="ranges")
        rows = ops.random_offchip_load(ranges, w, (T, 2 * T), name="rows")
        ops.linear_offchip_store(rows, p.tensor("y", (20 * T, 2 * T), bf16), name="store_y")
        counted = ops.flat_map(fn.counter(), count, name="counts")
        ops.linear_offchip_store(ops.random_offchip_load(counted, w, (T, T), name="tiles"),
                                 p.tensor("z", (20 * T, T), bf16), name="store_z")
    return p


def arithmetic() -> Program:
    """Addresses by integer arithmetic on what the host gives."""
    with Program("arithmetic") as p:
        w = p.tensor("w", (24, 1), int32)
        a, b = (ops.input_stream(name, scalar(int32), (8,)) for name in "ab")
        u, v = ops.input_stream("u", U32, (8,)), ops.input_stream("v", scalar(int32), (8,))
        signed = ops.map(fn.max(), ops.map(fn.sub(), a, b), ops.map(fn.scale(constant=-2), b))
        addr = ops.map(fn.add(), ops.map(fn.mul(), ops.map(fn.cast("u32"), signed), u),
                       ops.map(fn.cast("u32"), ops.map(fn.cast("int8"), v)))
        ops.linear_offchip_store(ops.random_offchip_load(addr, w, (1, 1)), p.tensor("y", (8, 1), int32))
    return p


SENTENCES = [[3, 11, 0], [], [0, 0], [7]]


@pytest.mark.parametrize("tile", [(1, 4 * T), (T, T), (2 * T, 4 * T), (2 * T, 1), (1, 1)], ids=str)
def test_embedding(tile):
    run = agree(Design(embedding(tile), HW, {"addr": SENTENCES}))
    rows = np.array([a * tile[0] + r for sentence in SENTENCES for a in sentence for r in range(tile[0])])
    table = random_tensors(embedding(tile), 0)["table"]
    assert run.tensors["y"][:len(rows)].tobytes() == table[rows].tobytes()


def test_one_netlist_serves_all_tables():
    """How many words there are and which are asked for is a matter of registers and tokens."""
    designs = [Design(embedding((2 * T, n * T), words), HW, {"addr": sentences})
               for n, words, sentences in ((2, 12, SENTENCES), (6, 5, [[1], [2, 3, 4]]))]
    assert len({design.verilog.text for design in designs}) == 1


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 2, 2), (2, 3, 1)])
def test_weights_of_the_expert_that_a_selector_names(sizes):
    agree(Design(experts(3, *sizes), HW, {"selector": [{2}, {0}, {2}, {1}]}))


def test_many_experts():
    """Selectors wider than a word of the model."""
    agree(Design(experts(100, 1, 1, 1), HW, {"selector": [{99}, {0}, {64}, {63}]}))


def test_blocks_of_weights():
    agree(Design(blocks(), HW, {"selector": [{2}, {0}, {1}, {2}]}))
    agree(Design(blocks(), HW, {"selector": []}))


@pytest.mark.parametrize("hw", [HW, BANKED], ids=["simple", "banked"])
@pytest.mark.parametrize("acknowledged", [False, True])
def test_scatter(hw, acknowledged):
    """The run ends when all is in memory, the last of several tiles for one place; what is read behind an
    acknowledgement is new (each address once: another tile may follow before the read)."""
    addresses = [5, 0, 7, 8, 1, 3] if acknowledged else [5, 0, 5, 8, 1, 5]
    design = Design(scatter(acknowledged), hw, {"addr": addresses})
    run = agree(design)
    x = random_tensors(design.program, 0)["x"].reshape(6, 2 * T, T)
    y = run.tensors["y"].reshape(9, 2 * T, T)
    for place, last in {address: k for k, address in enumerate(addresses)}.items():
        assert y[place].tobytes() == x[last].tobytes()


@pytest.mark.parametrize("tile", [(T, T), (1, 2 * T), (1, 1)], ids=str)
def test_scatter_of_other_tiles(tile):
    agree(Design(scatter(True, tile), HW, {"addr": [5, 0, 7, 8, 1, 3]}))


def test_ragged_gather_with_zero_counts():
    given = {"start": [[0, 4], [], [9, 1, 2], [3]], "count": [[3, 0], [], [0, 0, 2], [0]]}
    run = agree(Design(gather(), HW, given))
    w = random_tensors(gather(), 0)["w"].reshape(12, T, 2 * T)
    assert run.tensors["y"].reshape(20, T, 2 * T)[:5].tobytes() == w[[0, 1, 2, 2, 3]].tobytes()
    agree(Design(gather(), HW, {"start": [[0]], "count": [[0]]}))


def test_addresses_by_arithmetic():
    """Signs, saturation and wrapping as in the functions themselves: else an address would be another one."""
    given = {"a": [5, -3, 0, 7, 2, 9, -100, 6], "b": [2, -5, 4, -4, 2, 9, 100, 1],
             "u": [1, 2, 1, 1, 1 << 31, 3, 7, 2], "v": [0, -4, 5, 1, 0, 3, 2, -129]}
    agree(Design(arithmetic(), HW, given))


def test_address_out_of_the_tensor():
    """Interpreter, RTL and model name the operator; the program is the same one."""
    design = Design(embedding(), HW, {"addr": [[3, 12]]})
    tensors = random_tensors(design.program, 0)
    with pytest.raises(StepError, match=r"'lookup'.*address 12 of element 1 vs tiles of tensor 'table' 0\.\.11"):
        design.interpret(tensors, lowered=False)
    with pytest.raises(RtlError, match=r"unit 'lookup' \(lookup .*\) raised ADDRESS_RANGE by cycle \d+; fix: keep the"):
        run_rtl(design, tensors, simulator="icarus", native=False)
    with pytest.raises(RtlError, match=r"unit 'lookup' \(.*\) raises ADDRESS_RANGE in cycle"):
        predict(design.graph, design.hw)


def test_store_out_of_the_tensor():
    design = Design(scatter(False), HW, {"addr": [5, 0, 9, 8, 1, 5]})
    with pytest.raises(RtlError, match=r"unit 'scatter' \(scatter .*\) raised ADDRESS_RANGE by cycle"):
        run_rtl(design, random_tensors(design.program, 0), simulator="icarus", native=False)
    with pytest.raises(RtlError, match=r"unit 'scatter' \(.*\) raises ADDRESS_RANGE in cycle"):
        predict(design.graph, design.hw)


def test_selector_without_an_index():
    design = Design(experts(3, 1, 1, 1), HW, {"selector": [{2}, {0, 1}, {1}, {1}]})
    with pytest.raises(RtlError, match=r"unit 'index' \(index .*\) raised SELECTOR by cycle"):
        run_rtl(design, random_tensors(design.program, 0), simulator="icarus", native=False)
    with pytest.raises(RtlError, match=r"unit 'index' \(.*\) raises SELECTOR in cycle"):
        predict(design.graph, design.hw)


def test_what_the_model_does_not_compute_is_refused_by_name():
    """An address that is an element of a tensor: RTL runs it, the model says that it cannot."""
    with Program("pointers") as p:
        pointers, w = p.tensor("pointers", (4, 1), u32), p.tensor("w", (4 * T, T), bf16)
        addr = ops.linear_offchip_load(pointers, (1, 1), shape=(4,), stride=(1,), name="load_pointers")
        rows = ops.random_offchip_load(ops.flatten(ops.repeat(addr, 1), 0, 1), w, (T, T), name="rows")
        ops.linear_offchip_store(rows, p.tensor("y", (4 * T, T), bf16))
    design = Design(p, HW)
    tensors = random_tensors(p, 0) | {"pointers": np.array([[2], [0], [3], [1]], dtype=np.uint32)}
    run = run_rtl(design, tensors, simulator="icarus", native=False)
    assert check(design, run, design.interpret(tensors)).bit_exact
    with pytest.raises(UnknownFunction, match=(
            r"the model of flat_map 'rows_tiles' \(rows_tiles \(test_random_programs.py:\d+\)\), which '\w+' steers: "
            r"values made by load 'load_pointers' \(load_pointers \(.*\) vs values that the model computes; fix: run")):
        predict(design.graph, design.hw)


def test_tiles_of_the_input_are_data():
    """A tile that the host gives as data steers nothing."""
    with Program("data") as p:
        x = ops.input_stream("x", Tile(T, T, bf16), (3,))
        ops.linear_offchip_store(ops.map(fn.add(), x, x), p.tensor("y", (3 * T, T), bf16))
    agree(Design(p, HW, {"x": [np.full((T, T), k).astype(bf16.numpy) for k in range(3)]}))


def counted() -> Program:
    """Sums of an input stream, and how many elements of a chunk are padding, are counts and addresses."""
    with Program("counted") as p:
        table = p.tensor("table", (16, 1), int32)
        parts = ops.input_stream("parts", U32, (ragged("n"), ragged("length")))
        sums = ops.accum(fn.add(), parts, rank=1, init=1, name="sums")
        largest = ops.accum(fn.max(), parts, rank=1, name="largest")
        _, flags = ops.reshape(sums, 2, pad=0, name="pairs")
        padding = ops.accum(fn.add(), ops.map(fn.cast("u32"), flags, name="flag"), rank=1, name="padding")
        for name, at in (("sum", sums), ("largest", largest), ("padding", padding)):
            addr = ops.flat_map(fn.counter(), at, name=f"count_{name}")
            ops.linear_offchip_store(ops.random_offchip_load(addr, table, (1, 1), name=f"look_up_{name}"),
                                     p.tensor(f"y_{name}", (64, 1), int32), name=f"store_{name}")
    return p


@pytest.mark.parametrize("parts", [[[1, 2], [], [3]], [[0]], [[5, 0, 2], [1]]], ids=str)
def test_values_of_folds_and_of_padding_flags(parts):
    """The model computes what it is steered by: sums, maxima, an empty group's init, flags of padding."""
    p = counted()
    data = p.operator("pairs").outputs[0]
    with p:
        ops.linear_offchip_store(data, p.tensor("y_data", (8, 1), u32), name="store_data")
    run = agree(Design(p, HW, {"parts": parts}))
    table = random_tensors(p, 0)["table"][:, 0]
    wanted = [table[i] for part in parts for i in range(1 + sum(part))]
    assert run.tensors["y_sum"][:len(wanted), 0].tolist() == wanted
