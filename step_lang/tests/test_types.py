"""Types and dimensions."""

import numpy as np
import pytest
import sympy

from step_lang import BufferRef, Selector, Tile, Tuple, bf16, bool_, dynamic, fp32, int8, ragged, scalar, u32
from step_lang.dims import Ragged, as_shape, ceil_div, dims_equal, elements, product
from step_lang.errors import BadParameter
from step_lang.types import DTYPES, types_equal


def fresh():
    return Ragged("r.fresh")


def test_element_types():
    assert {name: (d.bits, d.bytes) for name, d in DTYPES.items()} == {
        "bf16": (16, 2), "fp16": (16, 2), "fp32": (32, 4), "int8": (8, 1), "int32": (32, 4), "u32": (32, 4),
        "bool": (1, 1)}
    for dtype in DTYPES.values():
        assert np.zeros(3, dtype.numpy).nbytes == 3 * dtype.bytes


def test_bytes_of_types():
    rows = dynamic("rows")
    assert Tile(16, 8, bf16).nbytes == 256
    assert Tile(rows, 8, fp32).nbytes == 32 * rows
    assert Selector(9).nbytes == 2
    assert Tuple((scalar(u32), Selector(8), scalar(bool_))).nbytes == 6
    buffer = BufferRef(Tile(2, 2, int8), (rows, 3))
    assert buffer.content_bytes == 12 * rows and buffer.nbytes == 4


@pytest.mark.parametrize("make, word", [
    (lambda: Tile(0, 1, bf16), "rows"), (lambda: Tile(1, -1, bf16), "-1"), (lambda: Tile(1, 1, None), "dtype"),  # type: ignore[arg-type]
    (lambda: Selector(0), "1..128"), (lambda: Selector(129), "129"), (lambda: Tuple((scalar(u32),)), "at least 2"),
    (lambda: as_shape((2, 1.5)), "1.5"), (lambda: as_shape(3), "sequence"),
    (lambda: dynamic("not a name"), "identifier"),
])
def test_bad_types(make, word):
    with pytest.raises(BadParameter, match=word):
        make()


def test_ragged_absorbs():
    r, d = ragged("r"), dynamic("D")
    assert product((2, 3), fresh) == 6
    assert product((2, d), fresh) == 2 * d
    assert product((2, r), fresh) == fresh()
    assert product((1, r), fresh) == r
    assert product((d, r), fresh) == fresh()
    assert ceil_div(7, 4, fresh) == 2
    assert ceil_div(d, 4, fresh) == sympy.ceiling(d / 4)
    assert ceil_div(r, 4, fresh) == fresh()
    assert ceil_div(r, 1, fresh) == r


def test_elements_of_shapes():
    r, d = ragged("r"), dynamic("D")
    assert elements((2, d, 3)) == 6 * d
    assert elements((r,)) == r
    ragged_count = elements((2, r))
    assert isinstance(ragged_count, Ragged) and ragged_count != r and ragged_count == elements((2, r))
    assert elements((2, r, d, 4)) == 4 * d * ragged_count
    assert elements((r, r)) not in (r * r, ragged_count)


def test_dims_equal_as_expressions():
    d = dynamic("D")
    assert dims_equal(2 * (d + 1), 2 * d + 2) and not dims_equal(d, d + 1) and dims_equal(4, sympy.Integer(4))
    assert dynamic("D") == d and ragged("D") != d


def test_types_equal():
    d = dynamic("D")
    assert types_equal(Tile(2 * d, 1, bf16), Tile(d + d, 1, bf16))
    assert not types_equal(Tile(2, 1, bf16), Tile(2, 1, fp32))
    assert types_equal(Tile(ragged("r"), 1, bf16), Tile(7, 1, bf16))
    assert not types_equal(BufferRef(scalar(u32), (2,)), BufferRef(scalar(u32), (3,)))
    assert not types_equal(Selector(2), scalar(u32))
