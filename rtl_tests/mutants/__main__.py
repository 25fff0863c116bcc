"""``python -m rtl_tests.mutants [unit ..] [--list]``: a line for each fault, with the test that caught it."""

from __future__ import annotations

import argparse
import sys

from .fault import ROOT, FaultError, units
from .run import baseline, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rtl_tests.mutants", description=__doc__)
    parser.add_argument("units", nargs="*", metavar="unit", help=f"default: all ({', '.join(units())})")
    parser.add_argument("--list", action="store_true", help="only check that every fault can be seeded")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.units if name.partition("/")[0] not in units()]
    if unknown:
        parser.error(f"unit {unknown[0]!r} vs one of {', '.join(units())}")
    names = chosen.units or list(units())
    survived = wrong = total = 0
    for name in names:
        unit = units()[name.partition("/")[0]]
        faults = [fault for fault in unit.faults if "/" not in name or fault.name == name]
        try:
            if not chosen.list:
                baseline(unit)
        except FaultError as error:
            print(error)
            return 1
        for fault in faults:
            total += 1
            try:
                if chosen.list:
                    fault.apply((ROOT / fault.file).read_text())
                    print(f"{fault.name:<18} {fault.what}")
                    continue
                outcome = run(unit, fault)
            except FaultError as error:
                wrong += 1
                print(f"{fault.name:<18} ERROR    {error}", flush=True)
                continue
            survived += not outcome.caught
            verdict = "caught  " if outcome.caught else "SURVIVED"
            print(f"{fault.name:<18} {verdict} {outcome.seconds:5.1f} s  {fault.what:<60} {outcome.test or ''}",
                  flush=True)
    print(f"{total} faults, {survived} survived, {wrong} could not be seeded")
    return int(bool(survived or wrong))


if __name__ == "__main__":
    sys.exit(main())
