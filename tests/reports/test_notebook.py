"""Pictures of a report, one by one, as a notebook shows them."""

from __future__ import annotations

from reports import pictures
from tests.solver.export.results import small_result


def test_pictures_are_svg_and_those_of_the_report() -> None:
    found = pictures(small_result())
    assert {"mesh", "timeline", "memory"} <= set(found)
    svg = found["mesh"]._repr_svg_()
    assert svg.startswith("<svg")
    for stage in range(4):
        assert f">{stage}<" in svg
