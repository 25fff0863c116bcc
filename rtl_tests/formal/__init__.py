"""Proofs of what the control of a unit keeps: bounded, and by induction where that closes (docs/FORMAL.md).

    harness.py   a unit with free surroundings, and what is assumed and what is to hold
    grammar.py   the stop-token grammar of a link
    queue.py     what a unit owes: the beats that should leave, in order
    units/       for each unit a reference model and the faults that show that its proof can fail
    translate.py harness to transition system (Yosys), btor.py its text, solver.py the search (Bitwuzla)
    faults.py    a unit with a fault in its source
    trace.py     a counterexample as beats
    table.py     docs/FORMAL.md
"""
