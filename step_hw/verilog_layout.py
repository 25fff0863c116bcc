"""How Verilog text is laid out: ports in one order, declarations by kind, lines of readable length."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from .verilog_names import TIME_ZERO

__all__ = ["lay_out"]

_COLUMNS = 120
_MODULE = re.compile(r"^module (\w+) *\((.*?)\);\n(.*?)^endmodule\n?", re.M | re.S)
_DECLARATION = re.compile(r"  (input|output|inout|wire|reg)( signed)?( \[-?\d+:\d+\])? (\w+) *( = [^;]+)?;\n")
_CONNECTIONS = re.compile(r"(?:^    \.\w+\(.*\),?\n){2,}", re.M)
_ALWAYS = re.compile(r"^  always @\*\n    (.*;)\n", re.M)
_NO_BITS = " [-1:0]"  # how Yosys declares a field of width 0, which is two bits to Verilog
_TEMPORARY = re.compile(r"_\d+_?")
_TIME_ZERO = f"""\
  reg {TIME_ZERO};
  // verilator lint_off INITIALDLY
  initial {TIME_ZERO} <= 1'h0;
  // verilator lint_on INITIALDLY
"""


@dataclass
class _Name:
    """A declared name. ``kind`` is wire or reg, ``direction`` empty where it is no port, ``value`` its start value."""

    name: str
    kind: str = "wire"
    direction: str = ""
    range: str = ""
    value: str = ""

    def declaration(self) -> str:
        kind = self.kind if not self.direction or self.kind == "reg" else ""
        return f"{' '.join(filter(None, (self.direction, kind)))}{self.range} {self.name}{self.value}"


def lay_out(text: str, ports: Sequence[str] = ()) -> str:
    """``text``, modules as Yosys writes them, with ports declared in the module's head and in one order.

    ``ports``: order of the first module's, inside the groups that `_rank` makes.
    """
    modules = [_module(found[1], found[2], found[3], () if i else ports)
               for i, found in enumerate(_MODULE.finditer(text))]
    return "\n".join(modules)


def _module(name: str, ports: str, body: str, order: Sequence[str]) -> str:
    names = {port: _Name(port) for port in re.findall(r"\w+", ports)}
    at = 0
    while found := _DECLARATION.match(body, at):
        kind, signed, bits, word, value = found.groups()
        entry = names.setdefault(word, _Name(word))
        entry.range = (signed or "") + (bits or "")
        if kind in ("wire", "reg"):
            entry.kind, entry.value = kind, value or ""
        else:
            entry.direction = kind
        at = found.end()
    time_zero = ""
    if names.pop(TIME_ZERO, None):
        time_zero = _TIME_ZERO
        # Yosys forgets the part of a register that no process assigns: it stays unknown while its value never changes.
        whole = rf"  always @* begin\n    if ({TIME_ZERO} ) begin end\n    \1\n  end\n"
        body = body[:at] + _ALWAYS.sub(whole, body[at:])
    heads = sorted((entry for entry in names.values() if entry.direction), key=lambda entry: _rank(entry.name, order))
    if missing := [port for port in re.findall(r"\w+", ports) if not names[port].direction]:
        raise ValueError(f"module {name}: no declaration of {', '.join(missing)} found")
    used = set(re.findall(r"\w+", body[at:]))
    inner = sorted((entry for entry in names.values() if not entry.direction and
                    (entry.range != _NO_BITS or entry.name in used)), key=lambda entry: _natural(entry.name))
    head = ",\n".join(f"  {entry.declaration()}" for entry in heads)
    rest = _CONNECTIONS.sub(_sorted_connections, body[at:])
    lines = "\n".join(map(_wrap, rest.split("\n")))
    return f"module {name} (\n{head}\n);\n{_declarations(inner)}{time_zero}\n{lines}endmodule\n"


def _declarations(entries: list[_Name]) -> str:
    """Registers, then wires, then results of expressions that have no name, several to a line."""
    named = [entry for entry in entries if not _TEMPORARY.fullmatch(entry.name)]
    lines = [f"  {entry.declaration()};" for kind in ("reg", "wire") for entry in named if entry.kind == kind]
    groups: dict[str, list[str]] = {}
    for entry in entries:
        if _TEMPORARY.fullmatch(entry.name):
            groups.setdefault(f"  {entry.kind}{entry.range} ", []).append(entry.name + entry.value)
    lines += [_wrap(f"{head}{', '.join(words)};") for head, words in groups.items()]
    return "".join(f"{line}\n" for line in lines)


def _wrap(line: str) -> str:
    if len(line) <= _COLUMNS or "//" in line or '"' in line:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return "\n".join(textwrap.wrap(line.strip(), _COLUMNS, initial_indent=indent, subsequent_indent=indent + "    ",
                                   break_long_words=False, break_on_hyphens=False))


def _natural(name: str) -> list[tuple[int, str, int]]:
    """Sorting key by which ``in2`` comes before ``in10``."""
    return [(1, "", int(part)) if part.isdigit() else (0, part, 0) for part in re.split(r"(\d+)", name) if part]


_GROUPS = tuple(map(re.compile, (r"clk", r"rst", r"cfg__.*", r"in\d+__.*", r"(?!out\d+__|error$|state$).*",
                                 r"out\d+__.*", r"error", r"state")))
_STREAM = ("payload", "valid", "ready")


def _rank(name: str, order: Sequence[str]) -> tuple:
    """Place of a port: clock, reset, configuration, inputs, others, outputs, error, state; inside these groups as in
    ``order``, those that are not in it by name, and payload, valid, ready of a stream together."""
    group = next(i for i, pattern in enumerate(_GROUPS) if pattern.fullmatch(name))
    stem, _, last = name.rpartition("__")
    if last not in _STREAM:
        stem = name
    stated = next((i for i, port in enumerate(order) if port.startswith(stem)), len(order))
    return group, stated, _natural(stem), _STREAM.index(last) if last in _STREAM else 0


def _sorted_connections(found: re.Match[str]) -> str:
    pins = sorted((line.rstrip(",") for line in found[0].splitlines()),
                  key=lambda line: _rank(line[5:line.index("(")], ()))
    return ",\n".join(pins) + "\n"
