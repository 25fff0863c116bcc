"""A picture of a program: an SVG of its operators, with shape and type of every stream on the edges.

The layout is layered (Sugiyama): operators and the labels of their streams are nodes in alternating layers, long edges
get bends in the layers they cross, each layer is ordered to avoid crossings, and nodes in a layer keep apart, so
nothing overlaps. It depends on the program alone: the same program gives the same bytes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from .dims import format_shape
from .errors import BuildError
from .program import Program

__all__ = ["COLOURS", "Mark", "draw", "render"]

COLOURS = {
    "memory": ("#dbeafe", "#2563eb"),
    "compute": ("#fee2e2", "#dc2626"),
    "shape": ("#dcfce7", "#16a34a"),
    "routing": ("#fef3c7", "#d97706"),
}
"""Fill and line colour by `Operator.category`."""

CHAR, LINE, GAP, LAYER_GAP, MARGIN = 6.65, 15.0, 18.0, 24.0, 20.0
"""Pixels: width of a character, height of a text line, least distance in and between layers, border."""

SWEEPS = 12


@dataclass(frozen=True)
class Mark:
    """What a picture says of an operator beside its name: ``fill`` colour, a line of ``text``, and ``title``, which is
    shown when the pointer rests on it."""

    fill: str
    text: str
    title: str


@dataclass(eq=False)
class _Node:
    kind: str  # "op", "label" or "bend"
    lines: tuple[str, ...] = ()
    category: str = ""
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    up: list[_Node] = field(default_factory=list)
    down: list[_Node] = field(default_factory=list)
    mark: Mark | None = None

    @property
    def width(self) -> float:
        padding = {"op": 18.0, "label": 6.0, "bend": 0.0}[self.kind]
        return max((len(line) for line in self.lines), default=0) * CHAR + padding

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + {"op": 10.0, "label": 2.0, "bend": 0.0}[self.kind]


def draw(program: Program, path: str | os.PathLike[str]) -> None:
    """Write the picture of ``program`` to ``path`` (``.svg``). Raises `BuildError` where it cannot be written."""
    text = render(program)
    temporary = f"{os.fspath(path)}.part"
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise BuildError(f"picture '{os.fspath(path)}': not writable vs {error.strerror}",
                         fix="choose a directory that can be written") from None


def render(program: Program, marks: Mapping[str, Mark] | None = None) -> str:
    """The picture of ``program`` as SVG text; ``marks`` of operators by name. A marked operator is a group of class
    ``operator`` with its name in ``data-operator``."""
    layers, edges = _graph(program, marks or {})
    _order(layers)
    width, height = _place(layers)
    return _svg(program, layers, edges, width, height)


# Nodes and layers


def _graph(program: Program, marks: Mapping[str, Mark]) -> tuple[list[list[_Node]], list[tuple[list[_Node], bool]]]:
    """Layers of nodes, and edges as chains of nodes with whether an arrow ends them."""
    ops = {id(op): _Node("op", (op.name, _subtitle(op)), op.category) for op in program.operators}
    for op in program.operators:
        if op.name in marks:
            node = ops[id(op)]
            node.mark, node.lines = marks[op.name], (*node.lines, marks[op.name].text)
    order = program.topological()
    levels = {id(op): 0 for op in order}
    for op in order:
        if not op.breaks_cycle:
            levels[id(op)] = max((levels[id(s.producer)] + 1 for s in op.inputs), default=0)
    # Sources, and what only they feed, move down to where they are used.
    movable: set[int] = set()
    for op in order:
        if op.breaks_cycle or all(id(s.producer) in movable and len(s.consumers) == 1 for s in op.inputs):
            movable.add(id(op))
    for op in reversed(order):
        users = [levels[id(user)] for s in op.outputs for user in s.consumers if not user.breaks_cycle]
        if users and id(op) in movable:
            levels[id(op)] = min(users) - 1

    nodes: list[_Node] = []
    edges: list[tuple[list[_Node], bool]] = []

    def connect(upper: _Node, lower: _Node, arrow: bool) -> None:
        chain = [upper]
        for layer in range(upper.layer + 1, lower.layer):
            bend = _Node("bend", layer=layer)
            nodes.append(bend)
            chain.append(bend)
        chain.append(lower)
        for a, b in itertools.pairwise(chain):
            a.down.append(b)
            b.up.append(a)
        edges.append((chain, arrow))

    for op in program.operators:
        ops[id(op)].layer = 2 * levels[id(op)]
        nodes.append(ops[id(op)])
    for op in program.operators:
        for stream in op.outputs:
            label = _Node("label", (format_shape(stream.shape), str(stream.type)), layer=2 * levels[id(op)] + 1)
            nodes.append(label)
            connect(ops[id(op)], label, False)
            for user in stream.consumers:
                lower = ops[id(user)]
                if lower.layer > label.layer:
                    connect(label, lower, True)
                else:  # against the flow, around a loop
                    edges.append(([label, lower], True))
    layers: list[list[_Node]] = [[] for _ in range(1 + max(node.layer for node in nodes))]
    for node in nodes:
        layers[node.layer].append(node)
    return layers, edges


def _subtitle(op) -> str:
    detail = op.describe()
    return f"{op.kind} {detail}" if detail else op.kind


# Order within layers


def _order(layers: list[list[_Node]]) -> None:
    """Reorder each layer by the mean position of its neighbours, keeping the order with the fewest crossings."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        for layer in layers[1:] if downward else layers[-2::-1]:
            at = {id(n): i for other in layers for i, n in enumerate(other)}

            def centre(node: _Node, at: dict[int, int] = at, downward: bool = downward) -> float:
                near = node.up if downward else node.down
                return sum(at[id(n)] for n in near) / len(near) if near else float(at[id(node)])

            layer.sort(key=centre)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, kept in zip(layers, best):
        layer[:] = kept


