"""Where the workers are: this machine, a running Dask scheduler, or a batch system by way of dask-jobqueue."""

from __future__ import annotations

import logging
import signal
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from step_lang.errors import SweepError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["BATCH_SYSTEMS", "Profile", "Watch", "connect", "job_script", "watched"]

BATCH_SYSTEMS = {
    "slurm": ("dask_jobqueue.slurm", "SLURMCluster"),
    "lsf": ("dask_jobqueue.lsf", "LSFCluster"),
    "pbs": ("dask_jobqueue.pbs", "PBSCluster"),
    "local": ("dask_jobqueue.local", "LocalCluster"),
}
"""Batch systems by the name that a profile gives, with module and class; ``local`` runs jobs as processes, to try a
profile."""

CONNECT_SECONDS = 10
"""Patience with a scheduler that does not answer."""

_CONFIG = {
    "distributed.scheduler.allowed-failures": 0,  # `run` tries the points of a dead worker again, each alone
    "distributed.worker.memory.target": False,  # results are small: there is nothing to spill
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,  # a worker that waits for memory that nobody frees would wait for ever
    "distributed.worker.memory.terminate": 0.95,
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
}


@dataclass(frozen=True)
class Profile:
    """Jobs of a batch system.

    system : one of `BATCH_SYSTEMS`
    jobs : how many are submitted
    options : what dask-jobqueue's cluster class takes: cores, memory, walltime, queue, ...
    """

    system: str
    jobs: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Profile:
        """Read a TOML file with ``system``, ``jobs`` and a table ``[options]``. Raises `SweepError`."""
        try:
            document = tomllib.loads(path.read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SweepError(f"cluster profile {path}: {reason} vs a readable TOML file") from None
        unknown = sorted(set(document) - {"system", "jobs", "options"})
        if unknown:
            raise SweepError(f"cluster profile {path}: unknown key '{unknown[0]}' vs system, jobs, options")
        system, jobs, options = document.get("system"), document.get("jobs", 1), document.get("options", {})
        if not isinstance(system, str) or system not in BATCH_SYSTEMS:
            raise SweepError(f"cluster profile {path}: system {system!r} vs one of {', '.join(BATCH_SYSTEMS)}")
        if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
            raise SweepError(f"cluster profile {path}: jobs {jobs!r} vs an int from 1")
        if not isinstance(options, dict):
            raise SweepError(f"cluster profile {path}: options {options!r} vs a table")
        return cls(system, jobs, options)

    def cluster(self, refused: Callable[[Exception], None] = lambda _: None) -> Any:
        """The cluster, without jobs yet; ``refused`` is told why a job could not be submitted. Raises `SweepError`."""
        from importlib import import_module

        module, name = BATCH_SYSTEMS[self.system]
        try:
            made = getattr(import_module(module), name)
            return made(**{"job_cls": _telling(made.job_cls, refused), **self.options})
        except ImportError as error:
            raise SweepError(f"batch system {self.system}: {error} vs an installed dask-jobqueue",
                             fix="pip install 'step-hw[cluster]'") from None
        except (TypeError, ValueError) as error:
            raise SweepError(f"batch system {self.system}, options of the profile: {error}",
                             fix="give what dask-jobqueue's class takes") from None


def _telling(job: Any, refused: Callable[[Exception], None]) -> Any:
    """The class ``job`` of dask-jobqueue, whose errors of submission would only be logged."""

    class Job(job):
        async def _submit_job(self, script_filename: str) -> Any:
            try:
                return await super()._submit_job(script_filename)
            except Exception as error:
                refused(error)
                raise

    return Job


def job_script(profile: Profile) -> str:
    """The script that the batch system gets for one job."""
    with _quiet(), profile.cluster() as cluster:
        return cluster.job_script()


@contextmanager
def connect(
    workers: int, memory: str = "auto", scheduler: str | None = None, profile: Profile | None = None, *,
    processes: bool = True
) -> Iterator[Client]:
    """A client of ``workers`` processes on this machine with ``memory`` each, of the scheduler at an address, or of a
    batch system's jobs; what was started for it ends with it.

    A worker of this machine that takes more than its memory is ended and started anew. ``processes=False`` (tests)
    keeps workers in this process. Raises `SweepError` for a scheduler that cannot be reached.
    """
    from distributed import Client, LocalCluster

    with _quiet():
        if scheduler is not None:
            try:
                client = Client(scheduler, timeout=CONNECT_SECONDS)
            except (OSError, ValueError, TimeoutError) as error:
                raise SweepError(f"scheduler {scheduler}: {_first_line(error)} vs a Dask scheduler that answers",
                                 fix="start one with 'dask scheduler' and give tcp://HOST:PORT") from None
            with client:
                yield client
            return
        if profile is not None:
            refusals: list[Exception] = []
            cluster = profile.cluster(refusals.append)
            try:
                with Client(cluster, timeout=CONNECT_SECONDS) as client:
                    client.refusals = refusals
                    cluster.scale(jobs=profile.jobs)
                    yield client
            finally:
                try:
                    cluster.close()
                except AssertionError:  # of Dask, about jobs that were never submitted
                    if not refusals:
                        raise
            return
        with _deaf_to_interrupts():
            local = LocalCluster(n_workers=workers, threads_per_worker=1, processes=processes,
                                 memory_limit=memory if processes else None, dashboard_address="127.0.0.1:0",
                                 silence_logs=logging.CRITICAL)
        with local as cluster, Client(cluster) as client:
            yield client


class Watch:
    """What `watched` has seen of the workers."""

    def __init__(self) -> None:
        self.error: SweepError | None = None

    def check(self) -> None:
        """Raise the `SweepError` of a sweep whose workers did not come."""
        if self.error is not None:
            raise self.error


@contextmanager
def watched(client: Client, tell: Callable[[str], None], seconds: float = 5.0, patience: float | None = None
            ) -> Iterator[Watch]:
    """Looks every few seconds whether there are workers, and tells when there are none, and when there are some again:
    a sweep waits for them, and whoever waits for it should know. After ``patience`` seconds without any (None: never)
    the watch's `check` raises."""
    over, watch = Event(), Watch()

    def look() -> None:
        were_some, last = True, time.monotonic()
        while not over.wait(seconds):
            refusals = getattr(client, "refusals", ())
            try:
                some = bool(client.scheduler_info()["workers"])
            except Exception:  # the scheduler is lost, which the sweep itself tells
                return
            now = time.monotonic()
            if some:
                last = now
            elif refusals:
                watch.error = SweepError(f"jobs of the sweep: {_reason(refusals[0])} vs a batch system that takes them",
                                         fix="run where jobs are submitted, with options that its queue allows")
                return
            elif patience is not None and now - last >= patience:
                watch.error = SweepError(f"workers of the sweep: none for {patience:g} s vs at least one",
                                         fix="start workers, or give them longer with --wait")
                return
            if some != were_some:
                limit = "" if patience is None else f", at most {patience:g} s"
                tell("there are workers again" if some else f"there are no workers: waiting for them{limit}")
            were_some = some

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join(2 * seconds)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Threads and processes begun here do not see Ctrl-C, nor do those that these begin: a terminal sends it to all,
    and it is this process that ends the others."""
    resource_tracker.ensure_running()  # which would let its thread see it again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _reason(error: Exception) -> str:
    """Why a job was not submitted, in a line: dask-jobqueue repeats command and output."""
    if isinstance(error, OSError):
        return f"{error.filename or 'the command'}: {error.strerror or error}"
    return " ".join(str(error).split())[:300] or type(error).__name__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask as a sweep needs it, and without its log: what matters is told by the sweep."""
    import dask

    names = ("distributed", "distributed.core", "distributed.nanny", "distributed.scheduler", "distributed.worker",
             "distributed.client", "distributed.comm", "distributed.batched", "distributed.deploy", "tornado",
             "tornado.application", "asyncio", "bokeh")
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with dask.config.set(_CONFIG):
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
