"""Programs a user would start from: each exposes ``build(**parameters) -> Program`` and ``inputs(program, seed)``."""
