"""A Model from a Hugging Face config.json; what the file does not decide is refused, never guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from instances.base import first_problem, read_json
from instances.errors import InputError
from instances.huggingface.attention import grouped_attention, read_attention
from instances.huggingface.families import FAMILIES, OUTER_NAMES, Family
from instances.huggingface.feed_forward import dense_feed_forward, expert_feed_forward, read_feed_forward
from instances.huggingface.linear import mamba2
from instances.huggingface.prediction import prediction_layers
from instances.huggingface.runs import layer_runs
from instances.huggingface.view import ConfigView
from instances.huggingface.widths import element_bytes, weight_widths
from instances.layers import LayerKind, NoAttention, NoFeedForward, SlidingAttention
from instances.model import MAX_LAYERS, Model


def read_config(
    path: str | Path,
    *,
    weight_bytes: Any = None,
    kv_bytes: float | None = None,
    activation_bytes: float | None = None,
    prediction_layers: int = 0,
) -> Model:
    """Read the text model of a config.json.

    ``prediction_layers`` of its extra layers for multi-token prediction are put behind the others; none by default.

    Widths that are given replace those of the config, and its quantisation is then not looked at; a map for
    ``weight_bytes`` may name some groups only and the others keep the config's dtype.

    Raises
    ------
    InputError
        With file and key: for an unknown model_type, a missing key, an architecture without a formula, or a key that
        may change shapes and whose effect is not known.
    """
    file = str(path)
    data = read_json(path)
    if not isinstance(data, dict):
        raise InputError("", data, "a JSON object", file=file)
    try:
        model = _read(data, Path(path), prediction_layers, quantised=weight_bytes is None)
    except ValidationError as error:
        raise first_problem(Model, error, file) from error
    return model.with_bytes(weight_bytes, kv_bytes, activation_bytes)


def _read(data: dict[str, Any], path: Path, predictions: int, *, quantised: bool) -> Model:
    outer = ConfigView(data, str(path))
    view = outer
    if isinstance(data.get("text_config"), dict):
        view = ConfigView(data["text_config"], str(path), "text_config.")
    family, model_type = _family(outer, view)
    view.refuse_where_set("is_encoder_decoder", "only decoders are planned")
    for keys in family.stated:
        view.require(keys)
    dtype = element_bytes(outer, view)
    layers, hidden = view.whole("num_hidden_layers"), view.whole("hidden_size")
    if layers > MAX_LAYERS:
        raise view.error("num_hidden_layers", f"at most {MAX_LAYERS} layers")
    kinds = _layers(view, family, layers, hidden, dtype)
    kinds += prediction_layers(view, kinds, predictions)
    tied = _tied(outer, view, family)
    view.ignore("quantization_config")
    view.refuse_unread()
    names, distinct = _named(kinds)
    return Model(
        name=_name(path),
        hidden=hidden,
        vocab=view.whole("vocab_size"),
        tied_embeddings=tied,
        kinds=distinct,
        layers=layer_runs(names),
        weight_bytes=weight_widths(outer, view, dtype, distinct, names) if quantised else dtype,
        kv_bytes=dtype,
        activation_bytes=dtype,
        source=f"Hugging Face config.json of {_name(path)} (model_type {model_type})",
    )


def _family(outer: ConfigView, view: ConfigView) -> tuple[Family, str]:
    stated = view.get("model_type") or outer.get("model_type")
    known = OUTER_NAMES.get(stated, stated) if isinstance(stated, str) else None
    if known not in FAMILIES:
        where = view if view.get("model_type") else outer
        raise where.error("model_type", f"one of {', '.join(FAMILIES)}; describe other models in place")
    return FAMILIES[known], known


def _tied(outer: ConfigView, view: ConfigView, family: Family) -> bool:
    for where in (view, outer):
        if where.get("tie_word_embeddings") is not None:
            return where.flag("tie_word_embeddings")
    return family.tied


def _name(path: Path) -> str:
    """The file's own name, or its folder's where it is called config.json."""
    return path.resolve().parent.name if path.stem == "config" else path.stem


def _layers(view: ConfigView, family: Family, layers: int, hidden: int, dtype: float) -> list[LayerKind]:
    for key, reason in (
        ("hidden_size_per_layer_input", "embeddings per layer have no formula here"),
        ("num_kv_shared_layers", "layers that share the KV of others have no formula here"),
        ("add_cross_attention", "cross attention has no formula here"),
    ):
        view.refuse_where_set(key, reason)
    if family.hybrid == "pattern":
        return _alternating_blocks(view, family, layers, hidden, dtype)
    attention = read_attention(view, family, layers, hidden, dtype)
    feed_forward = read_feed_forward(view, family, layers)
    # The extra norms of Gemma 4 surround its experts; without them it has the four of Gemma 3.
    norms = 4 if family.dense_beside_experts and not view.flag("enable_moe_block") else family.norms
    return [
        LayerKind(attention=mixer, feed_forward=network, norms=norms)
        for mixer, network in zip(attention, feed_forward, strict=True)
    ]


def _alternating_blocks(view: ConfigView, family: Family, layers: int, hidden: int, dtype: float) -> list[LayerKind]:
    """Nemotron-H: every layer is one block, Mamba (M), attention (*), feed-forward (-) or experts (E)."""
    pattern = view.get("hybrid_override_pattern")
    if not isinstance(pattern, str) or len(pattern) != layers or set(pattern) - set("M*-E"):
        raise view.error("hybrid_override_pattern", f"{layers} letters out of M, *, - and E, one a layer")
    view.ignore("sliding_window", "expand", "chunk_size", "intermediate_size", "mlp_hidden_act")
    view.ignore("moe_intermediate_size", "moe_shared_expert_intermediate_size")
    blocks: dict[str, LayerKind] = {}
    for letter in set(pattern):
        match letter:
            case "M":
                block = LayerKind(
                    attention=mamba2(view, hidden, dtype), feed_forward=NoFeedForward(), norms=family.norms
                )
            case "*":
                mixer = grouped_attention(view, family, hidden)
                block = LayerKind(attention=mixer, feed_forward=NoFeedForward(), norms=family.norms)
            case "E":
                experts = expert_feed_forward(view, family)
                block = LayerKind(attention=NoAttention(), feed_forward=experts, norms=family.norms)
            case _:
                plain = dense_feed_forward(view, family)
                block = LayerKind(attention=NoAttention(), feed_forward=plain, norms=family.norms)
        blocks[letter] = block
    return [blocks[letter] for letter in pattern]


def _named(kinds: list[LayerKind]) -> tuple[list[str], dict[str, LayerKind]]:
    """A telling name for each kind: its attention and its feed-forward; numbered where two would share a name."""
    distinct: dict[str, LayerKind] = {}
    names = []
    for kind in kinds:
        base = _base_name(kind)
        name, number = base, 2
        while distinct.get(name, kind) != kind:
            name, number = f"{base}-{number}", number + 1
        distinct[name] = kind
        names.append(name)
    return names, distinct


def _base_name(kind: LayerKind) -> str:
    attention = kind.attention.name if kind.attention.kind == "linear" else kind.attention.kind
    if kind.attention.kind == "mla" and kind.attention.sparse is not None:
        attention = "mla-shared-index" if kind.attention.sparse.shared else "mla-index"
    if isinstance(kind.attention, SlidingAttention) and kind.attention.chunked:
        attention = "chunked"
    parts = [part for part in (attention, kind.feed_forward.kind) if part != "none"]
    return "-".join([*parts, "prediction"] if kind.joins_embedding else parts)
