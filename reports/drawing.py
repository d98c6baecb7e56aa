"""Figures as files, and the script that draws them in a page: Vega-Lite by way of vl-convert, without a browser."""

from __future__ import annotations

import base64
import functools

import vl_convert

from reports.figure import FULL_WIDTH, Figure
from reports.palette import chart_config

VEGA_LITE = "6.4"
"""Version of the language; the same for files and for the page."""
_LARGEST_STILL = 200_000
"""Bytes; what printers see need not be as sharp as the files."""


def svg_text(figure: Figure, width: int = FULL_WIDTH) -> str:
    """The figure as SVG, on white."""
    return vl_convert.vegalite_to_svg(figure.spec(width), vl_version=VEGA_LITE, config=chart_config())


def png_bytes(svg: str, scale: float = 2.0) -> bytes:
    """An SVG as PNG, ``scale`` pixels for each of its own."""
    return vl_convert.svg_to_png(svg, scale=scale)


def still_url(svg: str, scale: float = 1.5) -> str:
    """A drawing as an address that holds all of it: as SVG where that is small, else in pixels.

    Parameters
    ----------
    scale
        Of drawings with very many marks: pixels for each of its own.
    """
    kind, content = "svg+xml", svg.encode()
    if len(content) > _LARGEST_STILL:
        kind, content = "png", png_bytes(svg, 1.0)
    if len(content) > 2 * _LARGEST_STILL:
        kind, content = "jpeg", vl_convert.svg_to_jpeg(svg, scale=scale, quality=85)
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


@functools.cache
def script_bundle() -> str:
    """The drawing libraries as one script that needs no network: Vega, Vega-Lite and Vega-Embed."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
