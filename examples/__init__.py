"""Programs a user would start from. Each exposes ``build(**parameters) -> Program``, ``inputs(program, seed)``, the
tensors it reads, and ``streams(program, seed)``, the values of its input streams, where it has any. The latter two may
also ask, by name, for parameters of ``build``."""
