"""Looking at a run: one record of it, whichever simulator made it, and what is drawn and said from that record.

`Run` is the record; `run_of_beats` (beat fidelity), `run_of_transfers` (RTL) and `run_of_tiles` (tile fidelity) make
it; `report_html`, `trace_json`, `summary` and `findings` read it.
"""

from .beats import run_of_beats, run_of_transfers
from .findings import Finding, findings
from .page import report_html
from .record import STATES, Curve, Link, OperatorCost, Run, Unit
from .summary import summary
from .tiles import run_of_tiles
from .trace import trace_json

__all__ = ["STATES", "Curve", "Finding", "Link", "OperatorCost", "Run", "Unit", "findings", "report_html",
           "run_of_beats", "run_of_tiles", "run_of_transfers", "summary", "trace_json"]
