"""What the models of accum and scan share: position in the state, and the checks at the state."""

from ..compiled import compiled
from ..network import is_bare, is_done, stop_of
from ._compute import EXHAUSTED, OWN, SHAPE, STOP_RANGE

__all__ = ["advance", "check", "pack_fold", "position_stop"]

# Parameters.
RANK, INNER, N1, N0, ENTRIES, ROWS, ROWS_FULL = range(OWN, OWN + 7)

# State: position of the element at the state, and whether a fold has begun.
INDEX, I1, I0, STARTED = range(OWN, OWN + 4)


def pack_fold(unit, build) -> None:
    """Configuration, and heap for the valid rows of each entry."""
    par, params = build.par[unit.index], unit.params
    for slot, register in ((RANK, "rank"), (INNER, "inner"), (N1, "n1"), (N0, "n0")):
        par[slot] = unit.config[register]
    par[ENTRIES] = params["entries"]
    par[ROWS] = build.reserve(params["entries"])
    par[ROWS_FULL] = int(params["out_type"].rows)


@compiled
def position_stop(par, st, i1, i0):
    """Dimensions of an n1 x n0 tensor that end at this position; 2 at its end."""
    if st[i0] + 1 != par[N0]:
        return 0
    return 1 if st[i1] + 1 != par[N1] else 2


@compiled
def advance(par, st, index, i1, i0):
    """Go on to the next position."""
    ends = position_stop(par, st, i1, i0)
    if ends == 0:
        st[i0] += 1
    else:
        st[i0] = 0
        st[i1] = st[i1] + 1 if ends == 1 else 0
    st[index] = 0 if ends == 2 else st[index] + 1


@compiled
def check(par, st, tok):
    """Error code of a token that the configured shape does not allow here, or 0."""
    if is_done(tok):
        return STOP_RANGE if st[STARTED] != 0 or st[INDEX] != 0 else 0
    if is_bare(tok):
        return SHAPE if st[INDEX] != 0 or stop_of(tok) <= par[INNER] else 0
    ends = position_stop(par, st, I1, I0)
    wrong = stop_of(tok) < par[INNER] if ends == 2 else stop_of(tok) != min(ends, par[INNER])
    if wrong:
        return SHAPE
    return EXHAUSTED if st[INDEX] == par[ENTRIES] - 1 and ends != 2 else 0
