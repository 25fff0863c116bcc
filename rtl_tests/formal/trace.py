"""A counterexample as beats: what every stream offered in each cycle, and whether it was taken."""

from step_hw.beat import STOP_WIDTH

from .btor import TransitionSystem
from .solver import Run, replay

__all__ = ["beats_of"]


def beats_of(system: TransitionSystem, run: Run) -> str:
    """``run`` from the initial state, a line a cycle: beats as ``3``, ``3 S1`` (element with stop), ``S1`` (bare),
    ``D``; one that waits in brackets. Other values that the harness shows follow by name."""
    values = replay(system, run.inputs)
    last = values[-1]
    failed = [label for label in run.failed if last[label] == 0]
    if list(run.failed) != failed:
        raise AssertionError(f"the solver says that {run.failed} fails, evaluation that {failed} does")
    for name, seen in ((name, seen) for seen in values for name in system.outputs if name.startswith("assume__")):
        if seen[name] != 1:
            raise AssertionError(f"the solver's run breaks {name}")
    streams = [name[len("show__"):-len("__payload")] for name in system.outputs
               if name.startswith("show__") and name.endswith("__payload")]
    others = [name for name in system.outputs if name.startswith("show__")
              and name.rpartition("__")[2] not in ("valid", "ready", "payload")]
    constants = ", ".join(f"{name.removeprefix('constant__')} = {value}" for name, value in
                          sorted(run.inputs[0].items()) if name.startswith("constant__"))
    lines = [f"broken: {', '.join(label.partition('__')[2].replace('_', ' ') for label in failed)}"]
    lines += [f"with {constants}"] if constants else []
    for cycle, seen in enumerate(values):
        parts = []
        for name in streams:
            if not seen[f"show__{name}__valid"]:
                continue
            width = system.nodes[system.outputs[f"show__{name}__payload"]].width
            beat = _beat(seen[f"show__{name}__payload"], width)
            parts.append(f"{name}: {beat}" if seen[f"show__{name}__ready"] else f"{name}: [{beat}]")
        parts += [f"{name.removeprefix('show__')} = {seen[name]}" for name in others]
        lines.append(f"cycle {cycle}: " + "  ".join(parts))
    return "\n".join(lines)


def _beat(bits: int, width: int) -> str:
    """The last fields of a payload are stop, empty, done; what is before them is shown as a number."""
    done, empty = bits >> (width - 1) & 1, bits >> (width - 2) & 1
    stop = bits >> (width - 2 - STOP_WIDTH) & ((1 << STOP_WIDTH) - 1)
    element = bits & ((1 << (width - 2 - STOP_WIDTH)) - 1)
    parts = ([] if empty else [str(element)]) + ([f"S{stop}"] if stop else []) + (["D"] if done else [])
    return " ".join(parts) or "nothing"
