"""Faults of streamify."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "streamify",
    ["rtl_tests/test_streamify.py", "rtl_tests/test_routed_buffers.py"],
    units_streamify=[
        ("off by one: a pass too many", "(passes + 1 >= cfg.repeat)", "(passes >= cfg.repeat)"),
        ("dropped stop: the reference's", "Mux(last_pass, buffer.stop + cfg.c, 0)", "Mux(last_pass, cfg.c, 0)"),
        ("off by one: a use ends a level later", "ends_use.eq(ref.stop >= cfg.c)", "ends_use.eq(ref.stop > cfg.c)"),
        (
            "stops of buffers and reference are not compared",
            "(~ref.done & ends_use & (buffer.stop != ref.stop - cfg.c))",
            "(ref.done & 0)",
            "routed_references",
        ),
        ("buffers are never freed", "p.release.eq(head.ready & ~buffer.empty)", "p.release.eq(0)"),
        ("off by one: an element too many", "stepped[k] >= p.length", "stepped[k] > p.length"),
        ("missed back-pressure", "(~full | o.ready)),\n            p.ref", "1),\n            p.ref"),
        (
            "the pass has no stop of its own",
            "pass_stop.eq(Mux(done, 0, stop + cfg.n))",
            "pass_stop.eq(Mux(done, 0, stop))",
        ),
        (
            "the stored stop at a pass's end",
            "stored_stop.eq(~cfg.affine & ~last)",
            "stored_stop.eq(~cfg.affine & reads)",
            "views",
        ),
        ("does not wait for its turn", "fire.eq(wants & (~reads | p.grant))", "fire.eq(wants)", "readers"),
        ("passes go on in the next buffer", "passes.eq(Mux(ends_use, 0, passes + 1))", "passes.eq(passes + 1)"),
        ("a view may leave its buffer", "out_of_range = reads & (index >= p.length)", "out_of_range = reads & 0",
         "views"),
        (
            "the reference leaves with a pass's first element",
            "self.in1.ready.eq(fire & last)",
            "self.in1.ready.eq(fire)",
        ),
        (
            "inner loops do not begin again",
            "[start[j].eq(stepped[k]) for j in range(k + 1)]",
            "[start[k].eq(stepped[k])]",
            "views",
        ),
        (
            "a buffer is freed with every pass",
            "head.ready.eq(fire & last & (ends_use | done))",
            "head.ready.eq(fire & last)",
        ),
        ("a reference to a freed buffer is used", "freed = ~buffer.empty & ~p.live", "freed = Signal()",
         "routed_references"),
        ("done frees a buffer", "p.release.eq(head.ready & ~buffer.empty)", "p.release.eq(head.ready)"),
        ("off by one: inner stops", "view_stop.eq(k)", "view_stop.eq(k + 1)", "views"),
        ("a stop too high wraps", "too_high = pass_stop >= 1 << STOP_WIDTH", "too_high = Signal()",
         "routed_references"),
        ("an empty buffer is read", "hollow = p.length == 0", "hollow = p.length == 1"),
    ],
)
