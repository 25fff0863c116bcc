"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

from examples.swiglu import build
from rtl_tests.harness.build import installed
from step_hw.cli import COMMANDS
from step_hw.tests.command import FORK_JOIN, T4, step_hw, write
from step_lang import draw

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


EXAMPLES, BESIDE = re.findall(r"\|---\|---\|\n(\| `matmul.*?)\n\n.*?\n\n(The first three .*?)\n\n", README, re.S)[0]
"""Rows of the table of examples, and the paragraph that says how to run them."""


def shown(first: str) -> list[str]:
    """Lines of the indented block that begins with ``first``, without the indent."""
    block = README[README.index(f"    {first}") :].split("\n\n")[0]
    return [line[4:] for line in block.splitlines()]


@pytest.mark.skipif(installed("verilator") is not None, reason="Verilator is not installed")
def test_program_and_its_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, re.search(r"```python\n(.*?)```", README, re.S)[1], "fold_max.py")
    outcome = step_hw("cosim", "fold_max.py", *T4)
    assert outcome.code == 0, outcome.err

    def timeless(lines: list[str]) -> list[str]:
        return [line for line in lines if not line.startswith("  simulated")]

    assert timeless(outcome.out.splitlines()) == timeless(shown("fold_max on T = 4"))


def test_deadlock_message(tmp_path):
    outcome = step_hw("simulate", write(tmp_path, FORK_JOIN), *T4)
    assert outcome.code == 2
    assert "\n".join(shown("error: deadlock")) in outcome.err


def test_picture(tmp_path):
    draw(build(), tmp_path / "swiglu.svg")
    assert (tmp_path / "swiglu.svg").read_bytes() == (ROOT / "docs/swiglu.svg").read_bytes()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_files_named_exist(name):
    text = (ROOT / name).read_text()
    for path in re.findall(r"`((?:step_lang|step_hw|sim|rtl_tests|examples|docs)/[\w/*.]+?)`", text):
        assert list(ROOT.glob(path)), path
    for path in re.findall(r"\]\(((?!http)[^)]+)\)", text):
        file, _, section = path.partition("#")
        assert (ROOT / file).exists(), path
        headings = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(), re.M) if section else []
        assert not section or section in [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings], path


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\w+)\.py`", EXAMPLES))))
def test_examples_run_with_the_options_named(name):
    """With the options that the README gives beside the table, and without them where it says so."""
    static = re.findall(r"`(\w+)\.py`", EXAMPLES.splitlines()[0])
    depth = re.search(r"`(--hw link[\w.=]+)`", BESIDE)[1]
    sizes = {example: size for size, example in re.findall(r"`(--hw tile[\w.=]+)` to `(\w+)\.py`", BESIDE)}
    options = [] if name in static else f"{depth} {sizes.get(name, '')}".split()
    outcome = step_hw("simulate", ROOT / f"examples/{name}.py", "--no-stalls", *options)
    assert outcome.code == 0, outcome.err


def test_commands_named_exist():
    assert set(re.findall(r"^\| `step-hw ([\w-]+)", README, re.M)) == set(COMMANDS)
