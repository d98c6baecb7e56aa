"""Flow graphs from CSV files."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.errors import InputError
from solver.place.graph import read_graph


def write(folder: Path, text: str) -> Path:
    path = folder / "graph.csv"
    path.write_bytes(text.encode("utf-8"))
    return path


def test_names_numbers_and_weights(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path, "source,target,weight\nalu,7,0.25\n7,memory,3\n"))
    assert graph.nodes == ("alu", "7", "memory")
    assert graph.flows == ((0, 1, 0.25), (1, 2, 3.0))


def test_rows_with_the_same_ends_add_up_in_each_direction(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path, "source,target,weight\na,b,1\nb,a,2\na,b,4\n"))
    assert graph.flows == ((0, 1, 5.0), (1, 0, 2.0))


@pytest.mark.parametrize(
    "text",
    [
        "a,b,1\n",  # no header
        "\ufeffsource,target,weight\na,b,1\n",  # a byte order mark
        "Source, Target ,WEIGHT\r\n a , b , 1 \r\n\r\n",  # blanks, capitals, other line ends, an empty line
        'source,target,weight\n"a","b",1e0\n',
        "a,b,1",  # no end of line
    ],
)
def test_forms(tmp_path: Path, text: str) -> None:
    graph = read_graph(write(tmp_path, text))
    assert (graph.nodes, graph.flows) == (("a", "b"), ((0, 1, 1.0),))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("rows", "source,target,weight")),
        ("source,target,weight\n", ("rows", "at least one")),
        ("from,to,bytes\na,b,1\n", ("line 1, weight", "bytes")),
        ("source,target,weight\na,b\n", ("line 2", "a,b", "three cells")),
        ("source,target,weight\na,b,1,2\n", ("line 2", "three cells")),
        ("source,target,weight\na,b,1\na,,1\n", ("line 3, target", "name or number")),
        ("source,target,weight\n,b,1\n", ("line 2, source",)),
        ("source,target,weight\na,a,1\n", ("line 2, target", "'a'", "another node")),
        ("source,target,weight\na,b,x\n", ("line 2, weight", "'x'", "0, or a number from")),
        ("source,target,weight\n\na,b,-1\n", ("line 3, weight", "'-1'")),
        ("source,target,weight\na,b,nan\n", ("line 2, weight", "'nan'")),
        ("source,target,weight\na,b,inf\n", ("line 2, weight", "'inf'", "to 1e+30")),
        ("source,target,weight\na,b,\n", ("line 2, weight", "''")),
        ("source,target,weight\na,b,1e-40\n", ("line 2, weight", "'1e-40'", "from 1e-30")),
        ("source,target,weight\na,b,1_000\n", ("line 2, weight", "'1_000'")),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        read_graph(write(tmp_path, text))
    assert "graph.csv" in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv.*existing file"):
        read_graph(tmp_path / "none.csv")
    broken = tmp_path / "graph.csv"
    broken.write_bytes(b"a,b,\xff\n")
    with pytest.raises(InputError, match=r"graph\.csv.*UTF-8"):
        read_graph(broken)
