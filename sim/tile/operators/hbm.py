"""The off-chip memory as a unit; see `sim.tile.memory`."""

from ...compiled import compiled
from ..channels import serve_elements
from ..memory import serve_bursts

KIND = "hbm"
MEMORY, ELEMENTS = 0, 1


def pack(op, unit, build):
    """Where the memory lies, and whether it is asked for elements."""
    build.par[unit, [MEMORY, ELEMENTS]] = build.memory.at, build.machine.has_elements


@compiled
def step(u, par, st, ins, outs, net, now):
    """Serve what there is."""
    if par[ELEMENTS] != 0:
        return serve_elements(net, u, par[MEMORY], now)
    return serve_bursts(net, u, par[MEMORY], now)
