"""Hugging Face config.json files as models."""

from instances.huggingface.reader import read_config

__all__ = ["read_config"]
