"""Unit graphs: structure, registers, placement of tensors, what does not fit."""

from __future__ import annotations

import dataclasses

import pytest

from examples import matmul, softmax, swiglu
from step_lang import Program, Selector, Tile, bf16, bool_, fn, fp32, int8, int32, ops, ragged, scalar, u32
from step_lang.errors import ConfigError, HardwareTooSmall, ProgramError, TypeMismatch, UnknownFunction
from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import lower
from step_lang.mapping import REGISTERS, build_unit_graph
from step_lang.mapping.builder import Builder
from step_lang.mapping.operators import MAPPERS
from step_lang.memory_config import MemoryConfig

HW = HardwareConfig(tile=2)


def graph_of(program, hw=HW, inputs=None):
    lowered = lower(program, hw)
    return build_unit_graph(lowered, hw, lowered.physical_inputs(inputs or {}))


def small_swiglu(**sizes):
    return swiglu.build(8, 16, 16, **{"tile_b": 4, "tile_f": 8, **sizes})


def unused(*streams):
    for stream in streams:
        stream.optional = True


def stored(program, stream, rows, cols, dtype=bf16):
    """Store ``stream`` of tiles to a tensor of its own."""
    ops.linear_offchip_store(stream, program.tensor("y", (rows, cols), dtype), name="store_y")


def test_units_and_links_have_names_that_a_person_finds():
    graph = graph_of(small_swiglu())
    names = [unit.name for unit in graph.units]
    assert len(set(names)) == len(names)
    assert {"gate_matmul", "up_matmul", "gate_silu", "down_matmul", "store_y", "hbm"} <= set(names)
    links = [link.name for link in graph.links]
    assert len(set(links)) == len(links)
    assert {"gate_matmul", "load_x_passes__to__gate_matmul", "load_x_passes__to__up_matmul"} <= set(links)
    assert graph.unit("gate_matmul").origin.startswith("gate_matmul (swiglu.py:")


@pytest.mark.parametrize("program", [small_swiglu(), softmax.build(8, 16, 4), matmul.build(8, 8, 8, 4, 4, 4)],
                         ids=lambda program: program.name)
def test_links_and_units_agree(program):
    graph = graph_of(program)
    for unit in graph.units:
        assert graph.units[unit.index] is unit
        for port, link in enumerate(unit.inputs):
            assert graph.links[link].destination == (unit.index, port)
        for port, link in enumerate(unit.outputs):
            assert graph.links[link].source == (unit.index, port)
        assert set(unit.config) == set(REGISTERS.get(unit.kind, {}))
        for register, value in unit.config.items():
            assert 0 <= value < 1 << REGISTERS[unit.kind][register]
    assert sum(len(unit.inputs) for unit in graph.units) == len(graph.links) == sum(len(u.outputs) for u in graph.units)
    assert [unit.name for unit in graph.units if unit.is_sink] == [f"store_{'c' if program.name == 'matmul' else 'y'}"]


def structure(graph):
    """All that a netlist depends on."""
    return ([(u.kind, u.name, u.inputs, u.outputs, u.params, list(u.config), u.is_sink) for u in graph.units],
            [(link.name, link.payload.data_bits, link.payload.max_rows, link.depth, link.source, link.destination)
             for link in graph.links])


def test_one_structure_serves_all_tilings_of_figure_8():
    hw = HardwareConfig(tile=16)
    graphs = [graph_of(swiglu.build(64, 256, 512, b, f), hw) for b in (16, 32, 64) for f in (16, 32, 64, 128, 256)]
    for graph in graphs[1:]:
        assert structure(graph) == structure(graphs[0])
    assert len({str([u.config for u in graph.units]) for graph in graphs}) == 15
    assert not graphs[0].warnings


def test_one_structure_serves_other_sizes_of_a_program():
    for build in (lambda n, t: softmax.build(n, 2 * n, t), lambda n, t: matmul.build(n, n, n, t, t, t)):
        graphs = [graph_of(build(n, t)) for n, t in ((4, 2), (8, 8), (8, 2), (2, 2))]
        for graph in graphs[1:]:
            assert structure(graph) == structure(graphs[0])


