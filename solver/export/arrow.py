"""The tables of a traced run as Parquet or Arrow files. Needs ``pyarrow``: ``pip install 'waferplan[arrow]'``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet

from solver.export.columns import Table, tables_of
from solver.export.source import Source


def arrow_tables(source: Source) -> dict[str, Any]:
    """Tables by name, as ``pyarrow.Table``, with the source's origin as metadata of each."""
    tables = tables_of(source.program, source.run)
    return {name: _arrow(table, source.origin) for name, table in tables.items()}


def write_parquet(source: Source, folder: Path) -> str:
    """Write ``tasks.parquet`` and so on into a folder."""
    tables = arrow_tables(source)
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    return _counted(tables)


def write_arrow(source: Source, folder: Path) -> str:
    """Write ``tasks.arrow`` and so on into a folder: Arrow files, which are also called Feather version 2.

    They are not compressed, so that any reader can map them into memory.
    """
    tables = arrow_tables(source)
    for name, table in tables.items():
        pyarrow.feather.write_feather(table, str(folder / f"{name}.arrow"), compression="uncompressed")
    return _counted(tables)


def _arrow(table: Table, origin: dict[str, str]) -> Any:
    """Text that repeats becomes a dictionary, what is unknown a null: a host's row and column, a NaN."""
    columns = {}
    for name, values in table.items():
        if values.dtype.kind == "U":
            columns[name] = pyarrow.array(values.tolist(), pyarrow.string()).dictionary_encode()
        elif name.endswith(("_row", "_column")):
            columns[name] = pyarrow.array(values, mask=values < 0)
        else:
            columns[name] = pyarrow.array(values, mask=np.isnan(values))
    return pyarrow.table(columns, metadata=origin)


def _counted(tables: dict[str, Any]) -> str:
    return ", ".join(f"{table.num_rows} {name}" for name, table in tables.items())
