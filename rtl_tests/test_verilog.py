"""Verilog text: names, order, head comment, the cache on disk."""

import re
import shutil
import subprocess

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from step_hw import verilog_cache
from step_hw.keywords import KEYWORDS
from step_hw.unit_catalogue import unit_catalogue
from step_hw.verilog import module_text
from step_hw.verilog_names import identifier, plain_names


class Keywords(wiring.Component):
    """Adds ``ref`` to itself.

    Parameters
    ----------
    small : int
        Left out of the head.
    """

    def __init__(self, small: int = 3):
        self.small = small
        super().__init__({"table": In(4), "ref": In(4), "logic": Out(4), "end_": In(4)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fork = inner = Inner()
        names = [Signal(4, name=name) for name in ("reg", "bit", "integer", "ref_", "ref__", "a.b", "a__b", "x$1")]
        value = self.table ^ self.end_
        for name in names:
            m.d.sync += name.eq(value)
            value = name ^ self.ref
        m.d.comb += [inner.ref.eq(value), self.logic.eq(inner.do)]
        return m


class Inner(wiring.Component):
    """Ports that are keywords, of a submodule."""

    def __init__(self):
        super().__init__({"ref": In(4), "do": Out(4)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.do.eq(self.ref + 1)
        return m


def test_keywords_get_a_suffix_and_no_two_names_become_one():
    text = module_text(Keywords(), "keywords")
    words = re.sub(r"//[^\n]*|/\*.*?\*/|\d+'\w+", "", text)
    used = set(re.findall(r"[A-Za-z_]\w*", words)) & KEYWORDS
    assert used <= {"module", "endmodule", "input", "output", "wire", "reg", "assign", "always", "posedge", "begin",
                    "end", "if", "initial"}
    head = re.search(r"module keywords \((.*?)\);", text, re.S)[1]
    assert re.findall(r"(\w+),?$", head, re.M) == ["clk", "rst", "table_", "ref_", "logic_", "end_"]
    registers = re.findall(r"^  reg \[3:0\] (\w+) = ", text, re.M)
    assert sorted(registers) == ["a__b", "a__b_", "bit_", "integer_", "ref__", "ref___", "reg_", "x_1"]
    assert re.search(r"\.ref_\(", text) and "module keywords__fork (" in text


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
@pytest.mark.parametrize("generation", ["2005", "2012"])
def test_verilog_and_systemverilog_read_it(generation, tmp_path):
    path = tmp_path / "keywords.v"
    path.write_text(module_text(Keywords(), "keywords"))
    command = ["iverilog", f"-g{generation}", "-Wall", "-s", "keywords", "-o", str(tmp_path / "out"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr


def test_two_ports_of_one_name_are_refused():
    class Clash(wiring.Component):
        def __init__(self):
            super().__init__({"ref": In(1), "ref_": In(1)})

        def elaborate(self, platform):
            return Module()

    with pytest.raises(ValueError, match="two ports of clash would be called ref_"):
        module_text(Clash(), "clash")


def test_identifier():
    assert [identifier(name) for name in ("a.b$3", "end", "bit", "plain")] == ["a__b_3", "end_", "bit_", "plain"]


def test_names_inside_numbers_comments_and_strings_stay():
    body = """module m (a);
  input a;
  // bit \\do end
  /* ref */
  wire [11:0] %s = 12'hdef; // do
  x("do \\bit");
endmodule
"""
    assert plain_names(body % "\\do ") == body % "do_"


def test_head_says_kind_parameters_and_registers():
    text = unit_catalogue(2)["reshape"].modules()["reshape_64x2"]
    head = text[:text.index("\nmodule ")]
    assert all(line.startswith("//") for line in head.splitlines())
    assert head.startswith("// reshape_64x2: unit 'reshape'\n//   layout = 64 data bits, 2 rows at most; pad = 0;")
    assert re.search(r"^// chunk +32 +positions in a chunk", head, re.M)
    assert "Parameters" not in head and "``" not in head


@pytest.mark.parametrize("name, unit", list(unit_catalogue(2).items()), ids=list(unit_catalogue(2)))
def test_order_width_and_plainness(name, unit):
    """Clock and reset, configuration, inputs, outputs, error, state; lines that fit a screen; ASCII."""
    modules = unit.modules()
    text = modules[unit.module_name]
    ports = re.findall(r"(\w+)(?: = \S+)?,?$", re.search(r"^module \w+ \((.*?)^\);", text, re.M | re.S)[1], re.M)
    groups = [next(i for i, pattern in enumerate(("clk|rst", "cfg__.*", r"in\d+__.*", r"(?!out\d+__|error|state).*",
                                                  r"out\d+__.*", "error", "state")) if re.fullmatch(pattern, port))
              for port in ports]
    assert groups == sorted(groups)
    assert ports[-2:] == ["error", "state"]
    assert [p for p in ports if p.startswith("cfg__")] == [f"cfg__{register}" for register in unit.cfg_widths]
    for text in modules.values():
        assert text.isascii() and "\\" not in text and "[-1:0]" not in text
        assert not [line for line in text.splitlines() if len(line) > 120 and not re.search(r"'h[0-9a-f]{60}", line)]


def test_cached_text_is_used_when_whole_and_only_then(tmp_path, monkeypatch):
    monkeypatch.setenv("STEP_HW_CACHE", str(tmp_path))
    calls = []
    convert = verilog_cache.verilog._convert_rtlil_text

    def counted(text, **options):
        calls.append(text)
        return convert(text, **options)

    monkeypatch.setattr(verilog_cache.verilog, "_convert_rtlil_text", counted)
    first = module_text(Keywords(), "keywords")
    assert module_text(Keywords(), "keywords") == first and len(calls) == 1
    (entry,) = (tmp_path / "verilog").rglob("*.v")
    entry.write_text(entry.read_text()[:-20])
    assert module_text(Keywords(), "keywords") == first and len(calls) == 2
    assert module_text(Keywords(), "keywords") == first and len(calls) == 2
    assert module_text(Keywords(), "other") != first and len(calls) == 3


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STEP_HW_CACHE", str(tmp_path / "file"))
    assert "module keywords (" in module_text(Keywords(), "keywords")
