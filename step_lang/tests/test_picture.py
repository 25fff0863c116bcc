"""Pictures: complete, without overlaps, the same bytes every time."""

import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from examples import matmul, softmax, swiglu
from step_lang import BuildError, Program, draw, fn, int32, ops, picture, ragged, scalar

SVG = "{http://www.w3.org/2000/svg}"


def routed():
    """Long edges, several outputs, ragged shapes."""
    with Program("routed") as p:
        x = ops.input_stream("x", scalar(int32), (ragged("r"), ragged("q")))
        chunks, flags = ops.reshape(x, 4, pad=0)
        pairs = ops.zip(ops.flatten(chunks, 0, 1), ops.flatten(flags, 0, 1))
        ops.repeat(pairs, 2)
        ops.expand(ops.repeat(ops.accum(fn.add(), x, rank=1), 1), x, rank=1)
    return p


PROGRAMS = [swiglu.build, softmax.build, matmul.build, routed]


@pytest.mark.parametrize("build", PROGRAMS)
def test_nothing_overlaps(build):
    layers, _ = picture._graph(build(), {})
    picture._order(layers)
    width, height = picture._place(layers)
    boxes = [(n.x - n.width / 2, n.x + n.width / 2, n.y, n.y + n.height) for layer in layers for n in layer]
    assert all(0 < l and r < width and 0 < t and b < height for l, r, t, b in boxes)  # noqa: E741
    for (l1, r1, t1, b1), (l2, r2, t2, b2) in itertools.combinations(boxes, 2):
        assert r1 <= l2 + 1e-6 or r2 <= l1 + 1e-6 or b1 <= t2 or b2 <= t1


@pytest.mark.parametrize("build", PROGRAMS)
def test_shows_every_operator_shape_and_edge(build):
    program = build()
    root = ET.fromstring(picture.render(program))
    texts = [node.text for node in root.iter(f"{SVG}text")]
    names = [node.text for node in root.iter(f"{SVG}text") if node.get("font-weight") == "bold"]
    for op in program.operators:
        assert names[1:].count(op.name) == 1
    for stream in program.streams:
        assert str(stream.type) in texts and picture.format_shape(stream.shape) in texts
    arrows = [path for path in root.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(arrows) == sum(len(op.inputs) for op in program.operators)


def test_same_bytes_for_every_hash_seed(tmp_path):
    texts = set()
    for seed in ("0", "1", "77"):
        code = f"import step_lang, examples.swiglu as s; step_lang.draw(s.build(), r'{tmp_path}/{seed}.svg')"
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        texts.add((tmp_path / f"{seed}.svg").read_bytes())
    assert len(texts) == 1 and not list(tmp_path.glob("*.part"))


def test_not_writable(tmp_path):
    with pytest.raises(BuildError, match="not writable"):
        draw(softmax.build(), tmp_path / "missing" / "p.svg")
