"""Operators at tile fidelity, one module each: ``KIND``, ``pack(op, unit, build)`` and the compiled
``step(u, par, st, ins, outs, net, now)``, which acts once at ``now`` if it can and returns whether it did.

``par``: parameters; ``st``: state; ``ins``, ``outs``: channels, an output that nobody uses being -1.
"""

UNKNOWN = 100
"""Error code beside those of `step_lang.errorcodes`: steered by a value that the model does not compute."""
