"""What instances, plans and results show in a notebook, read back from their HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from instances.display import mesh_html
from instances.hardware import Hardware
from instances.instance import Instance
from tests.builders import small_document, small_instance, small_plan
from tests.solver.export.results import result_of, small_result, spilling_result


class Cells(HTMLParser):
    """Texts of all cells, tables apart, and the tags that were seen."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_data(self, data: str) -> None:
        if self.tables and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += data


def test_an_instance_shows_its_numbers_and_its_mesh() -> None:
    instance = small_instance(pipeline__stages=3, hardware__disabled_dies=[[0, 1]])
    facts, mesh = Cells(instance._repr_html_()).tables
    shown = dict(facts)
    assert shown["model"] == "four-layers, 4 layers"
    assert shown["dies"] == "2x2 mesh, 3 enabled"
    assert shown["links"] == "100 GB/s"
    assert shown["requests"] == "4 requests of 2048 tokens"
    assert mesh == [["", "×"], ["", ""]]


def test_a_plan_shows_stages_where_they_are() -> None:
    plan = spilling_result().plan
    assert plan is not None
    facts, mesh = Cells(plan._repr_html_()).tables
    assert mesh == [["0", "1"], ["3", "2"]]
    # 4 stages, 7 chunks, 256 tokens each, for two stages and the host.
    assert dict(facts)["spill"] == "7\u202f168 tokens over 12 creditor links"
    assert dict(facts)["chunks of 2\u202f048 tokens"] == "8: " + ", ".join(["256"] * 8)


def test_a_result_shows_value_methods_and_mesh() -> None:
    result = small_result()
    html = result._repr_html_()
    facts, decided, mesh = Cells(html).tables
    assert dict(facts)["gap"] == "–"
    assert dict(decided)["batch"] == "1"
    assert mesh == [["0", "1"], ["3", "2"]]


def test_a_result_without_a_plan_says_why() -> None:
    result = result_of(small_instance(), None, status="unknown", reason="deadlock: <stage 0> waits")
    (facts,) = Cells(result._repr_html_()).tables
    assert dict(facts)["value"] == "– deadlock: <stage 0> waits"


def test_names_are_text_and_nothing_else() -> None:
    document = small_document(name="<script>alert(1)</script>", model__name="<img src=x onerror=alert(1)>")
    html = Instance.read(document)._repr_html_()
    assert Cells(html).tags == {"p", "b", "table", "tbody", "tr", "td"}
    assert "<script>alert(1)</script>" in re.sub("&lt;", "<", re.sub("&gt;", ">", html))


def test_seams_are_thick_and_large_meshes_left_out() -> None:
    die = {"peak_flops": 1e12, "hbm_bytes": 1e9, "hbm_bytes_per_s": 1e12}
    two = Hardware.parse({"rows": 1, "columns": 1, "wafers": [1, 2], "link_bytes_per_s": 1e9, "die": die})
    assert mesh_html(two, {}).count("border-left: 3px") == 1
    large = Hardware.parse({"rows": 33, "columns": 32, "link_bytes_per_s": 1e9, "die": die})
    assert mesh_html(large, {}) == ""


@pytest.mark.parametrize("plans", [0, 1])
def test_a_v_has_two_stages_on_a_die(plans: int) -> None:
    instance = small_instance(model__layers=[{"pattern": ["layer"], "repeat": 8}])
    ring = [[0, 0], [0, 1], [1, 1], [1, 0]]
    plan = small_plan(instance, layers=[1] * 8, placement=[*ring, *ring[::-1]], schedule="vpp")
    html = plan._repr_html_() if plans else result_of(instance, plan)._repr_html_()
    assert Cells(html).tables[-1] == [["0, 7", "1, 6"], ["3, 4", "2, 5"]]


def test_what_somebody_edited_is_shown_as_far_as_it_goes() -> None:
    plan = small_plan(small_instance())
    assert Cells(plan.model_copy(update={"placement": ()})._repr_html_()).tables
    torn = result_of(small_instance(), plan).model_copy(update={"instance": {}})
    assert Cells(torn._repr_html_()).tables[-1] == [["0", "1"], ["3", "2"]]


def test_a_program_shows_what_its_method_says() -> None:
    result = result_of(small_instance(), None, program={}, details={"heads": 5, "layers": [1, 1], "more": {}})
    assert Cells(result._repr_html_()).tables[-1] == [["heads", "5"], ["layers", "[1, 1]"]]
