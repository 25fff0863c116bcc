"""The faults of each unit, one module a unit: ``UNIT``."""
