"""What program documents say of dies, links and hosts: the same for every program of an instance."""

from __future__ import annotations

from typing import Any

from instances.instance import Instance
from solver.simulation.program_document import HOST


def machine_fields(instance: Instance) -> dict[str, Any]:
    """The keys of a program document that hold the mesh, its links, hosts and the options of rule ``link_fifo``.

    Links between wafers have no key of their own: a document has one speed of links.
    """
    hardware, pipeline = instance.hardware, instance.pipeline
    host = hardware.host
    return {
        HOST: None if host is None else {"host_bytes": host.host_bytes, "host_bytes_per_s": host.host_bytes_per_s},
        "link_bytes_per_s": hardware.link_bytes_per_s,
        "hop_latency_s": hardware.hop_latency_s,
        "topology": hardware.topology,
        "rows": hardware.total_rows,
        "columns": hardware.total_columns,
        "disabled_dies": [list(die) for die in hardware.disabled_dies],
        "disabled_links": [[list(a), list(b)] for a, b in hardware.disabled_links],
        "routing": pipeline.routing,
        "store_and_forward": pipeline.switching == "store_and_forward",
        "one_send_per_die": pipeline.one_send_per_die,
        "integer_ns": pipeline.integer_ns,
    }


def bytes_number(units: int, units_per_byte: int) -> int | float:
    """Units of a program as bytes in a document: a whole number where it is one."""
    return units // units_per_byte if units % units_per_byte == 0 else units / units_per_byte
