"""The model document: layers, widths, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from instances.errors import InputError
from instances.model import Model, WidthChanges, Widths
from tests.instances.model_builders import DENSE, GQA, MLA, MOE, mixed, one_kind


def test_layers_expand_in_order() -> None:
    model = mixed()
    # 2 * (local, global), then latent once.
    assert model.layer_kinds == ("local", "global", "local", "global", "latent")
    assert model.layer_count == 5
    assert model.kind_counts(1, 4) == {"global": 2, "local": 1}


def test_copies_do_not_keep_old_layers() -> None:
    model = mixed()
    assert model.layer_count == 5
    shorter = model.model_copy(update={"layers": model.layers[1:]})
    assert shorter.layer_kinds == ("latent",)


def test_reading_back_gives_an_equal_model() -> None:
    model = mixed()
    assert Model.parse(model.model_dump(mode="json")) == model


def test_widths_can_be_changed_apart() -> None:
    model = mixed()
    assert model.with_bytes() == model
    changed = model.with_bytes(weight_bytes=1, kv_bytes=0.5)
    assert changed.widths == Widths.uniform(1)
    assert (changed.kv_bytes, changed.activation_bytes) == (0.5, 2)
    assert model.with_bytes(activation_bytes=4).activation_bytes == 4


@pytest.mark.parametrize("change", [{"experts": 17 / 32}, WidthChanges(experts=17 / 32)])
def test_a_map_changes_the_groups_it_names(change: Any) -> None:
    widths = mixed().with_bytes(weight_bytes=change).widths
    assert widths.experts == 0.53125
    assert {widths.attention, widths.dense, widths.router, widths.embedding, widths.head, widths.norms} == {2.0}


@pytest.mark.parametrize("width", [0, -1, 17, float("nan"), "two", {"experts": 0}, {"expert": 1}])
def test_impossible_widths_are_refused(width: Any) -> None:
    with pytest.raises(InputError, match="weight_bytes"):
        mixed().with_bytes(weight_bytes=width)


def test_a_map_in_a_document_names_every_group() -> None:
    with pytest.raises(InputError, match="weight_bytes"):
        mixed(weight_bytes={"experts": 1})


@pytest.mark.parametrize(
    ("attention", "feed_forward", "message"),
    [
        ({**GQA, "kv_heads": 3}, DENSE, "kv_heads that divide heads"),
        ({**GQA, "heads": 0}, DENSE, "heads"),
        ({**GQA, "window": 5}, DENSE, "window"),
        ({**GQA, "kind": "sliding"}, DENSE, "window"),
        ({**GQA, "kind": "mamba"}, DENSE, "mamba"),
        ({**MLA, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0}, DENSE, "greater than 0"),
        (GQA, {**MOE, "top_k": 9}, "top_k of at most 8"),
        (GQA, {**DENSE, "width": 2.5}, "width"),
    ],
)
def test_impossible_layers_are_refused(attention: dict[str, Any], feed_forward: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        one_kind(attention, feed_forward)


def test_unknown_kinds_and_no_layers_are_refused() -> None:
    with pytest.raises(InputError, match="not 'other'"):
        mixed(layers=[{"pattern": ["other"]}])
    with pytest.raises(InputError, match="layers"):
        mixed(layers=[])
    with pytest.raises(InputError, match="at most 100000 layers"):
        mixed(layers=[{"pattern": ["local", "global"], "repeat": 60_000}])


def test_linear_layers_need_a_name_and_parameters() -> None:
    with pytest.raises(InputError, match="parameters"):
        one_kind({"kind": "linear", "name": "mamba2"}, DENSE)
