"""How the mesh is drawn: one layer for each kind of thing."""

from __future__ import annotations

from reports.figure import Spec, bottom, quantity, tips
from reports.palette import FILLED, LOAD, ON_FILLED, PURPLE

_HOT = 0.2
"""Share of the time in use from which on a link may be as red as links get."""


def mesh_layers(rows: int, columns: int, *, hottest: float, arcs: int, kept: str) -> list[Spec]:
    """Layers from the lowest to the highest; each names its data.

    Parameters
    ----------
    hottest
        Largest share of the time that a link is in use.
    arcs
        Number of spill links: the more, the fainter.
    kept
        What their amounts are.
    """
    x = {"scale": {"domain": [-0.5, columns - 0.5], "nice": False, "zero": False}}
    y = {"scale": {"domain": [-0.5, rows - 0.5], "nice": False, "zero": False, "reverse": True}}
    step = max(1, -(-max(rows, columns) // 20))
    axis = {"grid": False, "values": list(range(0, max(rows, columns), step)), "format": "d", "domain": False}
    at_x, at_y = quantity("column", "column", axis=axis, **x), quantity("row", "row", axis=axis, **y)
    line = {
        "x": quantity("x1", "column", axis=axis, **x),
        "y": quantity("y1", "row", axis=axis, **y),
        "x2": {"field": "x2"},
        "y2": {"field": "y2"},
    }

    def size(factor: float) -> Spec:
        return {"expr": f"{factor} * max(5, min(26, 0.28 * width / {columns}))"}

    widest = max(2.5, min(9.0, 40 / max(rows, columns)))
    return [
        {
            "data": {"name": "seams"},
            "mark": {"type": "rule", "strokeDash": [2, 4], "strokeWidth": 2.5, "style": "outline"},
            "encoding": line,
        },
        {
            "data": {"name": "links"},
            "mark": {"type": "rule", "strokeCap": "butt"},
            "encoding": {
                **line,
                "color": quantity(
                    "busy",
                    "link in use, share of the time",
                    scale={"range": list(LOAD), "domain": [0, max(hottest, _HOT)], "interpolate": "rgb"},
                    legend=bottom(format=".0%", gradientLength=150),
                ),
                "strokeWidth": quantity("bytes", None, scale={"range": [0.6, widest], "domainMin": 0}, legend=None),
                "tooltip": tips(name="link", carried="carried", held="in use", speed="bandwidth"),
            },
        },
        {
            "data": {"name": "dies"},
            "params": [
                {
                    "name": "pointed",
                    "select": {"type": "point", "on": "pointerover", "fields": ["stage"], "clear": "pointerout"},
                }
            ],
            "mark": {"type": "rect", "cornerRadius": 4, "stroke": "#5b6773", "strokeWidth": 1},
            "encoding": {
                "x": quantity("x1", "column", axis=axis, **x),
                "x2": {"field": "x2"},
                "y": quantity("y1", "row", axis=axis, **y),
                "y2": {"field": "y2"},
                "color": quantity(
                    "share",
                    "memory at its peak, share of the die",
                    scale={"range": list(FILLED), "domain": [0, 1]},
                    legend=bottom(format=".0%", gradientLength=150),
                ),
                "tooltip": tips(
                    stage="stage",
                    die="die (row,column)",
                    layers="layers",
                    peak="peak memory",
                    of="of its capacity",
                    idle="idle (no compute)",
                ),
            },
        },
        {
            "data": {"name": "arcs"},
            "mark": {"type": "line", "interpolate": "basis", "strokeDash": [5, 3], "color": PURPLE},
            "encoding": {
                "x": at_x,
                "y": at_y,
                "detail": {"field": "link"},
                "order": {"field": "step"},
                "opacity": {
                    "condition": {"param": "pointed", "empty": False, "value": 1},
                    "value": round(max(0.45, min(0.85, 16 / max(1, arcs))), 2),
                },
                "strokeWidth": quantity("tokens", None, scale={"range": [0.8, 4], "domainMin": 0}, legend=None),
                "tooltip": tips(link="spill", kept=f"{kept} (all chunks)"),
            },
        },
        {
            "data": {"name": "dies"},
            "mark": {
                "type": "text",
                "fontSize": size(1),
                "fontWeight": "bold",
                "fill": ON_FILLED,
                "aria": False,
                "tooltip": False,
            },
            "encoding": {"x": at_x, "y": at_y, "text": {"field": "stage"}},
        },
        {
            "data": {"name": "hosts"},
            "mark": {"type": "text", "fontSize": size(0.6), "text": "H", "fill": ON_FILLED},
            "encoding": {"x": at_x, "y": at_y, "tooltip": tips(stage="stage", kept=f"{kept}, at the host")},
        },
        {
            "data": {"name": "dead"},
            "mark": {"type": "text", "text": "✕", "fontSize": size(1.3), "style": "ink"},
            "encoding": {"x": at_x, "y": at_y},
        },
        {
            "data": {"name": "dead_links"},
            "mark": {"type": "text", "text": "✕", "fontSize": size(0.6), "style": "ink"},
            "encoding": {"x": at_x, "y": at_y},
        },
    ]
