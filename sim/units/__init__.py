"""One file per unit kind: the twin of the unit's state machine on control tokens.

Each module offers

``KIND``
    the unit kind of the unit graph it models;
``pack(unit, graph, build) -> None``
    fills ``build.par[i]`` (int64, 64 entries: parameters and configuration) and may reserve heap with
    ``build.reserve(n)``; ``unit`` is the ``UnitSpec``, ``build`` a ``sim.engine.Packing``;
``step(u, par, st, ins, outs, net) -> int``  (``@compiled``)
    one cycle; ``par``, ``st``, ``ins``, ``outs`` are the rows of this unit (64, 64, 16, 16 entries; unused ports -1);
    state starts as zeros; returns a status of ``sim.network``. A sink that has seen done sets ``st[0] = 1``.

State that outgrows ``st`` goes on the heap. Statuses: BUSY if it moved or computed anything, STARVED if it
waits for input, BLOCKED if it waits for an output, MEMORY if it waits for the memory system, IDLE otherwise.
"""