def _crossings(layers: list[list[_Node]]) -> int:
    total = 0
    for upper, lower in itertools.pairwise(layers):
        at = {id(node): i for i, node in enumerate(lower)}
        pairs = [(i, at[id(b)]) for i, a in enumerate(upper) for b in a.down]
        total += sum((a < c) != (b < d) for k, (a, b) in enumerate(pairs) for c, d in pairs[:k] if a != c and b != d)
    return total


# Coordinates


def _place(layers: list[list[_Node]]) -> tuple[float, float]:
    """Give every node its centre ``x`` and top ``y``; return the picture's size."""
    y = MARGIN + 2 * LINE
    for layer in layers:
        tallest = max(node.height for node in layer)
        for node in layer:
            node.y = y + (tallest - node.height) / 2
        y += tallest + LAYER_GAP
        _spread(layer, [0.0] * len(layer))
    for sweep in range(2 * SWEEPS):
        downward = sweep % 2 == 0
        for layer in layers if downward else layers[::-1]:
            wanted = []
            for node in layer:
                near = (node.up or node.down) if downward else (node.down or node.up)
                wanted.append(sum(n.x for n in near) / len(near) if near else node.x)
            _spread(layer, wanted)
    left = min(node.x - node.width / 2 for layer in layers for node in layer) - MARGIN
    for layer in layers:
        for node in layer:
            node.x -= left
    width = max(node.x + node.width / 2 for layer in layers for node in layer) + MARGIN
    return max(width, 520.0), y - LAYER_GAP + MARGIN


def _spread(layer: Sequence[_Node], wanted: Sequence[float]) -> None:
    """Place nodes as near to ``wanted`` as least squares allow with their order and distances kept (pool adjacent
    violators)."""
    offsets = [0.0]
    for a, b in itertools.pairwise(layer):
        offsets.append(offsets[-1] + (a.width + b.width) / 2 + GAP)
    pools: list[tuple[float, int]] = []  # mean, members
    for value, offset in zip(wanted, offsets):
        mean, count = value - offset, 1
        while pools and pools[-1][0] > mean:
            other, members = pools.pop()
            mean = (mean * count + other * members) / (count + members)
            count += members
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    for node, mean, offset in zip(layer, means, offsets):
        node.x = mean + offset


# SVG


def _svg(program: Program, layers: list[list[_Node]], edges: Sequence[tuple[list[_Node], bool]], width: float,
         height: float) -> str:
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        'font-size="11">',
        f"<title>{escape(program.name)}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0.5 L8,4 L0,7.5 z" fill="#475569"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{MARGIN:.1f}" y="{MARGIN + 4:.1f}" font-size="14" font-weight="bold">{escape(program.name)}</text>',
    ]
    x = MARGIN + len(program.name) * 9 + 30
    for category, (fill, line) in COLOURS.items():
        out.append(f'<rect x="{x:.1f}" y="{MARGIN - 6:.1f}" width="12" height="12" rx="3" fill="{fill}" '
                   f'stroke="{line}"/>')
        out.append(f'<text x="{x + 17:.1f}" y="{MARGIN + 4:.1f}" fill="#475569">{category}</text>')
        x += 17 + len(category) * CHAR + 22
    for chain, arrow in edges:
        marker = ' marker-end="url(#arrow)"' if arrow else ""
        out.append(f'<path d="{_path(chain)}" fill="none" stroke="#475569" stroke-width="1.2"{marker}/>')
    for layer in layers:
        for node in layer:
            out += _box(node)
    return "\n".join([*out, "</svg>", ""])


def _path(chain: Sequence[_Node]) -> str:
    first, last = chain[0], chain[-1]
    x, y = first.x, first.y + first.height
    parts = [f"M{x:.1f},{y:.1f}"]
    for node in chain[1:]:
        nx, ny = node.x, node.y
        if node is last and node.kind == "op":  # arrows of one operator end side by side
            nx += _port(chain[-2], node)
        bend = (ny - y) / 2
        parts.append(f"C{x:.1f},{y + bend:.1f} {nx:.1f},{ny - bend:.1f} {nx:.1f},{ny:.1f}")
        x, y = nx, ny
        if node is not last:  # through its layer
            y = ny + node.height
    return " ".join(parts)


def _port(source: _Node, target: _Node) -> float:
    """Where on ``target``'s top edge the edge from ``source`` ends, from the centre."""
    ordered = sorted(target.up, key=lambda node: node.x)
    spacing = min(24.0, target.width / (len(ordered) + 1))
    place = next((i for i, node in enumerate(ordered) if node is source), 0)
    return (place - (len(ordered) - 1) / 2) * spacing


def _box(node: _Node) -> list[str]:
    if node.kind == "bend":
        return []
    out = []
    left = node.x - node.width / 2
    if node.kind == "op":
        fill, line = COLOURS[node.category]
        if node.mark is not None:
            fill = node.mark.fill
            out.append(f'<g class="operator" data-operator={quoteattr(node.lines[0])}>'
                       f"<title>{escape(node.mark.title)}</title>")
        out.append(f'<rect x="{left:.1f}" y="{node.y:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" rx="6" '
                   f'fill="{fill}" stroke="{line}" stroke-width="1.3"/>')
    top = node.y + (16.0 if node.kind == "op" else 12.0)
    for i, text in enumerate(node.lines):
        style = ' font-weight="bold"' if node.kind == "op" and i == 0 else ' fill="#475569"'
        out.append(f'<text x="{node.x:.1f}" y="{top + i * LINE:.1f}" text-anchor="middle"{style}>{escape(text)}</text>')
    if node.mark is not None:
        out.append("</g>")
    return out
