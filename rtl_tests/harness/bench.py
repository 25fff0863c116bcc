"""One call from a unit and its cases to measured results, on either simulator."""

import os
import pickle
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .beats import LinkLayout, layout_of
from .build import Build, build
from .cases import Case, CaseResult
from .run import default_seed, run_cocotb

__all__ = ["FIRST_FAILURE", "assert_same_on_both", "bench_unit", "bench_verilog", "failures"]

FIRST_FAILURE = "STEP_HW_FIRST_FAILURE"
"""Environment variable: if set, a bench that checks its cases stops behind the first that fails."""


def bench_unit(
    simulator: str,
    unit,
    cases: Iterable[Case],
    *,
    agents: str | None = None,
    seed: int | None = None,
    check: bool = True,
    timeout_s: float = 600.0,
) -> list[CaseResult]:
    """Run ``cases`` on ``unit`` (a `step_hw.unit.Unit`), all in one simulation, and return a result for each.

    ``agents`` serves further ports (a memory interface): an importable ``"module:function"``, called in the
    simulator before each case as ``function(dut, case)``; it returns agents (`links.Agent`), whose attribute
    ``note``, if there is one, comes back in ``result.notes``. ``case.extra`` is for them.

    With ``check``, AssertionError lists every case that failed, with its message (`FIRST_FAILURE`: the first). Without,
    look at ``result.problem``.
    """
    if not hasattr(unit, "module_name"):
        raise TypeError(f"{unit!r} is no Unit: it has no module_name")
    layouts = {f"in{i}": layout_of(layout) for i, layout in enumerate(unit.input_layouts)}
    layouts |= {f"out{i}": layout_of(layout) for i, layout in enumerate(unit.output_layouts)}
    verilog = {f"{name}.v": text for name, text in unit.modules().items()}
    return bench_verilog(
        simulator,
        verilog,
        unit.module_name,
        layouts,
        cases,
        cfg={name: f"cfg__{name}" for name in unit.cfg_widths},
        agents=agents,
        seed=seed,
        check=check,
        timeout_s=timeout_s,
    )


def bench_verilog(
    simulator: str,
    verilog: Mapping[str, str] | Sequence[str | Path],
    top: str,
    layouts: Mapping[str, LinkLayout],
    cases: Iterable[Case],
    *,
    cfg: Mapping[str, str] | None = None,
    agents: str | None = None,
    seed: int | None = None,
    check: bool = True,
    timeout_s: float = 600.0,
) -> list[CaseResult]:
    """`bench_unit` for any Verilog with the ports ``clk``, ``rst``, ``inK__*``, ``outK__*``.

    ``layouts``: of every link port. ``cfg``: register name -> port name. Ports ``error`` and ``state`` are used if
    there are any.
    """
    cases = list(cases)
    cfg = dict(cfg or {})
    for case in cases:
        for what, used, known in (
            ("input", case.inputs, [n for n in layouts if n.startswith("in")]),
            ("output", case.expected, [n for n in layouts if n.startswith("out")]),
            ("configuration register", case.cfg, list(cfg)),
        ):
            for name in used:
                if name not in known:
                    raise ValueError(
                        f"case {case.name!r}: {top} has no {what} {name!r}; it has {', '.join(known) or 'none'}"
                    )
    if seed is None:
        seed = default_seed()
    built: Build = build(simulator, verilog, top)
    ports = {
        "inputs": [name for name in layouts if name.startswith("in")],
        "outputs": [name for name in layouts if name.startswith("out")],
        "layouts": dict(layouts),
        "cfg": cfg,
        "errors": _error_names(),
    }
    with tempfile.TemporaryDirectory(prefix="step-hw-cases-") as temporary:
        request, answer = Path(temporary) / "cases.pickle", Path(temporary) / "results.pickle"
        request.write_bytes(pickle.dumps({
            "ports": ports, "cases": cases, "seed": seed, "agents": agents,
            "first_failure": check and FIRST_FAILURE in os.environ,
        }))
        run_cocotb(
            built,
            "rtl_tests.harness.unit_bench",
            seed=seed,
            env={"STEP_HW_CASES": str(request), "STEP_HW_RESULTS": str(answer)},
            timeout_s=timeout_s,
        )
        results: list[CaseResult] = pickle.loads(answer.read_bytes())
    if check:
        problems = failures(results)
        if problems:
            raise AssertionError(
                f"{top} on {simulator}, seed {seed}: {len(problems)} of {len(results)} cases failed\n"
                + "\n".join(problems[:5])
            )
    return results


def _error_names() -> dict[int, str]:
    from step_hw.unit import ErrorCode

    return {code: name for name, code in vars(ErrorCode).items() if isinstance(code, int)}


def failures(results: Sequence[CaseResult]) -> list[str]:
    """The message of each failed case, under its name."""
    return [f"case {result.name}: {result.problem}" for result in results if result.problem]


def assert_same_on_both(one: Sequence[CaseResult], other: Sequence[CaseResult]) -> None:
    """The same cases gave the same beats in the same cycles on two simulators (or in two runs)."""
    assert len(one) == len(other), f"{len(one)} results against {len(other)}"
    for a, b in zip(one, other, strict=True):
        assert a.name == b.name, f"results of case {a.name} against those of case {b.name}"
        for port in a.stamps:
            x = list(zip(a.stamps[port], a.beats[port], strict=True))
            y = list(zip(b.stamps[port], b.beats[port], strict=True))
            for i in range(max(len(x), len(y))):
                left, right = (x[i] if i < len(x) else None), (y[i] if i < len(y) else None)
                assert left == right, f"case {a.name}, {port}, transfer {i}: {_told(left)} against {_told(right)}"
        assert (a.cycles, a.error, a.state) == (b.cycles, b.error, b.state), (
            f"case {a.name}: cycles, error, state {a.cycles, a.error, a.state} against {b.cycles, b.error, b.state}"
        )


def _told(transfer) -> str:
    return "none" if transfer is None else f"{transfer[1]} in cycle {transfer[0]}"
