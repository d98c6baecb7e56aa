"""Reads a report's HTML back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class Read(HTMLParser):
    """What a page holds.

    Attributes
    ----------
    numbers
        Value and text of the numbers that a result file has too, by their place there.
    words
        All text outside scripts and styles.
    elements
        How often each element occurs.
    addresses
        Everything that an attribute points to.
    specs
        Data of the pictures by name.
    """

    numbers: dict[str, tuple[float, str]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    elements: dict[str, int] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)
    specs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._inside: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        named = dict(attrs)
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]
        if tag not in ("meta", "link", "img"):
            self._inside.append((tag, named))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        assert self._inside, tag
        assert self._inside.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        """Note text, data of pictures, numbers."""
        if not self._inside:
            return
        tag, attributes = self._inside[-1]
        if tag in ("script", "style"):
            if attributes.get("class") == "spec":
                self.specs[str(attributes["data-for"])] = json.loads(data)
            return
        self.words.append(data)
        key = attributes.get("data-key")
        if tag == "data" and key:
            self.numbers[key] = json.loads(str(attributes["value"])), data

    @property
    def text(self) -> str:
        """All words, with single spaces."""
        return re.sub(r"\s+", " ", " ".join(self.words))


def read_page(html: str) -> Read:
    """Parse a page."""
    found = Read()
    found.feed(html)
    found.close()
    return found
