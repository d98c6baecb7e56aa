"""Bytes per element of a config: its dtype, and its quantisation group by group (spec section 2, "Widths")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from instances.base import read_json
from instances.errors import InputError
from instances.huggingface.schemes import quantised_width
from instances.huggingface.view import ConfigView
from instances.layers import DenseFeedForward, ExpertFeedForward, LatentAttention, LayerKind, LinearAttention
from instances.model import Widths

_DTYPES = {"bfloat16": 2.0, "float16": 2.0, "half": 2.0, "float32": 4.0, "float": 4.0, "float8_e4m3fn": 1.0}
_GROUPS = ("experts", "attention", "dense")
_EXCEPTIONS = ("modules_to_not_convert", "ignore", "exclude_modules", "llm_int8_skip_modules")


def element_bytes(outer: ConfigView, view: ConfigView) -> float:
    """Bytes of the config's dtype; 2 (bfloat16) where it names none, as the interface page sets it."""
    for where in (view, outer):
        for key in ("dtype", "torch_dtype"):
            value = where.get(key)
            if value is not None:
                name = str(value).removeprefix("torch.")
                if name not in _DTYPES:
                    raise where.error(key, f"one of {', '.join(_DTYPES)}")
                return _DTYPES[name]
    return 2.0


def weight_widths(
    outer: ConfigView, view: ConfigView, dtype: float, kinds: dict[str, LayerKind], names: list[str]
) -> float | Widths:
    """One width, or a width per group where the config is quantised.

    Embedding, head, router and norms keep the dtype, and so does each group whose modules are all excepted.

    Raises
    ------
    InputError
        For a method without a known width, or exceptions that split a group.
    """
    inner = _settings(outer, view)
    if inner is None:
        return dtype
    narrow = quantised_width(inner)
    exceptions = _exceptions(inner)
    widths = dict.fromkeys(Widths.model_fields, dtype)
    for group in _GROUPS:
        modules = list(_modules(group, kinds, names))
        kept = [module for module in modules if any(entry.search(module) for entry in exceptions)]
        if kept and len(kept) < len(modules):
            raise inner.error(
                next(key for key in _EXCEPTIONS if inner.get(key)),
                f"all modules of a group or none; it excepts {kept[0]} and not all {group} weights: give weight_bytes",
            )
        if not kept:
            widths[group] = narrow
    return Widths.parse(widths)


def _settings(outer: ConfigView, view: ConfigView) -> ConfigView | None:
    """The quantisation of the config, or of the hf_quant_config.json that ModelOpt writes beside a config.json."""
    for where in (view, outer):
        settings = where.get("quantization_config")
        if settings is not None:
            if not isinstance(settings, dict):
                raise where.error("quantization_config", "an object, or null")
            return ConfigView(settings, where.file, f"{where.prefix}quantization_config.")
    beside = Path(outer.file).parent / "hf_quant_config.json"
    if Path(outer.file).name != "config.json" or not beside.exists():
        return None
    data = read_json(beside)
    settings = data.get("quantization") if isinstance(data, dict) else None
    if not isinstance(settings, dict):
        raise InputError("quantization", settings, "an object", file=str(beside))
    return ConfigView({"quant_method": "modelopt", **settings}, str(beside), "quantization.")


def _exceptions(inner: ConfigView) -> list[re.Pattern[str]]:
    found: list[re.Pattern[str]] = []
    for key in _EXCEPTIONS:
        value: Any = inner.get(key)
        if value is None:
            continue
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise inner.error(key, "a list of module names")
        for item in value:
            try:
                found.append(_pattern(item))
            except re.error:
                raise inner.error(key, f"regular expressions after re:, not {item!r}") from None
    return found


def _modules(group: str, kinds: dict[str, LayerKind], names: list[str]) -> Iterator[str]:
    """Full names of the modules of a group, one expert standing for all."""
    for layer, name in enumerate(names):
        for part in _parts(group, kinds[name]):
            yield f"model.layers.{layer}.{part}"


def _parts(group: str, kind: LayerKind) -> list[str]:
    network = kind.feed_forward
    matrices = ["gate_proj", "up_proj", "down_proj"] if getattr(network, "gated", True) else ["up_proj", "down_proj"]
    if group == "attention":
        match kind.attention:
            case LatentAttention():
                return [f"self_attn.{name}" for name in ("q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")]
            case LinearAttention():
                return ["linear_attn.in_proj", "linear_attn.out_proj"]
            case _ if kind.attention.kind != "none":
                return [f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj")]
        return []
    match network:
        case DenseFeedForward() if group == "dense":
            return [f"mlp.{name}" for name in matrices]
        case ExpertFeedForward(shared_width=shared) if group == "dense" and shared:
            return [f"mlp.shared_experts.{name}" for name in matrices]
        case ExpertFeedForward() if group == "experts":
            return [f"mlp.experts.0.{name}" for name in matrices]
        case _:
            return []


def _pattern(entry: str) -> re.Pattern[str]:
    """What finds the modules an entry names: a regular expression after ``re:``, else a run of parts of the path."""
    if entry.startswith("re:"):
        return re.compile(rf"\A(?:{entry.removeprefix('re:')})")
    if entry == "*":
        return re.compile("")
    parts = re.escape(entry.strip("*.").replace("language_model.", "")).replace(r"\*", "[^.]*")
    return re.compile(rf"(?:^|\.){parts}(?:\.|$)")
