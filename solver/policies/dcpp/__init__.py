"""DCPP: chunk sizes predicted so that every chunk takes as long as the first, as SGLang and vLLM-Ascend do."""
