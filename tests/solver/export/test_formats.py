"""Exports are whole or not there, and need nothing but a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.errors import InfeasibleError, InputError
from instances.instance import Instance
from solver.export import FORMATS, export_result
from solver.export.formats import write
from solver.export.source import Source, replayed
from solver.simulation.lowering import Lowering
from tests.builders import small_instance, small_plan
from tests.solver.export.results import result_of, small_result, spilling_result

EVERY_FORMAT = pytest.mark.parametrize("to", list(FORMATS))


def locked_up() -> Instance:
    """Memory for the static part of the fullest die and three quarters of a request's KV, of which nothing is freed."""
    roomy = small_instance()
    static = max(Lowering(roomy).program(small_plan(roomy)).static_units.tolist())
    # 2048 tokens of 2 * 2 * 16 elements of 2 bytes.
    return small_instance(hardware__die__hbm_bytes=static + 3 * 2048 * 128 // 4)


@EVERY_FORMAT
def test_the_same_result_gives_the_same_files(tmp_path: Path, to: str) -> None:
    for name in ("one", "other"):
        export_result(spilling_result(), to, tmp_path / name)
    one, other = (
        {path.name: path.read_bytes() for path in ([out] if out.is_file() else sorted(out.iterdir()))}
        for out in (tmp_path / "one", tmp_path / "other")
    )
    assert [*one.values()] == [*other.values()]
    files = {"perfetto": 1, "chakra": 4, "sglang": 3, "vllm": 3, "vllm-ascend": 4, "tensorrt-llm": 4}
    assert len(one) == files.get(to, 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


@EVERY_FORMAT
def test_a_result_without_a_plan_is_refused(tmp_path: Path, to: str) -> None:
    with pytest.raises(InputError, match="plan: null is not allowed; expected a result that holds a plan"):
        export_result(result_of(small_instance(), None), to, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@EVERY_FORMAT
def test_a_plan_that_deadlocks_is_refused(tmp_path: Path, to: str) -> None:
    instance = locked_up()
    with pytest.raises(InfeasibleError, match=r"deadlock: .* waits for .* of memory"):
        export_result(result_of(instance, small_plan(instance)), to, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_plan_that_breaks_a_rule_is_refused() -> None:
    instance = small_instance()
    twice = small_plan(instance, placement=[[0, 0], [0, 0], [1, 1], [1, 0]])
    with pytest.raises(InfeasibleError):
        replayed(result_of(instance, twice))


def test_parts_of_different_results_are_refused() -> None:
    instance, other = small_instance(), small_instance(workload__requests=5)
    with pytest.raises(InputError, match="fingerprint: 'abc'"):
        replayed(result_of(instance, small_plan(instance), fingerprint="abc"))
    with pytest.raises(InputError, match=r"plan\.instance"):
        replayed(result_of(instance, small_plan(other)))


def test_an_unknown_format_is_refused_with_the_names_of_the_others(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="to: 'vhs' is not allowed; expected one of perfetto, chakra, sglang"):
        export_result(small_result(), "vhs", tmp_path / "out")


def test_a_file_is_replaced_and_an_empty_folder_filled(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old", encoding="utf-8")
    export_result(small_result(), "perfetto", tmp_path / "old.json")
    assert (tmp_path / "old.json").read_text(encoding="utf-8").startswith("{")
    (tmp_path / "empty").mkdir()
    export_result(small_result(), "chakra", tmp_path / "empty")
    assert len(list((tmp_path / "empty").iterdir())) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "old.json"]


@pytest.mark.parametrize(
    ("to", "out", "allowed"),
    [
        ("perfetto", "folder", "a new file or a regular file for perfetto"),
        ("chakra", "folder", "a new or an empty folder for chakra"),
        ("parquet", "file", "a new or an empty folder for parquet"),
        ("perfetto", "nowhere/t.json", "in an existing folder"),
        ("chakra", "nowhere/traces", "in an existing folder"),
        ("chakra", "file/traces", "in an existing folder"),
    ],
)
def test_paths_that_do_not_fit_are_refused(tmp_path: Path, to: str, out: str, allowed: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    with pytest.raises(InputError, match=f"out: .* is not allowed; expected .*{allowed}"):
        export_result(small_result(), to, tmp_path / out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "folder" / "file").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("folder", [True, False])
def test_an_export_that_breaks_off_leaves_nothing(tmp_path: Path, folder: bool, failure: BaseException) -> None:
    def breaks_off(source: Source, path: Path) -> str:
        (path / "part" if folder else path).write_text("part", encoding="utf-8")
        raise failure

    expected: type[BaseException] = InputError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="No space left on device" if isinstance(failure, OSError) else None):
        write(breaks_off, replayed(small_result()), tmp_path / "out", folder=folder)
    assert not list(tmp_path.iterdir())
