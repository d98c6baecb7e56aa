"""Reports: what was recorded, drawn and put into words."""

from reports.api import ReportFiles, make_folder, report
from reports.notebook import pictures

__all__ = ["ReportFiles", "make_folder", "pictures", "report"]
