"""What a replay saw, as tables for analysis in Arrow or pandas."""

from __future__ import annotations

import importlib
from typing import Any

from instances.errors import InputError
from solver.export.columns import tables_of
from solver.export.source import replayed
from solver.result import Result


def to_arrow(result: Result) -> dict[str, Any]:
    """Tables ``tasks``, ``transfers``, ``memory``, ``stalls`` and ``links`` of a result's plan, as ``pyarrow.Table``.

    Columns as in ``solver.export.columns.tables_of``; unknown numbers are null.

    Raises
    ------
    InputError
        Without a plan, or where pyarrow is not installed.
    InfeasibleError
        If the plan breaks a rule or deadlocks.
    """
    _library("pyarrow", "arrow")
    tables: dict[str, Any] = importlib.import_module("solver.export.arrow").arrow_tables(replayed(result))
    return tables


def to_pandas(result: Result) -> dict[str, Any]:
    """The same tables as ``pandas.DataFrame``; errors as above."""
    pandas = _library("pandas", "pandas")
    source = replayed(result)
    return {name: pandas.DataFrame(table) for name, table in tables_of(source.program, source.run).items()}


def _library(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise InputError("tables", name, f"{name} installed: pip install 'waferplan[{extra}]'") from None
