"""Hands a plan over to other tools: Perfetto, data frames, ASTRA-sim."""

from solver.export.formats import FORMATS, export_result

__all__ = ["FORMATS", "export_result"]
