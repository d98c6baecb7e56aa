"""Extra layers for multi-token prediction, as in DeepSeek-V3: one more of the last kind that first joins two inputs."""

from __future__ import annotations

from instances.huggingface.view import ConfigView
from instances.layers import LatentAttention, LayerKind

_OWN_NORMS = 3  # of the embedding, of the hidden state, and before the shared head


def prediction_layers(view: ConfigView, kinds: list[LayerKind], wanted: int) -> list[LayerKind]:
    """The extra layers to put behind the others; embedding and head are those of the model.

    Raises
    ------
    InputError
        If the config has fewer of them, or more are wanted than num_nextn_predict_layers says.
    """
    if not wanted:
        return []
    present = view.whole("num_nextn_predict_layers", default=0, least=0)
    if not 0 < wanted <= present:
        raise view.error("num_nextn_predict_layers", f"at least the {wanted} prediction layers that are asked for")
    last = kinds[-1]
    attention = last.attention
    if isinstance(attention, LatentAttention) and attention.sparse is not None:
        # A prediction layer picks its own tokens.
        attention = attention.model_copy(update={"sparse": attention.sparse.model_copy(update={"shared": False})})
    update = {"attention": attention, "norms": last.norms + _OWN_NORMS, "joins_embedding": True}
    return [last.model_copy(update=update)] * wanted
