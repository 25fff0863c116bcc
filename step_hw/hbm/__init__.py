"""Off-chip memory: what load and store units talk to, and the HBM timing models behind it.

A request travels: load unit -> per-channel queue of its port -> rotating arbiter of the channel (``channel``) ->
timing model (``simple`` or ``banked``) -> storage (``store``) -> reorder window of the load unit.
"""
