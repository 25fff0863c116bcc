"""Mutation check: does the bench of a unit see a fault in the unit?

A `Fault` replaces text of a unit's Python source while it is imported, in a process of its own; no file changes. The
faults of each unit are in `rtl_tests.mutants.units`, one module a unit. ``python -m rtl_tests.mutants [unit ..]`` runs
every unit's bench on Icarus against each of its faults and prints which test caught it.
"""
