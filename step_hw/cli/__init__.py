"""The ``step-hw`` command. It sits on top of all layers, each imported only by the command that needs it."""

from __future__ import annotations

import sys

import click

from step_lang.errors import StepError

from .calibrate import calibrate
from .cosim import cosim, demo
from .generate import generate
from .simulate import simulate
from .validate import validate

__all__ = ["cli", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="step-hw")
def cli() -> None:
    """Hardware for Streaming Tensor Programs: Verilog, RTL simulation and a calibrated performance model."""


for command in (generate, cosim, simulate, calibrate, validate, demo):
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command. A user's mistake is one message and exit code 2, never a traceback."""
    try:
        code = cli.main(args=arguments, standalone_mode=False)
    except click.exceptions.Exit as request:
        sys.exit(request.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted: finished work is kept, the same command continues from it", err=True)
        sys.exit(2)
    except StepError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        place = f" '{error.filename}'" if error.filename else ""
        click.echo(f"error: {error.strerror or error}{place}", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
