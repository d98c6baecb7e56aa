"""The one error that bad input raises, whatever is wrong with it."""

from __future__ import annotations

import contextlib
import json


class _Missing:
    """The value of a key that is not there."""

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"  # the one instance also in another process


MISSING = _Missing()


class InputError(ValueError):
    """Input that cannot be used: names the file, the field, the value and what is allowed.

    Commands print it as one message and exit with code 2.

    Parameters
    ----------
    field
        Dotted path of the field, for example ``hardware.die.hbm_bytes``; empty for the document as a whole.
    value
        The offending value, shown shortened; ``MISSING`` for a key that is not there.
    allowed
        What is allowed instead, as a noun phrase or a sentence.
    file
        The file it came from, where there is one.
    """

    def __init__(self, field: str, value: object, allowed: str, *, file: str | None = None) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.file = file
        super().__init__(str(self))

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.field) if part)
        problem = "nothing is given" if self.value is MISSING else f"{_shorten(self.value)} is not allowed"
        return f"{where or 'input'}: {problem}; expected {self.allowed}"

    def __reduce__(self) -> tuple[type[InputError], tuple[str, object, str], dict[str, str | None]]:
        return type(self), (self.field, self.value, self.allowed), {"file": self.file}

    def in_file(self, file: str) -> InputError:
        """The same error with the file named, unless one is named already."""
        return self if self.file else type(self)(self.field, self.value, self.allowed, file=file)


class PlanError(InputError):
    """A plan that cannot be timed or replayed, though the instance is sound and other plans of it can."""


class InfeasibleError(Exception):
    """The data are sound, but no plan can exist; carries the rule that forbids it (exit code 1).

    Parameters
    ----------
    rule
        Name of the rule as in the specification.
    reason
        One readable sentence with the amounts.
    """

    def __init__(self, rule: str, reason: str) -> None:
        self.rule = rule
        self.reason = reason
        super().__init__(rule, reason)

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}"


def _shorten(value: object, limit: int = 80, end: int = 25) -> str:
    """The value as JSON spells it where Python does not, and of a long one its start and end (a path's name)."""
    try:
        text = repr(value)
    except ValueError:  # whole numbers of more digits than Python prints
        text = f"a {type(value).__name__} too long to print"
    if value is None or isinstance(value, bool | dict | list | tuple):
        with contextlib.suppress(TypeError, ValueError):  # what is not from JSON stays as Python shows it
            text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1 - end]}…{text[-end:]}"
