"""Sends points to workers and takes their outcomes as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from step_lang.errors import SweepError

from .store import Store
from .work import Outcome, Task, work

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["run"]

_KILLED = "its worker died each time vs one that has the memory it takes; fix: give workers more with --memory"


_POLL_SECONDS = 0.02


def run(client: Client, tasks: Sequence[Task], store: Store, finished: Callable[[Outcome], None],
        check: Callable[[], None] = lambda: None) -> list[Outcome]:
    """Outcomes in the order of ``tasks``; ``finished`` is told each at once, in the order in which they come.

    Each is in ``store`` before ``finished`` is told. Points that a worker had when it died are tried again, one by one;
    one whose worker dies then too is refused with that as its error and not kept. Whatever ends the run early, finished
    points are in the store. ``check`` is called while nothing comes, and ends the run by what it raises. Raises
    `SweepError` when the scheduler is lost or a worker cannot work, `BuildError` when the store has no room.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    outcomes: dict[int, Outcome] = {}
    futures: dict[Future, Task] = {}

    def send(some: Sequence[Task]) -> Iterator[tuple[Future, Task]]:
        # Not pure: the same task sent again, after its store was emptied, is not answered from Dask's memory.
        sent = client.map(work, some, pure=False, key="point", batch_size=64)
        futures.update(zip(sent, some, strict=True))
        coming = as_completed(sent)
        while not coming.is_empty():
            if coming.has_ready():
                future = next(coming)
                yield future, futures.pop(future)
            else:
                check()
                time.sleep(_POLL_SECONDS)

    def take(outcome: Outcome) -> None:
        if outcome.key and not outcome.cached and store.get(outcome.key) is None:
            store.put(outcome.key, outcome.entry)
        outcomes[outcome.index] = outcome
        finished(outcome)

    suspects = []
    try:
        for future, task in send(tasks):
            try:
                take(future.result())
            except KilledWorker:  # by it, or by another point that the worker had
                suspects.append(task)
        for suspect in suspects:
            for future, task in send([suspect]):
                try:
                    take(future.result())
                except KilledWorker:
                    take(Outcome(task.index, {}, _KILLED))
    except SweepError:
        raise
    except ImportError as error:
        raise SweepError(f"a worker of the sweep: {error} vs an installed step-hw and what the program imports",
                         fix="start workers where step-hw can be imported") from None
    except BaseException as error:  # Dask's cancellations are no Exception
        if isinstance(error, RuntimeError) and "deserialization" in str(error):  # by the scheduler
            cause = f": {error.__cause__}" if error.__cause__ else ""
            raise SweepError(f"scheduler of the sweep: cannot read the points{cause} vs an installed step-hw",
                             fix="start the scheduler and its workers where step-hw can be imported") from None
        if _lost(error):
            raise SweepError(f"scheduler of the sweep: lost ({type(error).__name__}) vs one that answers to the end",
                             fix="run the same command again: finished points are kept") from None
        raise
    finally:
        _cancel(client, list(futures))
    return [outcomes[task.index] for task in tasks]


def _lost(error: BaseException) -> bool:
    """Whether an error of Dask means that there is no scheduler any more."""
    import asyncio
    import concurrent.futures

    from distributed.comm import CommClosedError

    return isinstance(error, (CommClosedError, asyncio.CancelledError, concurrent.futures.CancelledError, TimeoutError,
                              ConnectionError))


def _cancel(client: Client, futures: list[Future]) -> None:
    """Have workers begin nothing more, if there still is somebody to tell."""
    waiting = [future for future in futures if not future.done()]
    if waiting and client.status == "running":
        client.cancel(waiting, force=True)
