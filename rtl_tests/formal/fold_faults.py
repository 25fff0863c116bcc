"""Faults of accum and scan that proofs of states of any shape find."""

from .faults import Fault

__all__ = ["BARE_CLOSES_NOTHING", "DRAIN", "INIT_LOST", "NOT_BEGUN", "STAGE_MOVES"]

NOT_BEGUN = Fault("the fold is not begun anew", "state.first.eq(~started)", "state.first.eq(0)")
DRAIN = (
    Fault("the next fold overtakes the drain", "(passed | ~element)", "1"),
    Fault("the stop that leaves is one higher", "drain_stop.eq(token.stop - rank)",
          "drain_stop.eq(token.stop - rank + 1)"),
)
INIT_LOST = Fault("an empty group leaves what was there", "drain_init.eq(token.empty & ~started)", "drain_init.eq(0)")
STAGE_MOVES = Fault("the stage moves on while the output waits", "en.eq(~out_valid | o.ready)", "en.eq(1)")
BARE_CLOSES_NOTHING = Fault("a bare stop closes nothing", "with m.If(go & token.last & closing):",
                            "with m.If(go & token.last & closing & ~token.empty):")