def test_registers_of_views():
    load = graph_of(small_swiglu()).unit("load_w_gate").config
    # [2 batches, 2 tiles of F, 4 columns, 8 rows] of a grid of 8 x 8 tiles, read by columns
    assert [load[f"count{k}"] for k in range(6)] == [8, 4, 2, 2, 1, 1]
    assert [load[f"stride{k}"] for k in range(6)] == [8, 1, 4, 0, 0, 0]
    assert (load["dims"], load["limit"], load["base"] % MemoryConfig().alignment) == (4, 64, 0)


def test_registers_of_folds():
    graph = graph_of(small_swiglu())
    assert graph.unit("gate_matmul").config == {"rank": 1, "inner": 1, "n1": 1, "n0": 2, "hollow": 0}
    assert graph.unit("down_matmul").config == {"rank": 2, "inner": 2, "n1": 8, "n0": 2, "hollow": 0}
    assert graph.unit("gate_matmul").params["init"] == 0
    assert graph_of(softmax.build(8, 16, 4)).unit("row_max_fold").params["init"] == 0xFF80   # minus infinity


def mapped(stream, hw=HW):
    """The unit that the producer of ``stream``, of physical tiles, becomes."""
    builder = Builder(stream.program, hw, {})
    MAPPERS[stream.producer.kind].build(builder, stream.producer)
    return builder.graph.units[0]


def test_dynamic_tiles_and_open_folds():
    rows, many = ragged("rows"), ragged("R")
    with Program("p"):
        a = ops.input_stream("a", Tile(rows, 2, bf16), (ragged("D"), 3, many, 2))
        b = ops.input_stream("b", Tile(2, 2, bf16), (ragged("D"), 3, many, 2))
        product = mapped(ops.accum(fn.matmul(), a, b, rank=1, inner=2, hollow=True))
        line = mapped(ops.accum(fn.max(), ops.flatten(a, 0, 1), rank=1, inner=1))
        largest = mapped(ops.map(fn.row_max(), a))
        sums = mapped(ops.scan(fn.add(), a, rank=1))
        full = mapped(ops.map(fn.add(), b, b))
        last = mapped(ops.accum(fn.last(), a, rank=2))
    assert product.config == {"rank": 1, "inner": 2, "n1": 0, "n0": 2, "hollow": 1}
    assert line.config == {"rank": 1, "inner": 1, "n1": 1, "n0": 0, "hollow": 0}
    assert product.params["entries"] == line.params["entries"] == HW.accumulator_entries
    assert product.params["in_types"] == (Tile(2, 2, bf16),) * 2 and product.params["out_type"] == Tile(2, 2, fp32)
    assert largest.params["out_type"] == Tile(2, 1, bf16)
    assert [unit.params["masked"] for unit in (product, line, largest, sums, full, last)] == [True] * 4 + [False, True]
    assert last.params["rows_per_cycle"] == 2  # wires


def test_a_row_of_an_open_state_must_fit():
    with Program("p"):
        x = ops.input_stream("x", Tile(2, 2, bf16), (ragged("D"), 3, ragged("R"), 9))
        y = ops.accum(fn.add(), x, rank=1, inner=2, name="fold")
    with pytest.raises(HardwareTooSmall, match=r"at least 1 x 9 tiles vs 8 entries.*entries to at least 9"):
        mapped(y, dataclasses.replace(HW, accumulator_entries=8))


