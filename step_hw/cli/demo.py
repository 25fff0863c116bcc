"""``step-hw demo``: ``cosim`` of the paper's SwiGLU layer."""

from __future__ import annotations

from pathlib import Path

import click

from .cosim import run

__all__ = ["demo"]


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("build/demo"),
    show_default=True,
    metavar="DIR",
    help="Where to write files.",
)
def demo(output: Path) -> None:
    """Run cosim on the paper's SwiGLU layer.

    Batch 64, hidden 256, intermediate 512 in tiles of 64 x 256 x 64, on T = 16.
    """
    import examples.swiglu

    run(
        str(Path(examples.swiglu.__file__)),
        ("batch=64", "hidden=256", "intermediate=512", "tile_b=64", "tile_f=64"),
        output=output,
    )
