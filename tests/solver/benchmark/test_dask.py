"""Runs on a Dask cluster on this machine, one of whose workers is killed."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest

from instances.errors import InputError
from solver.benchmark.pools import LocalPool
from solver.benchmark.record import Record
from solver.benchmark.records_file import RecordsFile, read_records
from solver.benchmark.runner import run_all
from tests.solver.benchmark.making import tasks
from tests.solver.benchmark.run_functions import HERE
from tests.solver.benchmark.test_runner import Ear

if importlib.util.find_spec("distributed") is None:
    pytest.skip("distributed is not installed (the extra dask)", allow_module_level=True)

from distributed import LocalCluster

from solver.benchmark.dask_pool import DaskPool

QUICK = f"{HERE}:quick"


def facts(record: Record) -> dict[str, object]:
    """A record without the time of day."""
    return record.model_dump(exclude={"time"})


@pytest.mark.slow
# The cluster's own threads and sockets outlive a worker that is killed.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_two_workers_of_which_one_is_killed_give_the_records_of_a_local_run(tmp_path: Path) -> None:
    path, ear = tmp_path / "records.jsonl", Ear()
    grid = tasks("gpipe", "cpp", seeds=range(2))
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options, silence_logs=50) as cluster, RecordsFile.open(path) as file:
        pool = DaskPool(cluster.scheduler_address, function=QUICK)
        first = next(iter(cluster.workers.values())).pid
        for number, _ in enumerate(run_all(grid, pool, ear, file=file)):
            if number == 0:
                os.kill(first, signal.SIGKILL)
    local = run_all(grid, LocalPool(2, function=QUICK), Ear())
    by_seed = {(record.method, record.seed): facts(record) for record in local}
    assert {(record.method, record.seed): facts(record) for record in read_records(path).records} == by_seed
    assert len(path.read_bytes().splitlines()) == len(by_seed) == 4


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.benchmark.dask_pool.CONNECT_S", 0.2)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(InputError, match=r"--dask.*a running Dask scheduler"):
            list(DaskPool(address).records(tasks(), lambda task: None))
    assert list(DaskPool("tcp://127.0.0.1:9").records([], lambda task: None)) == []