def test_registers_of_functions_and_shape_operators():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (8, 8), bf16), (2, 4))
        x = ops.map(fn.scale(-2.0), x, name="scale")
        x = ops.flatten(x, 0, 1, name="all")
        x, _ = ops.reshape(x, 3, pad=1.0, name="pad")
        x = ops.repeat(x, 2, name="twice")
        x = ops.promote(x, name="whole")
        stored(p, x, 48, 4)
    graph = graph_of(p)
    assert graph.unit("scale").config == {"constant": 0xC000}
    assert graph.unit("all").config == {"lo": 2, "hi": 3, "rank": 3}
    assert graph.unit("pad").config == {"dim": 2, "flag_rank": 2, "chunk": 3, "inner1": 2, "inner0": 1}
    assert graph.unit("pad").params["pad"] == 0x3F803F803F803F80
    assert not graph.unit("pad").params["flags"]
    assert graph.unit("twice").config["count2"] == 2 and graph.unit("twice").config["affine"] == 1
    assert graph.unit("whole").config == {"rank": 4}


def test_tensors_lie_one_after_the_other_on_whole_lines():
    graph = graph_of(small_swiglu())
    line = MemoryConfig().alignment
    end = 0
    for placement in graph.tensors.values():
        assert placement.base == end and placement.nbytes % line == 0
        end += placement.nbytes
    assert list(graph.tensors) == ["x", "w_gate", "w_up", "w_down", "y"]
    assert graph.tensors["x"].element_bytes == 8 and graph.tensors["x"].grid == (4, 8)


def test_a_reference_read_by_two_streamifies_is_freed_by_both():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (8, 8), bf16), (2, 4), shape=(8,))
        buffers = ops.bufferize(ops.promote(x), 1, name="buffers")
        a, b = ops.streamify(buffers, repeat=1, name="a"), ops.streamify(buffers, repeat=1, name="b")
        stored(p, ops.map(fn.add(), a, b), 8, 8)
    graph = graph_of(p)
    assert graph.unit("buffers").config["uses"] == 2
    assert graph.unit("buffers_scratchpad").params["readers"] == 2
    pad = graph.unit("buffers_scratchpad").index
    assert [graph.unit(n).params["ports"] for n in "ab"] == [((pad, 0),), ((pad, 1),)]


def test_input_streams():
    with Program("p") as p:
        a = ops.input_stream("a", scalar(u32), (2, 3))
        b = ops.input_stream("b", Tile(2, 2, bf16), (2, ragged("n")))
        stored(p, b, 32, 2)
        ops.linear_offchip_store(a, p.tensor("z", (6, 1), u32), name="store_z")
    graph = graph_of(p, inputs={"b": [[[[1, 2], [3, 4]]] * 2, [[[1, 2], [3, 4]]]]})
    assert graph.unit("a").config["regular"] == 1 and graph.unit("a").config["limit"] == 6
    b = graph.unit("b")
    assert b.config["regular"] == 0 and b.config["limit"] == 3
    assert b.params["tokens"] == [2, 3, 3, 0x30]    # stops of the physical stream, then done
    assert graph.tensors["b"].is_input and graph.tensors["b"].grid == (3, 1)


def test_registers_of_routing():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (8, 8), bf16), (8, 4), shape=(2,), name="load_x")
        selector = ops.input_stream("selector", Selector(70), (2,))
        parts = ops.partition(x, selector, rank=0, num_consumers=2, name="route")
        data, names = ops.eager_merge(parts, name="merge")
        again = ops.partition(data, names, rank=0, name="again")
        stored(p, ops.reassemble(again, selector, name="gather"), 16, 8)
    graph = graph_of(p, inputs={"selector": [{0}, {1}]})
    assert graph.unit("route").config == {"rank": 2}
    assert graph.unit("merge").config == {"rank": 2} and graph.unit("merge").params == {"selector": True}
    assert graph.unit("gather").config == {"rank": 2, "hollow": 1}
    assert graph.unit("selector").params["values"] == [1, 2]
    assert graph.link("merge_selector").payload.data_bits == 2
    assert graph.tensors["selector"].element_bytes == 16


def test_selectors_that_nobody_reads_have_no_port():
    with Program("p") as p:
        x = [ops.linear_offchip_load(p.tensor(n, (4, 4), bf16), (4, 4), name=f"load_{n}") for n in "ab"]
        stored(p, ops.eager_merge(x, name="merge")[0], 8, 4)
    unit = graph_of(p).unit("merge")
    assert unit.params == {"selector": False} and len(unit.outputs) == 1


