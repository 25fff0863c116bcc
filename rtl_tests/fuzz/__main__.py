"""Run random programs again: all of a seed, or one recipe."""

from __future__ import annotations

import ast
import sys

import click

from .campaign import check, fuzz
from .kitchen import cook
from .recipe import Recipe, hardware_of


def _recipe(text: str) -> Recipe:
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError("no call")
        given = {key.arg: ast.literal_eval(key.value) for key in call.keywords if key.arg}
        return Recipe(*map(ast.literal_eval, call.args), **given)
    except (SyntaxError, TypeError, ValueError) as error:
        raise click.BadParameter(f"{text!r}: {error} vs Recipe((..), (..)) as a failing test prints it") from None


@click.command()
@click.option("--seed", type=int, help="The program of this seed, as a test prints it.")
@click.option("--programs", default=1, show_default=True, type=click.IntRange(1),
              help="Programs, of this seed and those behind it.")
@click.option("--recipe", help="One program: the recipe that a failing test prints.")
@click.option("--simulators", default="", help="RTL simulators, icarus,verilator; default: none, only the layers.")
def main(seed: int | None, programs: int, recipe: str | None, simulators: str) -> None:
    """Compare interpreter, lowered interpreter, model and RTL on random programs; exit 1 where they part."""
    names = [name for name in simulators.split(",") if name]
    if (seed is None) == (recipe is None):
        raise click.UsageError("give one of --seed and --recipe")
    try:
        if recipe is not None:
            made = _recipe(recipe)
            print(cook(made, hardware_of(made).tile))
            print(check(made, names) or "all layers agree")
        elif seed is not None:
            fuzz(programs, seed, names)
    except AssertionError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None


main()
