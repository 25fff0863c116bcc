"""Random small programs over all operators, and what every layer must agree on about them.

A `Recipe` is a list of steps, each the name of one and the numbers it makes its choices with; `cook` makes the program
and the values of its input streams of it, leaving out what does not fit. The same recipe is the same program, and a
recipe cut short or with smaller numbers is a simpler one, which is how hypothesis shrinks (`recipes`). `run` takes the
program through interpreter, lowered interpreter, model and RTL; `fuzz` does so with many.
``python -m rtl_tests.fuzz --help`` says how to do it again.
"""

from .campaign import check, fuzz, program_of, recipes
from .kitchen import Cooked, Kitchen, cook
from .layers import Outcome, run
from .recipe import Choices, Recipe, Unfit, hardware_of
from .steps import SOURCES, STEPS

__all__ = ["SOURCES", "STEPS", "Choices", "Cooked", "Kitchen", "Outcome", "Recipe", "Unfit", "check", "cook", "fuzz",
           "hardware_of", "program_of", "recipes", "run"]