def routed_readers(p, parts):
    for k, part in enumerate(parts):
        ops.linear_offchip_store(ops.streamify(part, repeat=1, name=f"read{k}"), p.tensor(f"y{k}", (64, 8), bf16))


def loaded_buffers(p, name="buffers"):
    x = ops.linear_offchip_load(p.tensor(f"x_{name}", (8, 8), bf16), (2, 4), shape=(4, 2))
    return ops.bufferize(x, 1, name=name)


def test_routed_buffers():
    """The partition has a port of the scratchpad, and says how many uses each output makes of a reference."""
    with Program("p") as p:
        selector = ops.input_stream("selector", Selector(2), (4,))
        one, two = ops.partition(loaded_buffers(p), selector, rank=0, name="route")
        routed_readers(p, [one, two, two, ops.repeat(two, 3)])
    graph = graph_of(p, inputs={"selector": [{0}, {1}, set(), {0, 1}]})
    pad, route = graph.unit("buffers_scratchpad"), graph.unit("route")
    assert (pad.params["readers"], pad.params["routers"]) == (4, 1)
    assert route.params == {"ports": ((pad.index, 0),), "uses": (1, 5)}
    assert graph.unit("buffers").config["uses"] == 1
    assert sorted(graph.unit(f"read{k}").params["ports"] for k in range(4)) == [((pad.index, k),) for k in range(4)]


def test_uses_of_copied_references():
    """Forks, copies and partitions each count; a reference as a pass request does not."""
    with Program("p") as p:
        refs = loaded_buffers(p)
        selector = ops.input_stream("selector", Selector(2), (4,))
        routed_readers(p, [refs, ops.repeat(ops.repeat(refs, 2), 3), *ops.partition(refs, selector, rank=0)])
        ops.linear_offchip_store(ops.streamify(refs, ref=refs), p.tensor("again", (8, 8), bf16))
    assert graph_of(p, inputs={"selector": [{0}] * 4}).unit("buffers").config["uses"] == 1 + 6 + 1 + 1


def test_buffers_that_nobody_reads():
    with Program("p") as p:
        values = loaded_buffers(p, "values")
        ops.linear_offchip_store(ops.streamify(values, ref=loaded_buffers(p, "requests")),
                                 p.tensor("y", (8, 8), bf16))
    graph = graph_of(p)
    assert graph.unit("requests").config["uses"] == 0 and graph.unit("values").config["uses"] == 1


def test_more_uses_than_can_be_counted():
    with Program("p") as p:
        selector = ops.input_stream("selector", Selector(2), (4,))
        refs = ops.repeat(loaded_buffers(p), 100)
        parts = ops.partition(refs, ops.repeat(selector, 100), rank=0)
        routed_readers(p, [*parts, parts[0]])
    with pytest.raises(HardwareTooSmall, match=r"bufferize 'buffers' .*uses of a buffer: up to 300 vs 255"):
        graph_of(p, inputs={"selector": [{0}] * 4})


def test_buffers_of_several_bufferizes_meet():
    """Each reader and router of the family has a port at all its scratchpads; a bufferize of its own is left alone."""
    with Program("p") as p:
        refs = [loaded_buffers(p, name) for name in ("one", "other", "third")]
        selector = ops.input_stream("selector", Selector(2), (8,))
        parts = ops.partition(ops.eager_merge(refs[:2], name="merge")[0], selector, rank=0, name="route")
        routed_readers(p, [*parts, refs[1], refs[2]])
    graph = graph_of(p, inputs={"selector": [{0}] * 8})
    pads = [graph.unit(f"{name}_scratchpad") for name in ("one", "other", "third")]
    assert [(pad.params["readers"], pad.params["routers"]) for pad in pads] == [(3, 1), (3, 1), (1, 0)]
    assert [graph.unit(name).params["owner"] for name in ("one", "other", "third")] == [0, 1, 0]
    assert graph.unit("route").params == {"ports": ((pads[0].index, 0), (pads[1].index, 0)), "uses": (1, 1)}
    assert len(graph.unit("read0").params["ports"]) == 2 and graph.unit("read3").params["ports"] == (
        (pads[2].index, 0),)
    own = graph.link("third").payload.data_bits     # buffer and generation
    assert {link.payload.data_bits for link in graph.links if link.stream in ("one", "merge", "route_0")} == {own + 1}


