"""What the models of the compute units share; twin of ``step_hw/compute.py``."""


from step_lang.errorcodes import ErrorCode
from step_lang.timing import compute_timing, contribution_stages, rows_operand

from ..compiled import compiled
from ..network import can_pop, is_bare, is_done, peek, pop

__all__ = ["FRONT_MISALIGNED", "FRONT_STARVED", "INPUTS", "INTERVAL", "LAST_STEP", "STAGES", "front", "pack_front",
           "take", "tokens_agree"]

# Parameters of all compute units; each unit's own begin at OWN.
INPUTS, INTERVAL, STAGES, ROWS_PORT, OWN = 0, 1, 2, 3, 8

# State of all compute units: the step of the element at the inputs' heads; each unit's own begins at OWN.
STEP = 1

# What ``front`` returns instead of a token.
FRONT_STARVED, FRONT_MISALIGNED = -1, -2

MISALIGNED, STOP_RANGE = ErrorCode.MISALIGNED, ErrorCode.STOP_RANGE
EXHAUSTED, SHAPE = ErrorCode.EXHAUSTED, ErrorCode.SHAPE

# A token in a pipeline: 0 for a bubble, else 1 + (token << 1 | last step).
LAST_STEP = 1


def pack_front(unit, build) -> None:
    """Parameters of the join and the pipeline."""
    par, params = build.par[unit.index], unit.params
    timing = compute_timing(unit.kind, params)
    par[INPUTS] = len(unit.inputs)
    par[INTERVAL] = timing.interval
    par[STAGES] = timing.latency if unit.kind == "map" else contribution_stages(params)
    par[ROWS_PORT] = rows_operand(params["in_types"], params["out_type"])


@compiled
def tokens_agree(a, b):
    """Same stop, empty and done."""
    return (a ^ b) & 63 == 0


@compiled
def front(par, st, ins, net):
    """The step that stands at the inputs, as a pipeline token, or FRONT_STARVED, FRONT_MISALIGNED."""
    for i in range(par[INPUTS]):
        if not can_pop(net, ins[i]):
            return FRONT_STARVED
    tok = peek(net, ins[0])
    for i in range(1, par[INPUTS]):
        if not tokens_agree(tok, peek(net, ins[i])):
            return FRONT_MISALIGNED
    rows = peek(net, ins[par[ROWS_PORT]]) >> 6
    tok = (tok & 63) | (rows << 6)
    last = is_done(tok) or is_bare(tok) or st[STEP] == par[INTERVAL] - 1
    return 1 + (tok << 1 | (LAST_STEP if last else 0))


@compiled
def take(par, st, ins, net, entry):
    """Take the step that ``front`` returned; the beats leave their links with the last."""
    if (entry - 1) & LAST_STEP:
        st[STEP] = 0
        for i in range(par[INPUTS]):
            pop(net, ins[i])
    else:
        st[STEP] += 1
