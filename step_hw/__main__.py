"""``python -m step_hw`` is ``step-hw``."""

from .cli import main

main()
