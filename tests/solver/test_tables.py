"""Tables of a replay in pandas and Arrow hold the same numbers as its metrics."""

from __future__ import annotations

import sys

import pytest

from instances.errors import InputError
from instances.instance import Instance
from solver import simulate, to_arrow, to_pandas
from tests.builders import small_instance
from tests.solver.export.results import result_of, spilling_result


def test_frames_agree_with_the_replay() -> None:
    result = spilling_result()
    assert result.plan is not None
    frames = to_pandas(result)
    metrics = simulate(Instance.read(result.instance), result.plan).metrics
    assert metrics is not None
    assert frames["tasks"]["end_s"].max() == pytest.approx(metrics.makespan_s)
    links = frames["links"]
    between_dies = links[(links["from_row"] >= 0) & (links["to_row"] >= 0)]  # a host has no row
    assert between_dies["carried_bytes"].sum() == pytest.approx(metrics.byte_hops)
    tables = to_arrow(result)
    assert {name: table.num_rows for name, table in tables.items()} == {name: len(f) for name, f in frames.items()}
    assert tables["tasks"]["end_s"].to_pylist() == pytest.approx(frames["tasks"]["end_s"].tolist())


@pytest.mark.parametrize(("tables", "library"), [(to_pandas, "pandas"), (to_arrow, "pyarrow")])
def test_a_missing_library_is_named(tables: object, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    assert callable(tables)
    with pytest.raises(InputError, match=rf"pip install 'waferplan\[{library.replace('pyarrow', 'arrow')}\]'"):
        tables(spilling_result())


def test_a_result_without_a_plan_has_no_tables() -> None:
    with pytest.raises(InputError, match="a result that holds a plan"):
        to_pandas(result_of(small_instance(), None))
