"""Child processes that never outlive us: a whole process group is ended on Ctrl-C and on timeout."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Finished", "end_children", "run_group"]

_running: dict[int, tuple[subprocess.Popen, int, float]] = {}
"""Children of `run_group` by process id, with the signal and the grace of each."""


class Finished:
    """What a child process left: ``returncode``, its merged ``output`` and whether it ran out of time."""

    def __init__(self, returncode: int, output: str, timed_out: bool):
        self.returncode = returncode
        self.output = output
        self.timed_out = timed_out


def _end_group(child: subprocess.Popen, first: int, grace_s: float) -> None:
    """Send ``first`` to the child's group, then SIGKILL to what is left after ``grace_s`` seconds."""
    for number, wait_s in ((first, grace_s), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass
        try:
            child.wait(wait_s)
        except subprocess.TimeoutExpired:
            continue
        if number != signal.SIGKILL:  # the leader is gone; sweep up grandchildren (a compiler under make)
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return


def end_children() -> None:
    """End every child that `run_group` waits for in any thread, as Ctrl-C does in the main thread."""
    for child, interrupt, grace_s in list(_running.values()):
        _end_group(child, interrupt, grace_s)


def run_group(
    command: Sequence[str | os.PathLike],
    *,
    cwd: str | os.PathLike,
    log: Path,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    interrupt: int = signal.SIGTERM,
    grace_s: float = 5.0,
    stderr=None,
) -> Finished:
    """Run ``command`` in a process group of its own, its output going to the file ``log``.

    On Ctrl-C the group gets ``interrupt`` (a signal number; a native run takes SIGINT and saves what it has), then,
    ``grace_s`` seconds later, SIGKILL; ``KeyboardInterrupt`` goes on up. ``stderr=None`` merges it into the log;
    pass ``sys.stderr`` to let progress through.
    """
    with open(log, "wb") as sink:
        child = subprocess.Popen(
            [os.fspath(word) for word in command],
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT if stderr is None else stderr,
            start_new_session=True,
        )
        timed_out = False
        _running[child.pid] = (child, interrupt, grace_s)
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            _end_group(child, interrupt, grace_s)
        except BaseException:
            _end_group(child, interrupt, grace_s)
            raise
        finally:
            del _running[child.pid]
    return Finished(child.returncode, log.read_text(errors="replace"), timed_out)
