"""Pictures of a report one by one, to show in a notebook."""

from __future__ import annotations

from dataclasses import dataclass

from reports.api import Sources, page_of
from reports.drawing import svg_text
from reports.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A picture that a notebook shows as SVG."""

    figure: Figure

    def _repr_svg_(self) -> str:
        return svg_text(self.figure)


def pictures(sources: Sources) -> dict[str, Picture]:
    """The pictures that a report of these results would have, by name; drawn when they are shown.

    Arguments and errors as for ``reports.report``.
    """
    return {figure.name: Picture(figure) for figure in page_of(sources).figures}
