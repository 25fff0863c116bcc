"""The off-chip memory as a unit; see `sim.tile.memory`."""

from ...compiled import compiled
from ..memory import serve

KIND = "hbm"
MEMORY = 0


def pack(op, unit, build):
    """Where the memory lies."""
    build.par[unit, MEMORY] = build.memory.at


@compiled
def step(u, par, st, ins, outs, net, now):
    """Serve one port."""
    return serve(net, u, par[MEMORY], now)
