"""Profiles of batch systems, and a sweep on jobs that Dask's own local batch system runs."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim.sweep.cluster import Profile, connect, job_script, watched
from sim.sweep.run import run
from sim.sweep.store import Store
from sim.tests.sweep_cases import fresh_cache, tasks_of
from step_hw.tests.command import environment
from step_lang.errors import SweepError

pytest.importorskip("dask_jobqueue")

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "SWEEP.md"


def documented(system: str) -> str:
    """The profile of ``system`` in docs/SWEEP.md."""
    blocks = DOCUMENT.read_text().split("```toml\n")[1:]
    [found] = [block.split("```")[0] for block in blocks if f'system = "{system}"' in block]
    return found


@pytest.mark.parametrize("system, lines", [
    ("slurm", ["#SBATCH -p compute", "#SBATCH --cpus-per-task=8", "#SBATCH -t 02:00:00", "#SBATCH --mem=15G"]),
    ("lsf", ["#BSUB -q normal", "#BSUB -n 8", "#BSUB -W 02:00"]),
    ("pbs", ["#PBS -q workq", "#PBS -l select=1:ncpus=8:mem=15GB", "#PBS -l walltime=02:00:00"]),
])
def test_documented_profiles_become_job_scripts(system, lines, tmp_path):
    path = tmp_path / "profile.toml"
    path.write_text(documented(system))
    profile = Profile.load(path)
    assert profile.system == system and profile.jobs == 4
    script = job_script(profile)
    for line in lines:
        assert line in script.splitlines(), script
    assert "distributed.cli.dask_worker" in script or "dask worker" in script


def test_a_sweep_on_jobs(tmp_path, monkeypatch):
    """Workers are jobs: processes that `dask_jobqueue`'s local batch system starts from its job script."""
    for name, value in {**environment(), **fresh_cache(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "profile.toml"
    path.write_text(documented("local"))
    tasks, store = tasks_of(tmp_path / "store", (1, 2, 13)), Store(tmp_path / "store")
    with connect(2, profile=Profile.load(path)) as client:
        outcomes = run(client, tasks, store, lambda _: None)
        [where] = set(client.run(lambda: sys.argv[0]).values())
    assert [outcome.error is None for outcome in outcomes] == [True, True, False]
    assert "pytest" not in where, "the worker is a process of its own"
    assert all(store.get(outcome.key) for outcome in outcomes[:2])


def test_a_sweep_on_a_running_scheduler(tmp_path):
    """A scheduler and a worker as processes of their own; what is told when the one or the other dies."""
    env = {**environment(), **fresh_cache(tmp_path / "cache")}
    processes: list[subprocess.Popen] = []
    started: list[subprocess.Popen] = []

    def start(kind, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *arguments]
        processes.append(subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL))
        started.append(processes[-1])
        return processes[-1]

    def wait_until(ready):
        end = time.monotonic() + 90
        while not ready():
            assert time.monotonic() < end and all(process.poll() is None for process in processes)
            time.sleep(0.05)

    try:
        place = tmp_path / "scheduler.json"
        scheduler = start("scheduler", "--port", "0", "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0",
                          "--scheduler-file", str(place))
        wait_until(lambda: place.exists() and place.read_text().rstrip().endswith("}"))
        address = json.loads(place.read_text())["address"]
        worker = start("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path),
                       "--dashboard-address", "127.0.0.1:0")
        tasks, store, told = tasks_of(tmp_path / "store", (1, 2)), Store(tmp_path / "store"), []
        with connect(1, scheduler=address) as client, watched(client, told.append, 0.2):
            wait_until(lambda: client.scheduler_info()["workers"])
            outcomes = run(client, tasks, store, lambda _: None)
            worker.kill()
            processes.remove(worker)
            wait_until(lambda: "there are no workers: waiting for them" in told)
        assert [outcome.error for outcome in outcomes] == [None, None] and scheduler.poll() is None
        with connect(1, scheduler=address) as client:
            scheduler.kill()
            with pytest.raises(SweepError, match=r"scheduler of the sweep: lost .*finished points are kept"):
                run(client, tasks_of(tmp_path / "store", (3, 4)), store, lambda _: None)
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.parametrize("text, told", [
    ("system = 'condor'", "system 'condor' vs one of slurm, lsf, pbs, local"),
    ("jobs = 2", "system None vs one of"),
    ("system = ['slurm']", r"system \['slurm'\] vs one of"),
    ("system = 'local'\njobs = 0", "jobs 0 vs an int from 1"),
    ("system = 'local'\nqueue = 'x'", "unknown key 'queue' vs system, jobs, options"),
    ("system = 'local'\noptions = 1", "options 1 vs a table"),
    ("system = ", "vs a readable TOML file"),
])
def test_bad_profiles(text, told, tmp_path):
    path = tmp_path / "profile.toml"
    path.write_text(text)
    with pytest.raises(SweepError, match=rf"cluster profile {path}: .*{told}"):
        Profile.load(path)


def test_options_that_the_batch_system_does_not_take():
    with pytest.raises(SweepError, match=r"batch system slurm, options of the profile: .*coars"):
        job_script(Profile("slurm", 1, {"cores": 1, "memory": "1GB", "coars": 3}))


def test_a_batch_system_that_is_not_here(monkeypatch, tmp_path):
    """Jobs that nobody takes are told at once; a sweep would wait for them without limit."""
    monkeypatch.setenv("PATH", str(tmp_path))
    profile = Profile("slurm", 1, {"cores": 1, "processes": 1, "memory": "1GB"})
    with pytest.raises(SweepError, match=r"jobs of the sweep: sbatch: No such file .*; fix: run where jobs are"):
        with connect(1, profile=profile) as client, watched(client, lambda _: None, 0.1) as watch:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                watch.check()
                time.sleep(0.05)
