"""What the names of matrix kernels tell: layout, dtype, tile, architecture, matrix cores.

Layouts are the BLAS operation letters of A and B ('n' as stored, 't' transposed) in the library's own
(column-major) terms, which is how cuBLAS, CUTLASS and Tensile all name them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profrun.analysis.kernel_names.dtypes import TOKENS, both, of_words


@dataclass(frozen=True)
class MatrixDetails:
    """What could be read; None where the name does not say it.

    Attributes:
        layout: two letters for A and B, of 'n' and 't'.
        dtype: type of the inputs: fp16, bf16, tf32, fp32, fp64, fp8, fp4, int8, int4, complex64, complex128;
            'fp4 x fp8' where A and B differ.
        tile: (m, n) or (m, n, k) of one block's output tile.
        arch: sm_90, gfx942, ...
        matrix_core: runs on tensor / matrix cores; False when the name tells that it does not.
        accumulate: type in which the product is summed up.
    """

    layout: str | None = None
    dtype: str | None = None
    tile: tuple[int, ...] | None = None
    arch: str | None = None
    matrix_core: bool | None = None
    accumulate: str | None = None


_NVJET = re.compile(
    r"^nvjet_(?:sm(?P<sm>\d+)[a-z]?_)?(?P<types>[a-z]+)_(?:mma_)?(?P<tile>\d+x\d+)_(?P<k>\d+)x\d+.*?"
    r"(?:_(?P<layout>[NT]{2})[NT])?$"
)
_NVJET_TYPES = {"t": "bf16", "h": "fp16", "s": "tf32", "q": "fp8", "d": "fp64"}
_NVJET_SUMS = {"s": "fp32", "h": "fp16", "d": "fp64"}
_XMMA_TILE = re.compile(r"tilesize(\d+)x(\d+)x(\d+)")
_XMMA_TYPES = re.compile(
    r"_(tf32|bf16|f16|f32|f64|e4m3|e5m2|e2m1|i8|s8|u8)(?:tf32|bf16|f16|f32|f64|e4m3|e5m2|i8|i32)"
    r"_(tf32|bf16|f16|f32|f64|e4m3|e5m2|e2m1|i8|s8|u8)(f16|f32|f64|i32)_"
)
"""A and C, B and the sum: f16f16_f16f32 multiplies fp16 and sums up in fp32."""
_XMMA_LAYOUT = re.compile(r"_([nt]{2})_[nt]_tilesize")
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
_TRTLLM = re.compile(
    r"^(?:bmm|gemm)_(?:Mx)?[A-Z][a-z]*\d+(?:m\d)?_"
    r"(?:Mx)?(?P<a>[A-Z][a-z]*\d+(?:m\d)?)(?:Mx)?(?P<b>[A-Z][a-z]*\d+(?:m\d)?)"
    r"(?:_cast\w+?)?_(?P<sum>Fp32|Fp16|Int32)_(?:Ab32_)?t(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
)
_TRTLLM_FMHA = re.compile(r"^fmhaSm(?P<sm>\d+)\w?Kernel_Q(?:kv)?(?P<type>E\dm\d|Bfloat16|Fp16)")
_MATMUL_OGS = re.compile(r"_matmul_ogs_[A-Z]{3}_\w+?x(?P<a>\w+?)x(?P<b>\w+?)_(\d+)x(\d+)x(\d+)")
_IN_WORDS = re.compile(r"(?P<a>fp8|bf16|tf32|fp4|int8)(?:_(?P<b>fp8|fp4|int4))?_gemm")
_WIDTHS = re.compile(r"_a(?P<a>\d+|fp\d)_?w(?P<b>\d+|fp\d)(?![a-z\d])")
_VECTOR = re.compile(
    r"(?P<magma>magma_sgemmEx_kernel)<"
    r"|(?:gemv2[TN]_kernel(?:_val)?|gemvx::kernel|gemvNSP_kernel|gemmSN_\w+|gemmk1_kernel)<"
)
_BUILT_IN = {
    "float": "fp32",
    "double": "fp64",
    "__half": "fp16",
    "__nv_bfloat16": "bf16",
    "signed char": "int8",
}
_INSTRUCTION_SUMS = {"s": "fp32", "h": "fp16", "d": "fp64", "i": "int32"}
_TENSOR_WORDS = re.compile(
    r"tensorop|[Tt]ensor_?[Cc]ore|[Mm]atrix_?[Cc]ore|wmma|wgmma|gmma|hmma|imma|mma_sync|mfma|xdl"
    r"|16816|1688|s884|h884|i8816|nvjet|_sm90_flash|umma|tcgen05|Gmma|GMMA|Sm100.*Mma|HMMA|OpClassTensorOp"
)
_NOT_TENSOR = re.compile(
    r"im2col|ffma|simt|_sgemm|_dgemm|scudnn|gemv|_dpp_|dot2|gcgemm|_[cz]gemm|magma_sgemm|selective_scan|conv1d"
)


def matrix_details(name: str, family: str, category: str = "gemm") -> MatrixDetails:
    """Details of a kernel that multiplies matrices, by its normalised name; None where it does not tell."""
    for reader in (_nvjet, _xmma, _cutlass, _old, _tensile, _igemm, _trtllm, _vector):
        found = reader(name)
        if found is not None:
            return found
    return _words(name, family, category)


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
        _NVJET_SUMS.get(types[-2]) if len(types) > 2 else None,  # inputs, sum, output: tst, qqtst
    )


def _xmma(name: str) -> MatrixDetails | None:
    if "_xmma_" not in name:
        return None
    sm = re.search(r"sm(\d+)", name)
    tile = _XMMA_TILE.search(name)
    layout = _XMMA_LAYOUT.search(name)
    types = _XMMA_TYPES.search(name)
    dtype = None
    if types is not None:
        dtype = "tf32" if "tf32" in types.groups() else both(TOKENS[types[1]], TOKENS[types[2]])
    return MatrixDetails(
        layout[1] if layout else None,
        dtype,
        tuple(int(part) for part in tile.groups()) if tile else None,
        f"sm_{sm[1]}" if sm else None,
        False if "ffma" in name else (dtype != "fp32" if dtype else None),
        TOKENS[types[3]] if types else None,
    )


def _cutlass(name: str) -> MatrixDetails | None:
    hit = _CUTLASS.search(name)
    if hit is None:
        return _cutlass3(name)
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
    letter = re.search(r"(?:^|_)([shdi])(?:\d{3,}|gemm)", rest)
    sums = _INSTRUCTION_SUMS[letter[1]] if letter else None
    return MatrixDetails(hit["layout"], dtype, tile, f"sm_{hit['cc']}", tensor, sums)


def _cutlass3(name: str) -> MatrixDetails | None:
    hit = _CUTLASS3.search(name)
    if hit is None:
        return None
    types = re.search(r"gemm_([a-z]+\d+)_([a-z]+\d+)_([a-z]+\d+)_", name)
    a, b, sums = (TOKENS.get(types[place]) for place in (1, 2, 3)) if types else (None, None, None)
    return MatrixDetails(
        hit["layout"],
        both(a, b) or of_words(name),
        (int(hit["m"]), int(hit["n"]), int(hit["k"])),
        f"sm_{hit['cc']}",
        hit["kind"] == "tensorop",
        sums,
    )


def _old(name: str) -> MatrixDetails | None:
    hit = _OLD.match(re.sub(r"^(?:void )?cudnn_(?:infer_|train_)?", "", name))
    if hit is None:
        return None
    instr, word = hit["instr"], (hit["type"] or "").rstrip("_")
    tensor = any(digits in instr for digits in ("884", "1688", "16816", "8816", "161616"))
    letter = instr[0]
    dtype = word or None
    if dtype is None:
        dtype = {
            "h": "fp16",
            "i": "int8",
            "d": "fp64",
            "c": "complex64",
            "g": "complex64",
            "z": "complex128",
        }.get(letter)
        if letter == "s":
            dtype = ("tf32" if "1688" in instr else "fp16") if tensor else "fp32"
    layout = _OLD_LAYOUT.search(name)
    return MatrixDetails(
        layout[1] if layout else None,
        dtype,
        (int(hit["m"]), int(hit["n"])),
        _ERA[hit["era"]],
        tensor,
        _INSTRUCTION_SUMS.get(letter),
    )


def _tensile(name: str) -> MatrixDetails | None:
    hit = _TENSILE.match(name)
    if hit is None:
        return None
    layout = ("n" if hit["a"] == "il" else "t") + ("n" if hit["b"] == "lj" else "t")
    types = hit["types"]
    dtype = next((dtype for code, dtype in _TENSILE_TYPES.items() if types.startswith(code)), None)
    tile = _TENSILE_MT.search(name)
    isa = _TENSILE_ISA.search(name)
    if dtype == "fp32" and re.match(r"S?X", hit["rest"]):
        dtype = "tf32"
    sums = re.match(r"(?:[A-Z]\d?)[A-Z]?\d?(S|I|D)$", types) or re.match(r"[A-Z]\d?(S)_", hit["rest"])
    return MatrixDetails(
        layout,
        dtype,
        tuple(int(part) for part in tile.groups()) if tile else None,
        f"gfx{isa[1].lower()}" if isa else None,
        _TENSILE_MI.search(name) is not None,
        {"S": "fp32", "I": "int32", "D": "fp64"}[sums[1]]
        if sums
        else (dtype if dtype in ("fp32", "fp64") else None),
    )


def _igemm(name: str) -> MatrixDetails | None:
    hit = _IGEMM.match(name)
    if hit is None:
        return None
    arch = {"": "gfx908", "2": "gfx90a", "3": "gfx942"}.get(hit["gen"]) if hit["x"] else None
    dtype = hit["type"] if hit["type"] in ("bf16", "fp16", "fp32", "int8") else None
    sums = None if dtype is None else ("int32" if dtype == "int8" else "fp32")
    return MatrixDetails(None, dtype, (int(hit[4]), int(hit[5]), int(hit[6])), arch, hit["x"] == "x", sums)


def _trtllm(name: str) -> MatrixDetails | None:
    """TensorRT-LLM's generated kernels: output, A, B, sum; a block-scaled (Mx) type is its element's type."""
    hit = _TRTLLM.match(name)
    if hit is not None:
        dtype = both(TOKENS.get(hit["a"].lower()), TOKENS.get(hit["b"].lower()))
        tile = tuple(int(hit[key]) for key in ("m", "n", "k"))
        sm = re.search(r"_sm(\d+)", name)
        return MatrixDetails(
            None, dtype, tile, f"sm_{sm[1]}" if sm else None, True, TOKENS.get(hit["sum"].lower(), "int32")
        )
    hit = _TRTLLM_FMHA.match(name)
    if hit is None:
        return None
    return MatrixDetails(None, TOKENS.get(hit["type"].lower()), None, f"sm_{hit['sm']}", True)


def _vector(name: str) -> MatrixDetails | None:
    """cuBLAS's templates: A, B, C and the type of the sum; MAGMA's name the sum first."""
    hit = _VECTOR.search(name)
    if hit is None:
        return None
    types = [_BUILT_IN[word] for word in re.split(r",\s*", name[hit.end() :])[:6] if word in _BUILT_IN]
    if not types:
        return _words(name, "cublas", "gemm")
    if hit["magma"]:
        return MatrixDetails(None, types[1] if len(types) > 1 else None, None, None, False, types[0])
    sums = types[3] if len(types) > 3 else (types[0] if types[0] in ("fp32", "fp64") else None)
    return MatrixDetails(None, types[0], None, None, False, sums)


def _words(name: str, family: str, category: str) -> MatrixDetails:
    """Fallback: single words. Where no word tells a detail, it is None."""
    dtype = of_words(name, mixed=category == "attention")
    pair = _MATMUL_OGS.search(name) or _IN_WORDS.search(name) or _WIDTHS.search(name)
    if pair is not None:
        dtype = both(TOKENS.get(pair["a"]), TOKENS.get(pair["b"] or pair["a"]))
    elif (
        family in ("ck", "ck_tile") and dtype is None and re.search(r"[IE]m?t{2,3}f|<unsigned short, ", name)
    ):
        dtype = "bf16"  # CK keeps bf16 in an unsigned short
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
    sums = "fp32" if family == "flash-attention" and dtype in ("bf16", "fp16") else None
    return MatrixDetails(
        None, dtype, tuple(int(part) for part in tile.groups()) if tile else None, arch, core, sums
    )
