"""``python -m rtl_tests.mutants [--list | --trust | --table] [unit ..]``: a line a fault, the test that caught it."""

from __future__ import annotations

import argparse
import sys

from .fault import ROOT, Fault, FaultError, Unit, units
from .run import Outcome, baseline, run
from .table import PAGE, row, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rtl_tests.mutants", description=__doc__)
    parser.add_argument("units", nargs="*", metavar="unit", help=f"or unit/N; default: all ({', '.join(units())})")
    parser.add_argument("--list", action="store_true", help="only check that every fault can be seeded")
    parser.add_argument("--trust", action="store_true", help="the benches are known to pass without a fault")
    parser.add_argument("--table", action="store_true", help=f"write the units' rows of {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.units if name.partition("/")[0] not in units()]
    if unknown:
        parser.error(f"unit {unknown[0]!r} vs one of {', '.join(units())}")
    outcomes: list[Outcome] = []
    wrong = total = 0
    for name in chosen.units or units():
        unit = units()[name.partition("/")[0]]
        faults = [fault for fault in unit.faults if "/" not in name or fault.name == name]
        total += len(faults)
        if chosen.list:
            wrong += sum(not _listed(fault) for fault in faults)
            continue
        try:
            if not chosen.trust:
                baseline(unit)
        except FaultError as error:
            print(error)
            return 1
        found = [outcome for outcome in (_tried(unit, fault) for fault in faults) if outcome is not None]
        wrong += len(faults) - len(found)
        outcomes += found
        if chosen.table and len(found) == len(unit.faults):
            write({unit.name: row(unit, found)})
    survived = sum(not outcome.caught for outcome in outcomes)
    print(f"{total} faults, {survived} survived, {wrong} could not be seeded")
    return int(bool(survived or wrong))


def _listed(fault: Fault) -> bool:
    try:
        fault.apply((ROOT / fault.file).read_text())
    except FaultError as error:
        print(f"{fault.name:<18} ERROR    {error}")
        return False
    print(f"{fault.name:<18} {fault.what}")
    return True


def _tried(unit: Unit, fault: Fault) -> Outcome | None:
    """What the bench makes of the fault, printed; None where it cannot be seeded."""
    try:
        outcome = run(unit, fault)
    except FaultError as error:
        print(f"{fault.name:<18} ERROR    {error}", flush=True)
        return None
    verdict = "caught  " if outcome.caught else "SURVIVED"
    print(f"{fault.name:<18} {verdict} {outcome.seconds:5.1f} s  {fault.what:<60} {outcome.test or ''} "
          f"{outcome.message[:120]}".rstrip(), flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
