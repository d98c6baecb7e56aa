"""One definition of a picture: a Vega-Lite specification with its data, for the page and for files alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""Names the version of the specification; nothing is fetched from there."""

Spec = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A picture.

    Parameters
    ----------
    name
        Name of its files, without an ending.
    title, caption
        Shown above and below it; the caption says what is left out, if anything.
    layout
        Specification without data, size and theme.
    data
        Rows by data set name.
    height
        Pixels at the full width; ``None``: as high as it becomes.
    most_width
        Pixels beyond which it does not grow.
    square
        Height shrinks with the width: ``height`` is that of the largest width.
    heavy
        Many marks: drawn on a canvas rather than as elements of the page.
    panels
        For small multiples, how many stand side by side at the full width; they take the place of ``height``.
    least_panel
        Pixels that a panel with its share of the margins needs at least.
    margin
        Pixels beside the panels, for their axes.
    """

    name: str
    title: str
    caption: str
    layout: Spec
    data: Mapping[str, Sequence[Row]]
    height: int = 320
    most_width: int | None = None
    square: bool = False
    heavy: bool = False
    panels: int | None = None
    least_panel: int = 260
    margin: int = 110

    def spec(self, width: int | None = None) -> Spec:
        """The whole specification for so many pixels; with None the page sets the size."""
        whole = {"$schema": SCHEMA, **self.layout, "datasets": dict(self.data)}
        whole["usermeta"] = {
            "height": self.height,
            "square": self.square,
            "panels": self.panels,
            "least_panel": self.least_panel,
            "margin": self.margin,
            "most_width": self.most_width or FULL_WIDTH,
        }
        if width is None:
            return whole
        return _sized(whole, width, self)


FULL_WIDTH = 1100
"""Pixels at which the heights of figures are meant."""


def _sized(spec: Spec, width: int, figure: Figure) -> Spec:
    """The same as the page's script does, for files."""
    if figure.panels is not None:
        columns = max(1, min(figure.panels, width // figure.least_panel))
        inner = {**spec["spec"], "width": (width - figure.margin) // columns - 20, "height": 110}
        return {**spec, "columns": columns, "spec": inner}
    most = figure.most_width or FULL_WIDTH
    width = min(width, most)
    height = round(figure.height * width / most) if figure.square else figure.height
    return {**spec, "width": width, "height": height, "autosize": {"type": "fit", "contains": "padding"}}


def rows_of(columns: Mapping[str, Iterable[Any]]) -> list[Row]:
    """Rows from columns; numbers keep eight digits, unknown ones become None."""
    return [
        dict(zip(columns, (plain(cell) for cell in row), strict=True)) for row in zip(*columns.values(), strict=True)
    ]


def plain(value: Any) -> Any:
    """A cell as JSON has it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = float(f"{value:.8g}")
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return value


def quantity(field: str, title: str | None = None, **more: Any) -> Spec:
    """An encoding by a number."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def category(field: str, title: str | None = None, **more: Any) -> Spec:
    """An encoding by a name."""
    return {"field": field, "type": "nominal", "title": title, **more}


def tips(**titles: str) -> list[Spec]:
    """What hovering shows: fields with their words."""
    return [{"field": field, "title": title} for field, title in titles.items()]


def numbers(form: str, **titles: str) -> list[Spec]:
    """The same for numbers, written in a form of d3."""
    return [{"field": field, "type": "quantitative", "title": title, "format": form} for field, title in titles.items()]


DASHES = ([1, 0], [8, 3], [3, 3], [8, 3, 2, 3], [2, 2])


def lines(
    field: str, names: Sequence[str], colours: Sequence[str], patterns: Sequence[Sequence[int]] | None = None
) -> Spec:
    """Encodings that tell lines apart by colour and by dash, with one legend for both."""
    chosen = [list(DASHES[place % len(DASHES)]) for place in range(len(names))] if patterns is None else list(patterns)
    legend = {"orient": "top", "columns": 4, "symbolType": "stroke", "symbolSize": 500}
    return {
        "color": category(field, None, scale={"domain": list(names), "range": list(colours)}, legend=legend),
        "strokeDash": category(field, None, scale={"domain": list(names), "range": chosen}, legend=legend),
    }


def bottom(**more: Any) -> Spec:
    """A legend below the picture, which leaves narrow pages their width."""
    return {"orient": "bottom", **more}


SHORT_COUNTS = "format(datum.value, '.3~s')"
"""Labels of an axis or legend over many tokens: 500k, 1M, and a plain 0."""
