"""The ``step-hw`` command. It sits on top of all layers; each command imports them when it is run."""

from __future__ import annotations

import importlib
import sys

import click

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = ("generate", "simulate", "cosim", "replay", "validate", "sweep", "figures", "size-fifos", "report",
            "calibrate", "demo")
"""In the order of the help; command ``x-y`` is function ``x_y`` of ``step_hw/cli/x_y.py``."""


class _Commands(click.Group):
    """Commands that are imported when asked for, so that ``--help`` and mistakes are answered at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        return getattr(importlib.import_module(f"{__name__}.{name}"), name)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"step-hw {version('step-hw')}")
        except PackageNotFoundError:  # run from a checkout
            click.echo("step-hw, not installed")
        ctx.exit()


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Hardware for Streaming Tensor Programs: Verilog, RTL simulation and a calibrated performance model.

    PROGRAM.py holds a function build(**parameters) that returns a Program; --set gives it parameters. Exit code 0:
    done, 2: a mistake or a difference, told in one message.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run a command. A user's mistake is one message and exit code 2, never a traceback."""
    try:
        code = cli.main(args=arguments, prog_name="step-hw", standalone_mode=False)
    except click.exceptions.Exit as request:
        code = request.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except (KeyboardInterrupt, click.Abort) as error:
        what = str(error.__cause__ or error) or "nothing half-written is kept, finished builds are"
        click.echo(f"interrupted: {what}", err=True)
        code = 2
    except OSError as error:
        place = f" '{error.filename}'" if error.filename else ""
        click.echo(f"error: {error.strerror or error}{place}", err=True)
        code = 2
    except MemoryError as error:
        what = str(error) or "what is needed"
        click.echo(f"error: {what} vs the memory of this machine; fix: use smaller tensors or counts", err=True)
        code = 2
    except Exception as error:
        from step_lang.errors import StepError

        if not isinstance(error, StepError):
            raise
        click.echo(f"error: {error}", err=True)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)
