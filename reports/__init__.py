"""Reports: what was recorded, drawn and put into words."""

from reports.api import ReportFiles, make_folder, report

__all__ = ["ReportFiles", "make_folder", "report"]
