"""Reading the keys of one config.json: typed, with errors that name file and key, and a record of what was asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from instances.errors import InputError
from instances.huggingface.neutral_keys import NEUTRAL_KEYS

# A key with such a word in its name may change shapes; one that nothing asked for is refused, not ignored.
_SHAPES = re.compile(
    r"layer|head|attn|attention|expert|moe|window|rank|_dim|hidden|intermediate|mlp|linear|ssm|mamba|conv|sparse"
    r"|index|kv|state|block|pattern|interval|shared|ffn|router|mixer|recurrent|lru|cross|compress|indexer"
)

_MOST = 2**31


class ConfigView:
    """The keys of a config, or of the text model inside it."""

    def __init__(self, data: dict[str, Any], file: str, prefix: str = "") -> None:
        self.data = data
        self.file = file
        self.prefix = prefix
        self._asked: set[str] = set()

    def error(self, key: str, allowed: str) -> InputError:
        """What to raise about a key."""
        return InputError(self.prefix + key, self.data.get(key), allowed, file=self.file)

    def get(self, key: str) -> Any:
        """The value of a key, None where it is absent or null."""
        self._asked.add(key)
        return self.data.get(key)

    def ignore(self, *keys: str) -> None:
        """Mark keys as understood and without effect here."""
        self._asked.update(keys)

    def whole(self, *keys: str, default: int | None = None, least: int = 1) -> int:
        """A whole number under the first of several names; two names must not disagree.

        Raises
        ------
        InputError
            Where it is missing without a default, no whole number, or below ``least``.
        """
        found = {key: self.get(key) for key in keys if self.get(key) is not None}
        if not found:
            if default is None:
                raise self.error(keys[0], f"a whole number{_or_names(keys)}: this model cannot be sized without it")
            return default
        for key, value in found.items():
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
                raise self.error(key, f"a whole number from {least} to {_MOST}")
        if len(set(found.values())) > 1:
            raise self.error(list(found)[1], f"the same value as {next(iter(found))}")
        return int(next(iter(found.values())))

    def optional(self, *keys: str) -> int | None:
        """As `whole`, None where absent or null."""
        return self.whole(*keys) if any(self.get(key) is not None for key in keys) else None

    def flag(self, key: str, default: bool = False) -> bool:
        """A Boolean."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def names(self, key: str, length: int, allowed: Sequence[str]) -> list[str] | None:
        """A list with one of the ``allowed`` names for each layer; None where absent."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length:
            raise self.error(key, f"a list with one name for each of the {length} layers")
        for item in value:
            if item not in allowed:
                raise InputError(
                    self.prefix + key, item, f"{' or '.join(allowed)}: other layers have no formula", file=self.file
                )
        return [str(item) for item in value]

    def refuse_where_set(self, key: str, reason: str) -> None:
        """Raise if a key is there with a value that is not empty, false or zero."""
        if self.get(key):
            raise self.error(key, f"null, false or 0: {reason}")

    def require(self, keys: Sequence[str]) -> None:
        """Raise if a key is there under none of its names, not even with null."""
        if not any(key in self.data for key in keys):
            allowed = f"stated{_or_names(keys)}: left out it would be a default, that of another model"
            raise self.error(keys[0], allowed)

    def refuse_unread(self) -> None:
        """Raise for a key that may change shapes and that nothing asked for."""
        for key, value in self.data.items():
            if value and key not in self._asked and key not in NEUTRAL_KEYS and _SHAPES.search(key):
                raise self.error(
                    key, "a key whose effect on the shapes of this model_type is known; describe the model in place"
                )


def _or_names(keys: Sequence[str]) -> str:
    return f" (or under {', '.join(keys[1:])})" if len(keys) > 1 else ""
