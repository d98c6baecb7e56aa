"""Quantities: every unit, exact to the last bit, and what is no quantity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.base import Document
from instances.errors import InputError
from instances.units import (
    BYTES,
    BYTES_PER_S,
    FASTEST,
    FLOPS_PER_S,
    LONGEST_S,
    MOST_BYTES,
    MOST_TOKENS,
    SECONDS,
    TOKENS,
    Bytes,
    BytesPerSecond,
    FlopsPerSecond,
    Seconds,
    Tokens,
    parse_quantity,
)

# Written out apart from the tables of the module: power of ten, or power of two.
TENS = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}
TIMES = {"s": 0, "ms": -3, "us": -6, "\u00b5s": -6, "\u03bcs": -6, "ns": -9, "ps": -12}


class Sheet(Document):
    """One field of every quantity."""

    time_s: Seconds = 0.0
    size_bytes: Bytes = 1.0
    link_bytes_per_s: BytesPerSecond = 1.0
    peak_flops: FlopsPerSecond = 1.0
    length: Tokens = 0


@pytest.mark.parametrize(("prefix", "power"), TENS.items())
def test_decimal_prefixes_are_powers_of_1000(prefix: str, power: int) -> None:
    assert parse_quantity(f"3 {prefix}B", BYTES) == 3 * 10**power
    assert parse_quantity(f"3 {prefix}B/s", BYTES_PER_S) == 3 * 10**power
    assert parse_quantity(f"3 {prefix}FLOP/s", FLOPS_PER_S) == 3 * 10**power
    assert parse_quantity(f"3 {prefix}FLOPS", FLOPS_PER_S) == 3 * 10**power


@pytest.mark.parametrize(("prefix", "power"), TWOS.items())
def test_binary_prefixes_are_powers_of_1024(prefix: str, power: int) -> None:
    assert parse_quantity(f"3 {prefix}B", BYTES) == 3 * 2**power
    assert parse_quantity(f"3 {prefix}B/s", BYTES_PER_S) == 3 * 2**power


@pytest.mark.parametrize(("unit", "power"), TIMES.items())
def test_times(unit: str, power: int) -> None:
    assert parse_quantity(f"3 {unit}", SECONDS) == float(f"3e{power}")


def test_minutes_hours_and_tokens() -> None:
    assert (parse_quantity("1.5 min", SECONDS), parse_quantity("2 h", SECONDS)) == (90, 7200)
    assert parse_quantity("5 tokens", TOKENS) == 5
    assert {parse_quantity(f"128 {unit}", TOKENS) for unit in ("k", "K", "Ki")} == {131072}
    assert {parse_quantity(f"2 {unit}", TOKENS) for unit in ("M", "Mi")} == {2097152}


def test_no_unit_is_left_out() -> None:
    assert BYTES.keys() == {f"{prefix}B" for prefix in TENS | TWOS}
    assert BYTES_PER_S.keys() == {f"{prefix}B/s" for prefix in TENS | TWOS}
    assert FLOPS_PER_S.keys() == {f"{prefix}{name}" for prefix in TENS for name in ("FLOP/s", "FLOPS")}
    assert SECONDS.keys() == TIMES.keys() | {"min", "h"}
    assert TOKENS.keys() == {"tokens", "k", "K", "Ki", "M", "Mi"}


@pytest.mark.parametrize(
    ("text", "units", "value"),
    [
        # Each differs from the product with 1e-9, 1e-6 or 1e9 in the last bit, or could.
        ("50 ns", SECONDS, 50e-9),
        ("5 us", SECONDS, 5e-6),
        ("0.3 us", SECONDS, 0.3e-6),
        ("20us", SECONDS, 20e-6),
        ("180 GB", BYTES, 180e9),
        ("64.4 GB", BYTES, 64.4e9),
        ("1 GiB", BYTES, 2**30),
        ("0.1 GiB", BYTES, 107374182.4),
        ("7.7 TB/s", BYTES_PER_S, 7.7e12),
        ("4.5 PFLOP/s", FLOPS_PER_S, 4.5e15),
        ("4.35 EFLOPS", FLOPS_PER_S, 4.35e18),
        (" 1e3 B ", BYTES, 1000),
        ("1.E+2 kB", BYTES, 100_000),
        (".5 kB", BYTES, 500),
        ("+5 us", SECONDS, 5e-6),
        ("12", BYTES, 12),
        (12, BYTES, 12),
        (0.1, BYTES, 0.1),
        (np.float64(0.1), BYTES, 0.1),
    ],
)
def test_exact(text: object, units: dict[str, float], value: float) -> None:
    assert parse_quantity(text, units) == value


@given(st.decimals(min_value=0, max_value=10**6, allow_nan=False, places=4), st.sampled_from(sorted(TIMES)))
def test_times_are_the_nearest_double(number: object, unit: str) -> None:
    assert parse_quantity(f"{number} {unit}", SECONDS) == float(f"{number}e{TIMES[unit]}")


@given(st.decimals(min_value=0, max_value=10**6, allow_nan=False, places=4), st.sampled_from(sorted(TENS)))
def test_bytes_are_the_nearest_double(number: object, prefix: str) -> None:
    assert parse_quantity(f"{number} {prefix}B", BYTES) == float(f"{number}e{TENS[prefix]}")


@given(st.floats(min_value=0, max_value=LONGEST_S))
def test_round_trip(number: float) -> None:
    assert parse_quantity(number, SECONDS) == parse_quantity(repr(number), SECONDS) == number
    # As canonical form and back.
    sheet = Sheet(time_s=number)
    assert Sheet.parse(sheet.model_dump(mode="json")) == sheet


WRONG: dict[str, list[Any]] = {
    "time_s": ["5 B", "5 sec", "5 Ms", "5 US", "s", "-1", -1, -1e-30, "-5 us", "2e6 s", 1000001],
    "size_bytes": ["5 s", "5 gb", "5 GB/s", "5 Gb", "5 GiBs", "180GB GB", 0, "0 GB", -1, "-1 B"],
    "link_bytes_per_s": ["5 TB", "5 TBps", "5 Tb/s", "5 GiB", 0, 0.0, -1],
    "peak_flops": ["5 PFLOP", "5 Pflops", "5 GiFLOP/s", "5 TOPS", 0, -1],
    "length": ["5 kB", "5 token", "1.0001k", 0.5, -1, "-1k", MOST_TOKENS + 1, 1e300, "1025 Gi"],
}
NEVER: list[Any] = [
    None,
    True,
    False,
    "",
    " ",
    "five",
    "nan",
    "inf",
    "Infinity",
    "1,5",
    "1_000",
    "0x10",
    "1e",
    "--1",
    "1e400",
    "1 2",
    float("nan"),
    float("inf"),
    float("-inf"),
    10**400,
    [],
    [1],
    {},
    {"value": 1},
]


@pytest.mark.parametrize("field", WRONG)
def test_what_is_no_quantity(field: str) -> None:
    for value in WRONG[field] + NEVER:
        with pytest.raises(InputError, match=r"is not allowed; expected a (finite |whole )?number") as caught:
            Sheet.parse({field: value})
        assert caught.value.field == field


def test_limits_are_allowed() -> None:
    sheet = Sheet.parse({"time_s": LONGEST_S, "length": MOST_TOKENS, "size_bytes": MOST_BYTES, "peak_flops": FASTEST})
    assert (sheet.time_s, sheet.length, sheet.size_bytes, sheet.peak_flops) == (1e6, 2**40, 1e18, 1e24)
    assert Sheet.parse({"time_s": 0, "length": 0}) == Sheet()


def test_a_wrong_unit_names_the_right_ones() -> None:
    with pytest.raises(InputError, match=r"'5 GB/s' is not allowed; .* a string with a unit \(B, kB, KB, MB, GB, "):
        Sheet.parse({"size_bytes": "5 GB/s"})
    with pytest.raises(InputError, match=r"k = 1024 tokens"):
        Sheet.parse({"length": 1.5})


def test_zero_has_no_sign() -> None:
    # -0.0 equals 0.0 and would print differently.
    for value in (-0.0, "-0 us", "-0"):
        assert math.copysign(1, parse_quantity(value, SECONDS)) == 1


def test_tokens_are_whole_numbers() -> None:
    sheet = Sheet.parse({"length": "1.5k"})
    assert (sheet.length, type(sheet.length)) == (1536, int)
    assert Sheet.parse({"length": 131072.0}).length == 131072


def test_canonical_form_is_in_base_units() -> None:
    canonical = Sheet.parse({"time_s": "5 us", "size_bytes": "1 GiB", "length": "2k"}).model_dump(mode="json")
    assert canonical == {
        "time_s": 5e-6,
        "size_bytes": 2**30,
        "link_bytes_per_s": 1,
        "peak_flops": 1,
        "length": 2048,
    }
