"""The comment at the head of a Verilog file: what the module is, its parameters, its registers."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from amaranth.lib.wiring import Component

__all__ = ["header"]

_COLUMNS = 116
_ROLE = re.compile(r":\w+:`\.?~?(?:[\w.]*\.)?(\w+)`")
_UNDERLINE = re.compile(r"-{3,}|={3,}")
_LEFT_OUT = ("Parameters", "Attributes")
"""Sections of a class's docstring that are about Python; parameters are given with their values instead."""


def header(component: Component, name: str) -> str:
    """Comment lines for ``component`` as module ``name``.

    The text is that of the class's docstring, or of the component's attribute ``about`` where it has one. Parameters
    are those of the class's ``__init__`` that the component keeps under the same names. A module's name says all that
    its text depends on, so this has to hold of what is written here as well: sizes and types, not register contents.
    """
    kind = getattr(component, "kind", None)
    lines = [f"{name}: unit '{kind}'" if kind else name]
    # A parameter is broken over lines only where it does not fit one.
    whole = [text.replace(" ", "\0") if len(text) < _COLUMNS else text for text in _parameters(component, name)]
    lines += [line.replace("\0", " ") for line in textwrap.wrap(
        "; ".join(whole), _COLUMNS, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)]
    about = getattr(component, "about", None) or "\n".join(_docstring(type(component)))
    lines += ["", *about.strip().split("\n")]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _docstring(cls: type) -> list[str]:
    """Lines of the class's docstring as plain text, without the sections that are about Python."""
    text = inspect.getdoc(cls) or ""
    text = _ROLE.sub(r"\1", text).replace("``", "").replace("**", "").replace("`", "'")
    found: list[str] = []
    skipping = False
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and _UNDERLINE.fullmatch(lines[i + 1]) and line.startswith(_LEFT_OUT):
            skipping = True
        if not line:
            skipping = False
        if not skipping and (line or (found and found[-1])):
            found.append(line)
    return found


def _parameters(component: Component, name: str) -> list[str]:
    values = {parameter: getattr(component, parameter, None)
              for parameter in inspect.signature(type(component).__init__).parameters}
    found = [f"{parameter} = {text}" for parameter, value in values.items() if (text := _text(value))]
    memory = values.get("memory")
    if memory is not None and memory.key in name:  # where the timing is part of the module
        found += [f"{entry.name} = {getattr(memory, entry.name)}" for entry in fields(memory)
                  if entry.name == "model" or (entry.name not in ("channels", "burst_bytes", "capacity_bytes")
                                               and bool(entry.metadata.get("banked")) == (memory.model == "banked"))]
    return found


def _text(value: Any) -> str:
    """``value`` for people; empty where there is no short text that depends on the value alone."""
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, Sequence):
        texts = [_text(item) for item in value]
        return f"({', '.join(texts)})" if texts and all(texts) else ""
    match type(value).__name__:
        case "BeatLayout":
            return f"{value.data_width} data bits, {_count(value.max_rows, 'row')} at most"
        case "ScratchpadShape":
            return (f"{value.frames} frames in pages of {value.page_frames}, {_count(value.references, 'reference')}, "
                    f"{_text(value.layout)}")
        case "MemoryConfig":
            return f"{_count(value.channels, 'channel')} of {value.lines} bursts of {value.burst_bytes} bytes"
        case "ReadPort":
            return f"elements of {value.elements.element_bytes} bytes, window of {value.window}"
        case "WritePort":
            return f"elements of {value.elements.element_bytes} bytes"
        case "Tile" | "DType":
            return str(value)
    if hasattr(value, "params") and hasattr(value, "name"):  # a function: its name and the flags that choose hardware
        flags = [name for name, given in value.params.items() if given is True]
        return " ".join([str(value.name), *flags])
    return ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
