"""Bytes of one quantised weight, its scales and zero points included, from the settings of a quantisation method.

Each scheme stores whole numbers or small floats beside one scale, and for some one zero point, for a group of weights:
bits / 8 + (scale bytes + zero bits / 8) / group. Layouts as the libraries write them: AutoAWQ, GPTQModel, bitsandbytes,
compressed-tensors, NVIDIA ModelOpt, the fp8 blocks of DeepSeek-V3.
"""

from __future__ import annotations

from typing import Any

from instances.huggingface.view import ConfigView

MXFP4 = 17 / 32  # 4 bits, and one 8-bit scale for 32 weights
NVFP4 = 9 / 16  # 4 bits, and one 8-bit scale for 16 weights
_BY_FORMAT = {
    "mxfp4-pack-quantized": MXFP4,
    "nvfp4-pack-quantized": NVFP4,
    "float-quantized": 1.0,
    "int-quantized": 1.0,
    "naive-quantized": 1.0,
}
_BY_ALGORITHM = {"NVFP4": NVFP4, "FP8": 1.0, "FP8_PB_WO": 1.0 + 4.0 / 128**2}
_SCALE_BYTES = 2.0  # float16 or bfloat16
_BNB_BLOCK = 64  # weights to a float32 scale; with double quantisation an 8-bit one, and a float32 for 256 of those
METHODS = "fp8, fbgemm_fp8, mxfp4, awq, gptq, bitsandbytes, compressed-tensors or modelopt"


def quantised_width(settings: ConfigView) -> float:
    """Bytes of a weight under a quantization_config.

    Raises
    ------
    InputError
        Naming the key that decides, for a method or format without a known width.
    """
    match settings.get("quant_method"):
        case "mxfp4":
            return MXFP4
        case "fp8":
            return _fp8_width(settings)
        case "fbgemm_fp8":
            return 1.0
        case "awq" | "gptq":
            zero_point = settings.flag("zero_point", default=not settings.flag("sym"))
            return _integer_width(settings, ("bits", "w_bit"), zero_point)
        case "bitsandbytes":
            return _bitsandbytes_width(settings)
        case "compressed-tensors":
            return _compressed_width(settings)
        case "modelopt" if settings.get("quant_algo") in _BY_ALGORITHM:
            return _BY_ALGORITHM[str(settings.get("quant_algo"))]
        case "modelopt":
            raise settings.error("quant_algo", f"one of {', '.join(_BY_ALGORITHM)}; for others give weight_bytes")
    raise settings.error("quant_method", f"{METHODS}: it decides the bytes of a weight; for others give weight_bytes")


def _fp8_width(settings: ConfigView) -> float:
    block = settings.get("weight_block_size")
    if block is None:
        return 1.0
    if not (isinstance(block, list) and len(block) == 2 and all(isinstance(n, int) and n > 0 for n in block)):
        raise settings.error("weight_block_size", "null or two whole numbers")
    return 1.0 + 4.0 / float(block[0] * block[1])


def _bitsandbytes_width(settings: ConfigView) -> float:
    if settings.flag("load_in_8bit"):
        return 1.0  # one scale a row
    if not settings.flag("load_in_4bit"):
        raise settings.error("load_in_4bit", "true, or load_in_8bit true: one of them decides the bytes of a weight")
    if settings.flag("bnb_4bit_use_double_quant"):
        return 0.5 + (1.0 + 4.0 / 256) / _BNB_BLOCK
    return 0.5 + 4.0 / _BNB_BLOCK


def _compressed_width(settings: ConfigView) -> float:
    scheme = settings.get("format")
    if isinstance(scheme, str) and scheme in _BY_FORMAT:
        return _BY_FORMAT[scheme]
    if scheme != "pack-quantized":
        known = ", ".join([*_BY_FORMAT, "pack-quantized"])
        raise settings.error(
            "format", f"one of {known}: it decides the bytes of a weight; for others give weight_bytes"
        )
    groups = settings.get("config_groups")
    widths: set[float] = set()
    if isinstance(groups, dict):
        widths = {_packed_width(settings, name, group) for name, group in groups.items()}
    if len(widths) != 1:
        raise settings.error(
            "config_groups", "groups that all store a weight in the same width; else give weight_bytes"
        )
    return widths.pop()


def _packed_width(settings: ConfigView, name: str, group: Any) -> float:
    key = f"config_groups.{name}.weights"
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict):
        raise settings.error("config_groups", f"an object under {key}: it decides the bytes of a weight")
    inner = ConfigView(weights, settings.file, f"{settings.prefix}{key}.")
    zero_point = not inner.flag("symmetric", default=True)
    return _integer_width(inner, ("num_bits",), zero_point)


def _integer_width(settings: ConfigView, names: tuple[str, ...], zero_point: bool) -> float:
    """Packed whole numbers; a group of null or -1 is a row, whose scale weighs nothing."""
    bits = settings.whole(*names)
    if bits > 8:
        raise settings.error(next(name for name in names if settings.get(name) is not None), "at most 8")
    if settings.get("group_size") in (None, -1):
        return bits / 8
    size = settings.whole("group_size")
    return bits / 8 + (_SCALE_BYTES + (bits / 8 if zero_point else 0.0)) / size
