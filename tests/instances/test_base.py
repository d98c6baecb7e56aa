"""Documents: strict, and refused with one message that names field, value and what is allowed."""

from __future__ import annotations

import copy
import json
import pickle
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from instances.base import Document, first_problem, parse_json, read_json
from instances.errors import MISSING, InfeasibleError, InputError


class Inner(Document):
    """An object inside a document."""

    number: Annotated[float, Field(gt=0)] = 1.0
    pair: tuple[int, int] = (0, 0)


class Sample(Document):
    """A value of every form that documents use."""

    text: Annotated[str, Field(min_length=1)] = "a"
    flag: bool = False
    whole: Annotated[int, Field(ge=1, le=9)] = 1
    inner: Inner = Inner()
    named: dict[str, Inner] = Field(default_factory=dict)
    several: Annotated[tuple[int, ...], Field(min_length=1, max_length=2)] = (1,)
    split: Literal["even", "free"] | tuple[int, ...] = "even"
    width: float | Inner = 1.0
    maybe: int | None = None

    @cached_property
    def double(self) -> int:
        """Derived from a field."""
        return 2 * self.whole


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "f.json: [] is not allowed; expected an object"),
        ({"text": 1}, "text: 1 is not allowed; expected a text"),
        ({"text": ""}, "text: '' is not allowed; expected a text that is not empty"),
        ({"text": None}, "text: null is not allowed; expected a text"),
        ({"flag": 1}, "flag: 1 is not allowed; expected true or false"),
        ({"flag": "true"}, "flag: 'true' is not allowed; expected true or false"),
        ({"whole": True}, "whole: true is not allowed; expected a whole number"),
        ({"whole": 1.0}, "whole: 1.0 is not allowed; expected a whole number"),
        ({"whole": "1"}, "whole: '1' is not allowed; expected a whole number"),
        ({"whole": 0}, "whole: 0 is not allowed; expected a number of at least 1"),
        ({"whole": 10}, "whole: 10 is not allowed; expected a number of at most 9"),
        ({"maybe": "x"}, "maybe: 'x' is not allowed; expected a whole number"),
        ({"inner": 5}, "inner: 5 is not allowed; expected an object"),
        ({"inner": {"number": "1"}}, "inner.number: '1' is not allowed; expected a number"),
        ({"inner": {"number": 0}}, "inner.number: 0 is not allowed; expected a number greater than 0"),
        ({"inner": {"number": float("nan")}}, "inner.number: nan is not allowed; expected a finite number"),
        ({"inner": {"number": 10**400}}, "expected a finite number"),
        ({"inner": {"pair": 1}}, "inner.pair: 1 is not allowed; expected a list"),
        ({"inner": {"pair": [1]}}, "inner.pair: [1] is not allowed; expected a list of 2 entries"),
        ({"inner": {"pair": [1, 2, 3]}}, "inner.pair: [1, 2, 3] is not allowed; expected a list of at most 2 entries"),
        ({"inner": {"pair": [1, True]}}, "inner.pair.1: true is not allowed; expected a whole number"),
        ({"named": {"a": {"number": []}}}, "named.a.number: [] is not allowed; expected a number"),
        ({"several": []}, "several: [] is not allowed; expected a list of at least 1 entries"),
        # Of a value with several forms: all of them, or the one that was meant.
        ({"split": 3}, "split: 3 is not allowed; expected 'even' or 'free' or a list"),
        ({"split": [1.5]}, "split.0: 1.5 is not allowed; expected a whole number"),
        ({"width": "x"}, "width: 'x' is not allowed; expected a number or an object"),
        ({"width": {"number": "x"}}, "width.number: 'x' is not allowed; expected a number"),
        ({"width": {"pear": 1}}, "width.pear: 1 is not allowed; expected one of the keys number, pair (unknown key)"),
        ({"inner": {"pear": 1}}, "inner.pear: 1 is not allowed; expected one of the keys number, pair (unknown key)"),
        ({"named": {"a": {"pear": 1}}}, "named.a.pear: 1 is not allowed; expected one of the keys number, pair"),
        ({"colour": 1}, "colour: 1 is not allowed; expected one of the keys text, flag, whole, inner, named, several"),
    ],
)
def test_messages(data: object, message: str) -> None:
    with pytest.raises(InputError, match=f"{re.escape(message)}") as caught:
        Sample.parse(data, file="f.json")
    assert caught.value.file == "f.json"
    assert str(caught.value).startswith("f.json: ")


def test_first_of_several_problems() -> None:
    with pytest.raises(InputError, match=r"^flag: 1 is not allowed; expected true or false$"):
        Sample.parse({"whole": "x", "flag": 1, "inner": []})
    # Not the deeper one of another field.
    with pytest.raises(InputError, match=r"^split: 3 is not allowed; expected 'even' or 'free' or a list$"):
        Sample.parse({"split": 3, "width": {"number": "x"}})


def test_what_is_missing_is_no_null() -> None:
    class Needy(Document):
        number: float

    with pytest.raises(InputError, match=r"^number: nothing is given; expected a value: this key is req") as caught:
        Needy.parse({})
    assert caught.value.value is MISSING


@pytest.mark.parametrize("data", [{"inner": {1, 2}}, {"maybe": 10**5000}, {"text": object()}, {(1, 2): 3}])
def test_what_is_no_json_is_refused(data: object) -> None:
    with pytest.raises(InputError, match=r"^input: 'dict' is not allowed; expected plain JSON data"):
        Sample.parse(data)