def copied_references(read, **hardware):
    """Units of a program in which other data copy references, to whoever ``read(copies)`` says."""
    with Program("p") as p:
        ref = ops.input_stream("ref", scalar(u32), (4, ragged("R")))
        routed_readers(p, read(ops.expand(ops.repeat(loaded_buffers(p), 1), ref, 1, name="copy")))
    return graph_of(p, dataclasses.replace(HW, **hardware), {"ref": [[1], [1], [1], [1]]})


def test_references_copied_by_other_data():
    """Copies are counted as they leave: in more bits, since only links bound them."""
    graph = copied_references(lambda copies: [copies] * 17)
    pad = graph.unit("buffers_scratchpad")
    assert (pad.params["uses_bits"], pad.params["routers"]) == (24, 1)
    assert graph.unit("copy").params == {"ports": ((pad.index, 0),), "uses": (17,)}


def test_more_copies_than_can_be_counted():
    """Of one element, with the value that is kept for the next; and in links."""
    with pytest.raises(HardwareTooSmall, match="uses of a buffer: up to 256 vs 255"):
        copied_references(lambda copies: [ops.repeat(copies, 255)])
    with pytest.raises(HardwareTooSmall, match=r"uses of a buffer of 'buffers_scratchpad': up to \d+, those of \d+ "
                                               r"references in links, vs 16777215; fix: make the links of references "):
        copied_references(lambda copies: [copies] * 17, link_depth=4096)


def test_compute_bandwidth_buys_rows():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (8, 8), bf16), (8, 8))
        slow = ops.map(fn.silu(), x, compute_bw=1, name="slow")
        fast = ops.map(fn.silu(), slow, compute_bw=1000, name="fast")
        half = ops.map(fn.silu(), fast, compute_bw=8, name="half")
        default = ops.map(fn.silu(), half, name="default")
        stored(p, default, 8, 8)
    graph = graph_of(p, HardwareConfig(tile=4))
    assert [graph.unit(n).params["rows_per_cycle"] for n in ("slow", "fast", "half", "default")] == [1, 4, 2, 1]


def test_link_depths():
    hw = dataclasses.replace(HW, link_depth=3, link_depths={"gate_matmul": 9})
    graph = graph_of(small_swiglu(), hw)
    assert graph.link("gate_matmul").depth == 9 and graph.link("up_matmul").depth == 3
    with pytest.raises(ConfigError, match=r"key 'link.depths.gate': no such link vs load_x, "):
        graph_of(small_swiglu(), dataclasses.replace(HW, link_depths={"gate": 9}))


# What does not fit


def test_too_few_accumulator_entries():
    with pytest.raises(HardwareTooSmall, match=r"accum 'down_matmul' \(swiglu.py:\d+\): states: 8 x 2 tiles vs 8 "
                                               r"entries.*set accumulator.entries to at least 16"):
        graph_of(small_swiglu(), dataclasses.replace(HW, accumulator_entries=8))


def test_too_small_a_scratchpad():
    hw = dataclasses.replace(HW, scratchpad_frames=8, page_frames=4)
    with pytest.raises(HardwareTooSmall, match=r"bufferize 'load_x_buffer' \(swiglu.py:\d+\): buffer of 16 tiles: 4 "
                                               r"pages of 4 vs 2.*set scratchpad.frames to at least 16"):
        graph_of(small_swiglu(), hw)


