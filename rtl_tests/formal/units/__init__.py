"""Reference models of the units, as properties, and faults that break them; a file for each unit with ``CASES``."""
