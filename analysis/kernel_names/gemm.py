"""What the names of matrix kernels tell: layout, dtype, tile, architecture, matrix cores.

Layouts are the BLAS operation letters of A and B ('n' as stored, 't' transposed) in the library's own
(column-major) terms, which is how cuBLAS, CUTLASS and Tensile all name them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class MatrixDetails:
    """What could be read; None where the name does not say it.

    Attributes:
        layout: two letters for A and B, of 'n' and 't'.
        dtype: type of the inputs: fp16, bf16, tf32, fp32, fp64, fp8, fp4, int8, complex64.
        tile: (m, n) or (m, n, k) of one block's output tile.
        arch: sm_90, gfx942, ...
        matrix_core: runs on tensor / matrix cores; False when the name tells that it does not.
    """

    layout: str | None = None
    dtype: str | None = None
    tile: tuple[int, ...] | None = None
    arch: str | None = None
    matrix_core: bool | None = None


_NVJET = re.compile(
    r"^nvjet_(?:sm(?P<sm>\d+)[a-z]?_)?(?P<types>[a-z]+)_(?:mma_)?(?P<tile>\d+x\d+)_(?P<k>\d+)x\d+.*?"
    r"(?:_(?P<layout>[NT]{2})[NT])?$"
)
_NVJET_TYPES = {"t": "bf16", "h": "fp16", "s": "tf32", "q": "fp8", "d": "fp64"}
_XMMA_TILE = re.compile(r"tilesize(\d+)x(\d+)x(\d+)")
_XMMA_LAYOUT = re.compile(r"_([nt]{2})_[nt]_tilesize")
_XMMA_TYPES = {
    "_tf32f32_": "tf32",
    "_bf16": "bf16",
    "_e4m3": "fp8",
    "_e5m2": "fp8",
    "_i8i": "int8",
    "_f16f16_": "fp16",
    "_f64": "fp64",
    "_f32f32_": "fp32",
}
_CUTLASS = re.compile(
    r"cutlass_(?P<cc>\d{2,3})_(?P<kind>wmma_tensorop|tensorop|simt)_(?P<rest>\w+?)_"
    r"(?P<m>\d+)x(?P<n>\d+)(?:_(?P<k>\d+)x\d+)?_(?P<layout>[nt]{2})(?:_|$)"
)
_CUTLASS3 = re.compile(
    r"cutlass3x_sm(?P<cc>\d+)_(?P<kind>tensorop|simt)_\w*?_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_\d+x\d+x\d+_"
    r"(?:\d+_)?(?:(?P<layout>[nt]{2})[nt]_)?"
)
_OLD = re.compile(
    r"^(?:void )?(?P<era>volta|turing|ampere|maxwell|pascal)_(?P<type>(?:fp16|bf16|tf32|int8|fp64)_)?"
    r"(?P<instr>[a-z]+\d*)(?:gemm|cudnn)\w*?_(?P<m>\d+)x(?P<n>\d+)"
)
_OLD_LAYOUT = re.compile(r"_([nt]{2})(?:_v\d+)?$")
_ERA = {"volta": "sm_70", "turing": "sm_75", "ampere": "sm_80", "maxwell": "sm_50", "pascal": "sm_60"}
_TENSILE = re.compile(r"^Cijk_A(?P<a>il|li)k_B(?P<b>lj|jl)k_(?P<types>[A-Z0-9]+?)(?:_|$)(?P<rest>.*)")
_TENSILE_MT = re.compile(r"_MT(\d+)x(\d+)x(\d+)")
_TENSILE_MI = re.compile(r"_MI\d+x\d+x\d+")
_TENSILE_ISA = re.compile(r"_ISA(\w?\d{2,3}[a-z]?)")
_TENSILE_TYPES = {
    "F8": "fp8",
    "B8": "fp8",
    "I8": "int8",
    "X": "tf32",
    "HH": "fp16",
    "BB": "bf16",
    "H": "fp16",
    "B": "bf16",
    "S": "fp32",
    "D": "fp64",
    "C": "complex64",
    "I": "int8",
}
_IGEMM = re.compile(
    r"^igemm_(?:fwd|bwd|wrw)_gtc(?P<x>x?)(?P<gen>\d?)_nhwc_(?P<type>\w+?)_.*?_bt(\d+)x(\d+)x(\d+)"
)
_SM = re.compile(r"[sS]m_?(\d{2,3})[a-z]?")
_TENSOR_WORDS = re.compile(
    r"tensorop|[Tt]ensor_?[Cc]ore|[Mm]atrix_?[Cc]ore|wmma|wgmma|gmma|hmma|imma|mma_sync|mfma|xdl|16816|1688|s884|h884|i8816|nvjet|_sm90_flash|umma|tcgen05|Gmma|GMMA|Sm100.*Mma"
)
_NOT_TENSOR = re.compile(
    r"splitKreduce|dot_kernel|reduce_1Block|OffsetsKernel|nchwToNhwc|nhwcToNchw|im2col|ffma|simt|_sgemm|_dgemm|scudnn|gemv|_dpp_|dot2|gcgemm|_cgemm"
)
_BY_WORD = (
    ("fp8", r"e4m3|e5m2|E4m3|E5m2|fp8_e|_fp8"),
    ("bf16", r"bf16|bfloat16|BFloat16|Bfloat16"),
    ("fp16", r"fp16|_f16|\bHalf|c10::Half|__half|half_t|_Float16|_h\d{3,}"),
    ("tf32", r"tf32"),
    ("int8", r"int8|i8816|_s8"),
    ("fp64", r"double|fp64|dgemm"),
    ("fp32", r"fp32|_f32|sgemm|scudnn|(?<![\w:])float[,>]"),
)


def matrix_details(name: str, family: str) -> MatrixDetails:
    """Details of a GEMM, convolution or attention kernel; empty where the name tells nothing."""
    for reader in (_nvjet, _xmma, _cutlass, _old, _tensile, _igemm):
        found = reader(name)
        if found is not None:
            return found
    return _words(name, family)


def _nvjet(name: str) -> MatrixDetails | None:
    hit = _NVJET.match(name)
    if hit is None:
        return None
    types = hit["types"]
    m, n = (int(part) for part in hit["tile"].split("x"))
    return MatrixDetails(
        hit["layout"].lower() if hit["layout"] else None,
        _NVJET_TYPES.get(types[0]),
        (m, n, int(hit["k"])),
        f"sm_{hit['sm']}" if hit["sm"] else None,
        True,
    )


def _xmma(name: str) -> MatrixDetails | None:
    if "_xmma_" not in name:
        return None
    sm = re.search(r"sm(\d+)", name)
    tile = _XMMA_TILE.search(name)
    layout = _XMMA_LAYOUT.search(name)
    dtype = next((found for word, found in _XMMA_TYPES.items() if word in name), None)
    return MatrixDetails(
        layout[1] if layout else None,
        dtype,
        tuple(int(part) for part in tile.groups()) if tile else None,
        f"sm_{sm[1]}" if sm else None,
        False if "ffma" in name else (dtype != "fp32" if dtype else None),
    )


def _cutlass(name: str) -> MatrixDetails | None:
    hit = _CUTLASS.search(name)
    if hit is None:
        three = _CUTLASS3.search(name)
        if three is None:
            return None
        found = _words(name, "cutlass")
        return replace(
            found,
            layout=three["layout"],
            arch=f"sm_{three['cc']}",
            tile=(int(three["m"]), int(three["n"]), int(three["k"])),
            matrix_core=three["kind"] == "tensorop",
        )
    rest = hit["rest"]
    tensor = hit["kind"] != "simt"
    dtype = None
    if "bf16" in rest:
        dtype = "bf16"
    elif "f16" in rest or re.match(r"h\d", rest):
        dtype = "fp16"
    elif rest.startswith("s1688") or "tf32" in rest:
        dtype = "tf32"  # an s1688 with no type word multiplies fp32 inputs as TF32
    elif "f64" in rest or rest.startswith(("d884", "dgemm")):
        dtype = "fp64"
    elif rest.startswith("sgemm") or not tensor:
        dtype = "fp32"
    elif rest.startswith("i"):
        dtype = "int8"
    tile = tuple(int(hit[key]) for key in ("m", "n", "k") if hit[key])
    return MatrixDetails(hit["layout"], dtype, tile, f"sm_{hit['cc']}", tensor)


def _old(name: str) -> MatrixDetails | None:
    hit = _OLD.match(re.sub(r"^(?:void )?cudnn_(?:infer_|train_)?", "", name))
    if hit is None:
        return None
    instr, word = hit["instr"], (hit["type"] or "").rstrip("_")
    tensor = any(digits in instr for digits in ("884", "1688", "16816", "8816", "161616"))
    dtype = word or None
    if dtype is None:
        letter = instr[0]
        dtype = {"h": "fp16", "i": "int8", "d": "fp64", "c": "complex64", "g": "complex64"}.get(letter)
        if letter == "s":
            dtype = ("tf32" if "1688" in instr else "fp16") if tensor else "fp32"
    layout = _OLD_LAYOUT.search(name)
    return MatrixDetails(
        layout[1] if layout else None, dtype, (int(hit["m"]), int(hit["n"])), _ERA[hit["era"]], tensor
    )


def _tensile(name: str) -> MatrixDetails | None:
    hit = _TENSILE.match(name)
    if hit is None:
        return None
    layout = ("n" if hit["a"] == "il" else "t") + ("n" if hit["b"] == "lj" else "t")
    dtype = next((dtype for code, dtype in _TENSILE_TYPES.items() if hit["types"].startswith(code)), None)
    tile = _TENSILE_MT.search(name)
    isa = _TENSILE_ISA.search(name)
    if dtype == "fp32" and re.match(r"S?X", hit["rest"]):
        dtype = "tf32"
    return MatrixDetails(
        layout,
        dtype,
        tuple(int(part) for part in tile.groups()) if tile else None,
        f"gfx{isa[1].lower()}" if isa else None,
        _TENSILE_MI.search(name) is not None,
    )


def _igemm(name: str) -> MatrixDetails | None:
    hit = _IGEMM.match(name)
    if hit is None:
        return None
    arch = {"": "gfx908", "2": "gfx90a", "3": "gfx942"}.get(hit["gen"]) if hit["x"] else None
    dtype = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32", "int8": "int8"}.get(hit["type"])
    return MatrixDetails(None, dtype, (int(hit[4]), int(hit[5]), int(hit[6])), arch, hit["x"] == "x")


def _words(name: str, family: str) -> MatrixDetails:
    """Fallback: single words. Where no word tells a detail, it is None."""
    dtype = next((dtype for dtype, words in _BY_WORD if re.search(words, name)), None)
    sm = _SM.search(name)
    gfx = re.search(r"gfx[0-9a-f]{3,4}", name)
    arch = gfx[0] if gfx else (f"sm_{sm[1]}" if sm else None)
    core: bool | None = None
    if _NOT_TENSOR.search(name):
        core = False
    elif _TENSOR_WORDS.search(name) or (
        family in ("flash-attention", "trtllm", "ck_tile")
        and (dtype in ("bf16", "fp16", "fp8") or "Gemm" in name)
    ):
        core = True
    tile = re.search(r"TileGemmShape<\w*::sequence<(\d+), (\d+), (\d+)>", name)
    return MatrixDetails(
        None, dtype, tuple(int(part) for part in tile.groups()) if tile else None, arch, core
    )
