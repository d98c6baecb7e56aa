"""Colours: the set of Okabe and Ito, which people with any kind of colour vision tell apart, and two page themes.

Source: M. Okabe, K. Ito, "Color Universal Design", 2008. Single hues run from light to dark, so that they survive a
printer without colour; the scale over amounts (marks coloured without a scale of their own) is cividis, made for the
same purpose.
"""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#f0e442",
)
GREY = "#8a949e"
SERIES = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY, YELLOW)
_AMOUNTS = {"scheme": "cividis"}
_AMOUNTS_IN_THE_DARK = ["#4a86d4", "#a0a0a0", "#fde737"]
"""The same hues, but none as dark as the page; over a plain grey, so that no third hue comes between."""
LOAD = (GREY, ORANGE, VERMILION)
"""Links from idle to busy; all three show on white and on black."""
FILLED = ("#eef4f9", "#7fb8dd")
"""Memory from empty to full; black text is legible on all of them."""
ON_FILLED = "#101418"

FONT = "Arial, Helvetica, Liberation Sans, DejaVu Sans, sans-serif"


def chart_config(*, dark: bool = False) -> dict[str, Any]:
    """What a theme says about all pictures; marks of style ``ink`` and ``faint`` take their colours from it."""
    ink, soft, grid, faint = (
        ("#e6edf3", "#b6c2cf", "#39424d", "#2b333d") if dark else ("#1f2328", "#4b5563", "#d9dee4", "#e9ecef")
    )
    words = {"labelColor": soft, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": "transparent" if dark else "white",
        "font": FONT,
        "axis": {**words, "gridColor": grid, "domainColor": soft, "tickColor": soft, "titleFontWeight": "normal"},
        "legend": {
            **words,
            "titleFontWeight": "normal",
            "titleLimit": 400,
            "labelLimit": 260,
            "symbolOpacity": 1,
            "layout": {"bottom": {"margin": 24}},
            "symbolStrokeWidth": 2,
        },
        "axisLeft": {"minExtent": 24},
        "header": {**words, "labelLimit": 420},
        "title": {"color": ink, "fontSize": 14},
        "view": {"stroke": grid},
        "style": {
            "ink": {"color": ink},
            "outline": {"color": ink},
            "faint": {"color": faint},
        },
        "range": {"category": list(SERIES), "heatmap": _AMOUNTS_IN_THE_DARK if dark else _AMOUNTS},
    }
