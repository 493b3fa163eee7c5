"""Element types in kernel names: the words that libraries have for them, and which of them the inputs are."""

from __future__ import annotations

import re

_TOKENS = """
fp16: f16 fp16 h | bf16: bf16 bfloat16 | tf32: tf32 | fp32: f32 fp32 s | fp64: f64 fp64 d
fp8: e4m3 e5m2 fp8 f8 mxfp8 | fp4: e2m1 fp4 mxfp4 nvfp4
int8: i8 s8 u8 int8 | int4: i4 int4 | int32: i32 s32
"""
TOKENS: dict[str, str] = {
    token: dtype.strip()
    for dtype, _, tokens in (row.partition(":") for row in _TOKENS.replace("|", "\n").split("\n"))
    for token in tokens.split()
}
"""A library's token for a type, in lower case."""

_WORDS = (
    ("fp4", r"e2m1|E2m1|(?<![a-z])(?:nv|mx)?fp4|(?<![a-zA-Z])f4gemm"),
    ("fp8", r"e4m3|e5m2|E4m3|E5m2|Float8|(?<![A-Za-z])[Ff][Pp]8|pertokenFp8|blockscaleFp8|mxfp8"),
    ("int8", r"int8|Int8|i8816|_s8|signed char|(?<![a-zA-Z])[iI]8gemm"),
    ("bf16", r"bf16|[bB][fF]loat16|DF16b"),
    ("fp16", r"(?<!b)fp16|_f16|c10::Half|__half|(?<![a-z])half(?![a-z])|_Float16|DF16_|_h\d{3,}"),
    ("tf32", r"tf32|tfloat32"),
    ("fp64", r"(?<!\w)double(?!\w)|fp64|dgemm"),
    ("fp32", r"fp32|_f32|sgemm|scudnn|(?<![\w:])float(?=[,>]|$)"),
)
WORDS = tuple((dtype, re.compile(pattern)) for dtype, pattern in _WORDS)
_NO_TYPE = re.compile(r"Fp8KVCacheDataType|outf32|outbf16|perToken|per1x32Fp4|\w+_f16_knob")
"""Words that hold a type's name and say nothing about the inputs.

The last is cuDNN's attention: the same kernel multiplies fp16 and bf16, and says f16 for both.
"""


def both(a: str | None, b: str | None) -> str | None:
    """The type of A and B: one word when it is the same, 'fp4 x fp8' when not, None when one is not known."""
    if a is None or b is None:
        return None
    return a if a == b else f"{a} x {b}"


def of_words(text: str, *, mixed: bool = False) -> str | None:
    """The type of the inputs by the words of a name; None where there is none, or where they contradict.

    A product of narrow types writes a wider one, so the narrow type is that of the inputs. Two types of the
    same width cannot both be.

    Args:
        text: a normalised name.
        mixed: a narrow and a wide type may both be inputs, as with a cache of keys in fp8: None then.
    """
    text = _NO_TYPE.sub("", text)
    found = [dtype for dtype, pattern in WORDS if pattern.search(text)]
    narrow = [dtype for dtype in found if dtype in ("fp4", "fp8", "int8")]
    half = [dtype for dtype in found if dtype in ("bf16", "fp16")]
    if not found or len(narrow) > 1 or (not narrow and len(half) > 1) or (mixed and narrow and half):
        return None
    return found[0]
