"""Messages of a child process: length-prefixed pickles of (kind, content)."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, Literal

LENGTH_BYTES = 8
Kind = Literal["started", "progress", "result", "exception", "failure"]


@dataclass(frozen=True)
class Message:
    """One message: "started" once imports are done, "progress" any number of times, then one of the others."""

    kind: Kind
    content: Any


def packed(kind: Kind, content: Any) -> bytes:
    """Bytes of one message."""
    body = pickle.dumps((kind, content))
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class FrameReader:
    """Cuts a byte stream back into messages."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Add what was read; returns the messages that are complete now."""
        self._pending += data
        complete = []
        while len(self._pending) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._pending[:LENGTH_BYTES], "big")
            if len(self._pending) < end:
                break
            kind, content = pickle.loads(bytes(self._pending[LENGTH_BYTES:end]))
            complete.append(Message(kind, content))
            del self._pending[:end]
        return complete
