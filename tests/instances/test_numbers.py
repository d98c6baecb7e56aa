"""Numbers for people."""

from __future__ import annotations

import pytest

from instances.numbers import byte_text, byte_unit, count_text, given_time_text, share_text, time_text, time_unit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0 s"),
        (8.85031, "8.8503 s"),
        (0.0123456, "12.346 ms"),
        (3e-8, "30.000 ns"),
        (1e6, "1000000 s"),
    ],
)
def test_times(value: float | None, text: str) -> None:
    assert time_text(value) == text


def test_given_times_keep_their_form() -> None:
    assert [given_time_text(value) for value in (5e-8, 2e-5, 0.0)] == ["50 ns", "20 us", "0 s"]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0, "0 B"), (1.5e9, "1.5 GB"), (180e9, "180 GB"), (999, "999 B")]
)
def test_bytes(value: float | None, text: str) -> None:
    assert byte_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (1.5e9, "1.500 GB"), (180e9, "180.0 GB"), (999, "999 B"), (0.25, "0.2500 B")],
)
def test_bytes_in_a_column(value: float | None, text: str) -> None:
    assert byte_text(value, aligned=True) == text


def test_a_count_may_have_no_unit() -> None:
    assert [byte_text(value, "") for value in (12.0, 12e3, 2e23)] == ["12", "12 k", "200000 E"]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.0, "0.00 %"), (1e-6, "<0.01 %"), (-1e-6, ">-0.01 %"), (0.01234, "1.23 %")]
)
def test_shares(value: float | None, text: str) -> None:
    assert share_text(value) == text


def test_signs_counts_and_units() -> None:
    assert share_text(0.05, signed=True) == "+5.00 %"
    assert share_text(0.0, signed=True) == "0.00 %"
    assert count_text(1234567) == "1\u202f234\u202f567"
    assert (time_unit(0.5).name, time_unit(2.0).name, time_unit(0.0).name) == ("ms", "s", "ns")
    assert (byte_unit(80e9).name, byte_unit(0.0).name) == ("GB", "B")
