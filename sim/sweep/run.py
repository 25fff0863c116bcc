"""Sends points to workers and takes their outcomes as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from step_lang.errors import SweepError

from .store import Store
from .work import Outcome, Task, work

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["run"]


def run(client: Client, tasks: Sequence[Task], store: Store, finished: Callable[[Outcome], None]) -> list[Outcome]:
    """Outcomes in the order of ``tasks``; ``finished`` is told each at once, in the order in which they come.

    Each is in ``store`` before ``finished`` is told. A point whose worker died twice is refused with that as its error
    and not kept. Whatever ends the run early, the points that were finished are in the store. Raises `SweepError` when
    the scheduler is lost or a worker cannot work, `BuildError` when the store has no room.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    outcomes: dict[int, Outcome] = {}
    futures: dict[Future, Task] = {}
    try:
        # Not pure: the same task sent again, after its store was emptied, is not answered from Dask's memory.
        sent = client.map(work, tasks, pure=False, key="point", batch_size=64)
        futures = dict(zip(sent, tasks, strict=True))
        for future in as_completed(sent):
            task = futures[future]
            try:
                outcome = future.result()
            except KilledWorker:
                outcome = Outcome(task.index, {}, "its worker was killed twice: vs one that has the memory it takes")
            if outcome.key and not outcome.cached and store.get(outcome.key) is None:
                store.put(outcome.key, outcome.entry)
            outcomes[task.index] = outcome
            finished(outcome)
            future.release()
    except SweepError:
        raise
    except (OSError, RuntimeError) as error:
        if _lost(error):
            raise SweepError(f"scheduler of the sweep: lost ({type(error).__name__}) vs one that answers to the end",
                             fix="run the same command again: finished points are kept") from None
        raise
    finally:
        _cancel(client, list(futures))
    return [outcomes[task.index] for task in tasks]


def _lost(error: BaseException) -> bool:
    """Whether an error of Dask means that there is no scheduler any more."""
    from concurrent.futures import CancelledError

    from distributed import TimeoutError as DaskTimeout
    from distributed.comm import CommClosedError

    return isinstance(error, (CommClosedError, CancelledError, DaskTimeout, ConnectionError))


def _cancel(client: Client, futures: list[Future]) -> None:
    """Have workers begin nothing more, if there still is somebody to tell."""
    waiting = [future for future in futures if not future.done()]
    if waiting and client.status == "running":
        client.cancel(waiting, force=True)