def test_documents_inside_data_are_read() -> None:
    sample = Sample.parse({"inner": Inner(number=2, pair=(3, 4)), "several": (1, 2)})
    assert (sample.inner.number, sample.inner.pair, sample.several) == (2, (3, 4), (1, 2))


def test_circular_and_deep_data_are_refused() -> None:
    circle: dict[str, object] = {}
    circle["inner"] = circle
    with pytest.raises(InputError, match="plain JSON data"):
        Sample.parse(circle)
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(InputError, match=r"valid JSON \(recursion limit"):
        Sample.parse({"inner": deep})


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_numbers_survive_to_the_last_bit(number: float) -> None:
    assert Inner.parse({"number": number}).number == number
    assert Inner.parse(parse_json(json.dumps({"number": number}))).number == number


def test_documents_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Sample().whole = 2


def test_copies_forget_what_was_derived() -> None:
    sample = Sample(whole=2)
    assert sample.double == 4
    assert sample.model_copy(update={"whole": 3}).double == 6
    assert (sample.double, copy.copy(sample).double, sample.model_copy(deep=True).double) == (4, 4, 4)
    assert sample == Sample(whole=2)


def test_documents_built_in_python_name_the_field_too() -> None:
    with pytest.raises(ValidationError) as caught:
        Sample(split=3, whole="x")  # type: ignore[arg-type]  # the point of the test
    problem = first_problem(Sample, caught.value, "f.json")
    assert (problem.field, problem.value, problem.file) == ("whole", "x", "f.json")
    with pytest.raises(ValidationError) as caught:
        Sample(split=3)  # type: ignore[arg-type]  # the point of the test
    assert (
        str(first_problem(Sample, caught.value, None)) == "split: 3 is not allowed; expected 'even' or 'free' or a list"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "complete, valid JSON .*column 1"),
        ('{"a": 1', "complete, valid JSON"),
        ('{"a": 1}}', "complete, valid JSON .Extra data at column 9"),
        ('{"a": 1,}', "complete, valid JSON"),
        ('{\n"a": 1\n"b": 2}', "line 3, column 1"),
        (f'{{"{"a" * 500}": 1, "b": x}}', r": 'a{9}\": 1, .* is not allowed"),
        ("{'a': 1}", "complete, valid JSON"),
        ('{"a": NaN}', "a: 'NaN' is not allowed; expected JSON without NaN or Infinity"),
        ('{"b": [1, {"c.d": NaN}], "a": 1}', r"b\.1\.c\.d: 'NaN' is not allowed"),
        ("NaN", "trap.json: 'NaN' is not allowed"),
        ('{"a": [Infinity]}', r"a\.0: 'Infinity' is not allowed"),
        ('{"a": -Infinity}', "'-Infinity' is not allowed"),
        ('{"b": 1, "a": 2, "a": 3}', "a: 'a' is not allowed; expected each key once"),
        ('{"x": [{"rows": 1, "rows": 1}]}', "rows: 'rows' is not allowed; expected each key once"),
        ("[" * 100_000, "nested less deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested less deeply"),
        ('{"a": ' + "9" * 5000 + "}", "at most 4300 digits"),
    ],
    ids=str.__len__,
)
def test_traps_of_json(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trap.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_json(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 300 + len(str(path))


def test_a_byte_order_mark_is_no_trap(tmp_path: Path) -> None:
    path = tmp_path / "marked.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n')
    assert read_json(path) == {"a": 1}


@pytest.mark.parametrize("content", [b"\xff\xfe{\x00}\x00", b'{"a": "\xe9"}'])
def test_other_encodings_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "encoded.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="a readable UTF-8 file"):
        read_json(path)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the path of an existing file") as caught:
        read_json(tmp_path / "none.json")
    assert caught.value.file == str(tmp_path / "none.json")
    with pytest.raises(InputError, match="a readable UTF-8 file"):
        read_json(tmp_path)
    with pytest.raises(InputError, match="a readable UTF-8 file"):
        read_json("a\0b.json")


def test_numbers_beyond_doubles_reach_the_field_that_refuses_them() -> None:
    assert parse_json("1e400") == float("inf")
    with pytest.raises(InputError, match=r"^number: inf is not allowed; expected a finite number$"):
        Inner.parse(parse_json('{"number": 1e400}'))


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(InputError, match="valid JSON"):
        Sample.parse(parse_json(r'{"text": "\ud800"}'))


def test_long_values_are_shortened() -> None:
    message = str(InputError("a.b", "x" * 1000, "less"))
    assert message == f"a.b: '{'x' * 53}…{'x' * 24}' is not allowed; expected less"
    assert "part-of-a-path/name.json'" in str(InputError("a.b", "/x" * 100 + "part-of-a-path/name.json", "less"))
    assert "too long to print" in str(InputError("a.b", 10**5000, "less"))


def test_file_is_named_once() -> None:
    error = InputError("a", 1, "2")
    assert str(error.in_file("f")) == "f: a: 1 is not allowed; expected 2"
    assert error.in_file("f").in_file("g").file == "f"
    assert str(InputError("", 1, "2")) == "input: 1 is not allowed; expected 2"


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(InputError("a", MISSING, "a value", file="f")))
    assert str(error) == "f: a: nothing is given; expected a value"
    assert (error.field, error.value, error.allowed, error.file) == ("a", MISSING, "a value", "f")
    infeasible = pickle.loads(pickle.dumps(InfeasibleError("batch_range", "no batch fits")))
    assert (infeasible.rule, str(infeasible)) == ("batch_range", "batch_range: no batch fits")
