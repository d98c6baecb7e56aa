"""Plans as settings of engines that people run: SGLang, vLLM, vLLM-Ascend, TensorRT-LLM."""
