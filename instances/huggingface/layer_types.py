"""Which layers of a config have full, sliding, chunked or linear attention."""

from __future__ import annotations

from instances.huggingface.families import Family
from instances.huggingface.view import ConfigView


def layer_types(view: ConfigView, family: Family, layers: int) -> list[str]:
    """One of full_attention, sliding_attention, chunked_attention, linear_attention for each layer, first layer first.

    Raises
    ------
    InputError
        Naming the key that would decide, where the config does not say which layers are which.
    """
    allowed = ["full_attention", "sliding_attention"]
    if family.hybrid == "layer_types":
        allowed.append("linear_attention")
    if family.sliding == "rope":
        allowed.append("chunked_attention")
    listed = view.names("layer_types", layers, allowed)
    codes = view.get("attn_type_list")
    if codes is not None and codes != [1] * layers:
        raise view.error("attn_type_list", "1 everywhere (full attention): the linear layers have no formula")
    if listed is not None:
        view.ignore(
            "sliding_window_pattern", "_sliding_window_pattern", "use_sliding_window", "full_attention_interval"
        )
        return listed
    if family.sliding == "rope":
        return _by_rope(view, layers)
    if family.hybrid == "layer_types":
        raise view.error("layer_types", "a list: it says which layers are linear")
    every = view.optional("sliding_window_pattern", "_sliding_window_pattern")
    window = view.get("sliding_window")
    # In the model classes whose upper layers may slide, they do so only where asked for.
    if window is None or not view.flag("use_sliding_window", default=family.sliding != "upper"):
        if every is not None or family.sliding == "pattern":
            raise view.error("sliding_window", "the window of the sliding layers, in tokens")
        return ["full_attention"] * layers
    match family.sliding:
        case "all":
            return ["sliding_attention"] * layers
        case "upper":
            first = view.whole("max_window_layers", least=0)
            return ["sliding_attention" if layer >= first else "full_attention" for layer in range(layers)]
        case "pattern":
            period = every or family.pattern or 1
            return ["full_attention" if (layer + 1) % period == 0 else "sliding_attention" for layer in range(layers)]
        case _:
            raise view.error("layer_types", "a list: sliding_window is set, and nothing else says which layers slide")


def _by_rope(view: ConfigView, layers: int) -> list[str]:
    """Llama 4: layers with rotary positions attend inside chunks, the others (each fourth by default) to everything."""
    marks = view.get("no_rope_layers") or None
    every = view.whole("no_rope_layer_interval", default=4)
    if marks is None:
        marks = [int((layer + 1) % every != 0) for layer in range(layers)]
    if not isinstance(marks, list) or len(marks) != layers or any(mark not in (0, 1) for mark in marks):
        raise view.error(
            "no_rope_layers", f"a list of {layers} marks, 1 for a layer with rotary positions, 0 for others"
        )
    return ["chunked_attention" if mark else "full_attention" for mark in marks]
