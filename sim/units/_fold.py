"""What the models of accum and scan share: position in the state, and the checks at the state."""

from ..compiled import compiled
from ..network import is_bare, is_done, stop_of
from ._compute import EXHAUSTED, OWN, SHAPE, STOP_RANGE

__all__ = ["advance", "check", "pack_fold", "position_stop"]

# Parameters; COMPARES: valid rows must be those of what was folded into the same entry.
RANK, INNER, N1, N0, ENTRIES, ROWS, ROWS_FULL, ROWS_INIT, COMPARES, HOLLOW = range(OWN, OWN + 10)

# State: position of the element at the state, whether a fold has begun, and the last index of its first tensor.
INDEX, I1, I0, STARTED, SIZE, OWN_FOLD = range(OWN, OWN + 6)


def pack_fold(unit, build) -> None:
    """Configuration, and heap for the valid rows of each entry."""
    par, params = build.par[unit.index], unit.params
    for slot, register in ((RANK, "rank"), (INNER, "inner"), (N1, "n1"), (N0, "n0")):
        par[slot] = unit.config[register]
    par[ENTRIES] = params["entries"]
    par[ROWS] = build.reserve(params["entries"])
    par[ROWS_FULL] = rows = int(params["out_type"].rows)
    masked = params.get("masked", False)
    par[ROWS_INIT] = 1 if masked else rows
    par[COMPARES] = int(masked and rows != 1 and not params["function"].resizes)
    par[HOLLOW] = unit.config.get("hollow", 0)


@compiled
def position_stop(par, st, i1, i0, close):
    """Dimensions of an n1 x n0 tensor that end at this position, 2 at its end; ``close`` says so where it is open."""
    if st[i0] + 1 != par[N0] and not (par[N0] == 0 and close):
        return 0
    return 1 if st[i1] + 1 != par[N1] and not (par[N1] == 0 and close) else 2


@compiled
def advance(st, index, i1, i0, ends):
    """Go on to the next position from one where ``ends`` dimensions end."""
    if ends == 0:
        st[i0] += 1
    else:
        st[i0] = 0
        st[i1] = st[i1] + 1 if ends == 1 else 0
    st[index] = 0 if ends == 2 else st[index] + 1


@compiled
def check(par, st, net, tok):
    """Error code of a token that the configured shape does not allow here, or 0."""
    stop, inner = stop_of(tok), par[INNER]
    is_open = par[N1] == 0 or par[N0] == 0
    if is_done(tok):
        return STOP_RANGE if st[STARTED] != 0 or st[INDEX] != 0 else 0
    if is_bare(tok):
        nothing = stop == par[RANK] if par[HOLLOW] != 0 else is_open
        unfit = st[STARTED] == 0 and stop >= par[RANK] + inner and nothing
        return SHAPE if st[INDEX] != 0 or stop <= inner or unfit else 0
    ends = position_stop(par, st, I1, I0, stop >= inner)
    wrong = stop < inner if ends == 2 else stop != min(ends, inner)
    if st[STARTED] != 0:
        wrong |= is_open and (ends == 2) != (st[INDEX] == st[SIZE])
        wrong |= par[COMPARES] != 0 and net.heap[par[ROWS] + st[INDEX]] != tok >> 6
    if wrong:
        return SHAPE
    return EXHAUSTED if st[INDEX] == par[ENTRIES] - 1 and ends != 2 else 0
