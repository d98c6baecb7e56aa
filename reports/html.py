"""A page as one HTML file that needs nothing else: libraries, data, styles and still pictures are inside."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.content import Page
from reports.drawing import script_bundle, still_url
from reports.palette import chart_config

_MANY = 12
"""Pictures from which on their stills are less sharp, so that the page stays below 8 MB."""


def page_html(page: Page, drawings: Mapping[str, str]) -> str:
    """The whole file.

    Parameters
    ----------
    drawings
        SVG of every figure, by its name: what printers and readers without scripts see.
    """
    environment = Environment(
        loader=PackageLoader("reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["number"] = json.dumps
    template = environment.get_template("report.html.j2")
    themes = {"light": {**chart_config(), "background": "transparent"}, "dark": chart_config(dark=True)}
    return template.render(
        page=page,
        style=_asset("report.css"),
        script=_asset("report.js"),
        libraries=Markup(script_bundle().replace("</script", "<\\/script").replace("<!--", "<\\!--")),
        themes=script_json(themes),
        specs={figure.name: script_json(figure.spec()) for figure in page.figures},
        stills={name: still_url(svg, 1.5 if len(drawings) < _MANY else 1.0) for name, svg in drawings.items()},
    )


def script_json(data: Any) -> Markup:
    """JSON that no content can lead out of a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _asset(name: str) -> Markup:
    return Markup(importlib.resources.files("reports").joinpath("templates", name).read_text(encoding="utf-8"))