def test_a_scratchpad_for_one_buffer_warns():
    graph = graph_of(small_swiglu(), dataclasses.replace(HW, scratchpad_frames=16))
    assert len(graph.warnings) == 1 and graph.warnings[0].startswith("bufferize 'load_x_buffer' (swiglu.py:")


def test_too_small_a_memory():
    hw = dataclasses.replace(HW, memory=MemoryConfig(capacity_bytes=1024))
    with pytest.raises(HardwareTooSmall, match=r"off-chip memory for 'w_up': 1280 bytes vs 1024; fix: raise memory"):
        graph_of(small_swiglu(), hw)


def test_too_many_loops_of_a_view():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (64, 64), bf16), (4, 4), shape=(2, 2, 2, 2, 2),
                                    stride=(1, 2, 4, 16, 32), name="load_x")
        unused(x)
        stored(p, x, 128, 4)
    with pytest.raises(HardwareTooSmall, match=r"load_x'.*7 dimensions.*vs 6 loops"):
        graph_of(p)


def test_too_many_ranks():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (2, 2), bf16), (2, 2))
        for _ in range(12):
            x = ops.promote(x)
        stored(p, x, 2, 2)
    graph_of(p)
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (2, 2), bf16), (2, 2))
        for _ in range(13):
            x = ops.promote(x)
        stored(p, x, 2, 2)
    with pytest.raises(HardwareTooSmall, match=r"promote 'promote_12'.*rank 16 vs at most 15; fix"):
        graph_of(p)


def test_function_without_hardware():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (4, 4), int8), (4, 1), shape=(2, 2), stride=(2, 1))
        stored(p, ops.accum(fn.concat_cols(), x, rank=1, name="pack"), 4, 4, int8)
    with pytest.raises(UnknownFunction, match=r"accum 'pack' \(test_mapping.py:\d+\): function 'concat_cols' vs a"):
        graph_of(p)


def test_one_tensor_in_two_sorts_of_physical_tiles():
    with Program("p") as p:
        x = p.tensor("x", (4, 4), fp32)
        a = ops.linear_offchip_load(x, (2, 4), shape=(2,), name="by_tiles")
        b = ops.linear_offchip_load(x, (1, 4), shape=(2,), name="by_rows")
        stored(p, ops.map(fn.add(), a, b), 4, 4, fp32)
    with pytest.raises(ProgramError, match=r"rows'.*'x' in physical tiles of Tile\(2, 2, fp32\) vs Tile\(1, 2, fp32\)"):
        graph_of(p)


def test_lowered_for_another_tile():
    with pytest.raises(ConfigError, match=r"lowered to T = 2 vs tile.size = 4"):
        build_unit_graph(lower(small_swiglu(), 2), HardwareConfig(tile=4))


def test_elements_whose_bytes_are_not_those_of_their_type():
    """Tiles of bool are packed, a byte for 2 x 2: traffic would not be that of the metrics."""
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (4, 4), bool_), (4, 4), name="mask")
        ops.linear_offchip_store(ops.map(fn.cast(dtype="int8"), x), p.tensor("y", (4, 4), int8))
    with pytest.raises(TypeMismatch, match=r"load 'mask' .*'x', Tile\(2, 2, bool\): 4 bytes .* vs 1 .*; fix: .*int8"):
        graph_of(p)


def test_open_dimensions_are_loops_of_count_zero():
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (2, ragged("R"), 3))
        read = ops.streamify(ops.bufferize(x, 2), repeat=2, shape=(3, None), stride=(1, 3), name="read")
        ops.linear_offchip_store(read, p.tensor("y", (18, 1), int32))
    config = graph_of(p, inputs={"x": [[[1, 2, 3]], [[1, 2, 3], [4, 5, 6]]]}).unit("read").config
    assert config["affine"] == 1 and config["n"] == 2
    assert [config[f"count{k}"] for k in range(4)] == [0, 3, 1, 1]
    assert [config[f"stride{k}"] for k in range(4)] == [3, 1, 0, 0]
