"""Names in Verilog that Yosys wrote: plain identifiers, none of them a keyword."""

from __future__ import annotations

import re

from .keywords import KEYWORDS

__all__ = ["TIME_ZERO", "identifier", "plain_names"]

TIME_ZERO = "at_time_zero"
"""Name of the register that Yosys adds so that every ``always @*`` runs once at time 0."""

#: Keywords that Yosys itself writes. It escapes a name that is one of them, but knows none of SystemVerilog's.
_SYNTAX = frozenset("""
always assign begin case casex casez default defparam else end endcase endfunction endmodule for function if initial
inout input integer localparam module negedge or output parameter posedge reg signed wire
""".split())

_START = re.compile(r"\\?\$auto\$verilog_backend\S* ")
_TOKEN = re.compile(r"""
    "(?:\\.|[^"\\])*" | /\*.*?\*/ | //[^\n]* | \d*'s?[bdho][\w?]+      # no names in these
    | (?P<pin>\.?)(?:\\(?P<escaped>\S+)[ ] | (?P<plain>[A-Za-z_$][\w$]*))
""", re.X | re.S)
_MODULE = re.compile(r"^module .*?^endmodule\n?", re.M | re.S)
_NAMED = re.compile(r"^module +(?:\\(\S+) |(\w+)) *\((.*?)\);", re.M | re.S)


def identifier(name: str) -> str:
    """``a.b$3`` -> ``a__b_3``, ``end`` -> ``end_``: how a module or port is called that is ``name`` in Amaranth."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name.replace(".", "__"))
    return f"{name}_" if name in KEYWORDS else name


def plain_names(text: str) -> str:
    """``text`` with all names as plain identifiers that differ where the names did.

    Names of modules and ports are a function of the name alone, so that modules converted one by one fit together.
    Raises `ValueError` where two ports of a module would get one name.
    """
    text = _START.sub(f"{TIME_ZERO} ", text)
    modules = {found[1] or found[2] for found in _NAMED.finditer(text)}
    return _MODULE.sub(lambda found: _module(found[0], modules), text)


def _module(text: str, modules: set[str]) -> str:
    first = _NAMED.search(text)
    assert first is not None
    names = {name: identifier(name) for name in modules}
    ports = [found["escaped"] or found["plain"] for found in _TOKEN.finditer(first[3])]
    for port in ports:
        if identifier(port) in map(names.get, ports[:ports.index(port)]):
            raise ValueError(f"two ports of {first[1] or first[2]} would be called {identifier(port)} in Verilog")
        names[port] = identifier(port)
    taken = {*names.values(), *(found["plain"] for found in _TOKEN.finditer(text)
                                if found["plain"] and found["plain"] not in KEYWORDS)}

    # What a port is now called may have been the name of something else.
    lost = {identifier(port) for port in ports} - set(ports)

    def rename(found: re.Match[str]) -> str:
        name = found["escaped"] or found["plain"]
        if name is None or (found["plain"] and (name in _SYNTAX or name not in KEYWORDS | lost)):
            return found[0]
        if found["pin"]:
            return f".{identifier(name)}"
        if name not in names:
            plain = identifier(name)
            while plain in taken:
                plain += "_"
            taken.add(plain)
            names[name] = plain
        return names[name]

    return _TOKEN.sub(rename, text)
