"""Peak rates of GPUs: dense TFLOP/s by dtype and memory bandwidth, each with the document it is from.

Dense means without structured sparsity: vendors print twice these numbers for NVIDIA's sparse modes. fp16,
bf16, tf32, fp8, fp4 and int8 are tensor / matrix core rates; fp32 and fp64 are the vector units' (CUDA
cores), the matrix rates of those types are ``fp32_matrix`` and ``fp64_matrix``. MI200 figures are a GCD's,
which is what HIP shows as one device. Every number can be overridden (``peaks_for(..., overrides=...)``).

No vendor document was at hand: ``confirmed`` says which text that quotes one agrees, or that none was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NOT_CONFIRMED = "not confirmed"


@dataclass(frozen=True)
class Peaks:
    """Peak rates of one GPU.

    Attributes:
        name: product.
        tflops: TFLOP/s (int8: TOP/s) by dtype, dense.
        memory_gb_s: bandwidth of device memory, 1e9 bytes a second.
        source: the document the numbers are from.
        confirmed: where a text that quotes it was found to agree, ``NOT_CONFIRMED`` where none was.
        overridden: keys that the user set.
    """

    name: str
    tflops: Mapping[str, float]
    memory_gb_s: float
    source: str
    confirmed: str
    overridden: tuple[str, ...] = ()

    def for_dtype(self, dtype: str | None, *, matrix: bool = True) -> float | None:
        """TFLOP/s for a dtype; fp32 and fp64 on matrix units where the GPU has such a rate."""
        if dtype is None:
            return None
        if matrix and f"{dtype}_matrix" in self.tflops:
            return self.tflops[f"{dtype}_matrix"]
        return self.tflops.get(dtype)

    @property
    def ridge(self) -> dict[str, float]:
        """FLOP a byte at which a dtype turns from memory-bound to compute-bound."""
        return {dtype: rate * 1e3 / self.memory_gb_s for dtype, rate in self.tflops.items()}


def _tensor(fp64: float, fp32: float, half: float, **more: float) -> dict[str, float]:
    return {"fp64": fp64, "fp32": fp32, "fp16": half, **more}


_H100_SXM = _tensor(33.5, 66.9, 989.4, bf16=989.4, tf32=494.7, fp8=1978.9, int8=1978.9, fp64_matrix=66.9)
_MI300X = _tensor(
    81.7,
    163.4,
    1307.4,
    bf16=1307.4,
    tf32=653.7,
    fp8=2614.9,
    int8=2614.9,
    fp64_matrix=163.4,
    fp32_matrix=163.4,
)

_ML = "ml-engineering's table of dense rates (2026), which cites the vendor's page"
_V100 = "rows of the datasheet in a repository's notes; PCIe also io-tech.fi, 2017"
_T4 = "rates and 320 GB/s as announced: heise.de, 2018 (later prints say 300); 256 bit x 10 Gbit/s"
_A100 = f"{_ML}; not its fp64 and bandwidth"
_A10 = f"fp32 and bandwidth in a GPU database; the others {NOT_CONFIRMED}"
_L40S = f"rows of the datasheet at mullet.se; int8 in {_ML}"
_HOPPER = f"{_ML}, rounded; not its fp64; bandwidth of H100 and H200 SXM only"
_BLACKWELL = f"{_ML}; fp32 is 80 there; not its fp64 and bandwidth"
_MI210 = "AMD's table in AnandTech, 2022; 1.7 GHz x 104 CUs x 1024"
_MI250 = f"AMD's table in AnandTech, 2022, and {_ML}, halved"
_MI300 = f"{_ML}; fp64 and bandwidth in other tables of AMD's page; 2.1 GHz x 304 CUs x 2048"
_MI350 = f"{_ML}; fp64 and bandwidth in other tables of AMD's page; clock x 256 CUs x 4096"

# (pattern on the device's name, peaks); first match wins, so special models come before general ones
TABLE: tuple[tuple[str, Peaks], ...] = (
    ("V100S", Peaks("V100S PCIe", _tensor(8.2, 16.4, 130.0), 1134.0, "NVIDIA V100 datasheet, 2020", _V100)),
    ("V100.*PCI", Peaks("V100 PCIe", _tensor(7.0, 14.0, 112.0), 900.0, "NVIDIA V100 datasheet, 2020", _V100)),
    ("V100", Peaks("V100 SXM2", _tensor(7.8, 15.7, 125.0), 900.0, "NVIDIA V100 datasheet, 2020", _V100)),
    ("Tesla T4|^T4$|NVIDIA T4", Peaks(
        "T4", {"fp32": 8.1, "fp16": 65.0, "int8": 130.0}, 320.0, "NVIDIA T4 datasheet, 2018", _T4)),
    ("A100.*80GB.*PCI|A100 80GB PCIe", Peaks(
        "A100 80GB PCIe",
        _tensor(9.7, 19.5, 312.0, bf16=312.0, tf32=156.0, int8=624.0, fp64_matrix=19.5), 1935.0,
        "NVIDIA A100 datasheet, 2022", _A100)),
    ("A100.*80GB|A100-SXM-80", Peaks(
        "A100 80GB SXM",
        _tensor(9.7, 19.5, 312.0, bf16=312.0, tf32=156.0, int8=624.0, fp64_matrix=19.5), 2039.0,
        "NVIDIA A100 datasheet, 2022", _A100)),
    ("A100", Peaks(
        "A100 40GB",
        _tensor(9.7, 19.5, 312.0, bf16=312.0, tf32=156.0, int8=624.0, fp64_matrix=19.5), 1555.0,
        "NVIDIA A100 whitepaper, 2020", _A100)),
    (r"A10\b", Peaks("A10", {"fp32": 31.2, "fp16": 125.0, "bf16": 125.0, "tf32": 62.5, "int8": 250.0},
                       600.0, "NVIDIA A10 datasheet, 2021", _A10)),
    ("L40S", Peaks("L40S", {"fp32": 91.6, "fp16": 362.05, "bf16": 362.05, "tf32": 183.0, "fp8": 733.0,
                            "int8": 733.0}, 864.0, "NVIDIA L40S datasheet, 2023", _L40S)),
    (r"L4\b", Peaks("L4", {"fp32": 30.3, "fp16": 121.0, "bf16": 121.0, "tf32": 60.0, "fp8": 242.5,
                           "int8": 242.5}, 300.0, "NVIDIA L4 datasheet, 2023", NOT_CONFIRMED)),
    ("H100.*NVL", Peaks(
        "H100 NVL",
        _tensor(30.0, 60.0, 835.5, bf16=835.5, tf32=417.5, fp8=1670.5, int8=1670.5, fp64_matrix=60.0),
        3900.0, "NVIDIA H100 datasheet, 2024 (sparse figures halved)", NOT_CONFIRMED)),
    ("H100.*PCI", Peaks(
        "H100 PCIe",
        _tensor(25.6, 51.2, 756.0, bf16=756.0, tf32=378.0, fp8=1513.0, int8=1513.0, fp64_matrix=51.2),
        2039.0, "NVIDIA H100 datasheet, 2023 (sparse figures halved)", _HOPPER)),
    ("GH200.*144|GH200.*141", Peaks(
        "GH200 144GB", _H100_SXM, 4900.0, "NVIDIA GH200 datasheet, 2024 (sparse figures halved)", _HOPPER)),
    ("GH200", Peaks("GH200 96GB", _H100_SXM, 4000.0,
                    "NVIDIA GH200 datasheet, 2024 (sparse figures halved)", _HOPPER)),
    ("H100", Peaks("H100 SXM", _H100_SXM, 3352.0, "NVIDIA H100 architecture whitepaper, 2022", _HOPPER)),
    ("H200.*NVL", Peaks(
        "H200 NVL",
        _tensor(30.0, 60.0, 835.5, bf16=835.5, tf32=417.5, fp8=1670.5, int8=1670.5, fp64_matrix=60.0),
        4800.0, "NVIDIA H200 datasheet, 2024 (sparse figures halved)", NOT_CONFIRMED)),
    ("H200", Peaks("H200 SXM", _H100_SXM, 4800.0,
                   "NVIDIA H200 datasheet, 2024 (sparse figures halved)", _HOPPER)),
    ("GB200", Peaks(
        "GB200, one GPU",
        _tensor(40.0, 80.0, 2500.0, bf16=2500.0, tf32=1250.0, fp8=5000.0, int8=5000.0, fp4=10000.0),
        8000.0, "NVIDIA Blackwell datasheet, 2025, a GPU of GB200 NVL72 (sparse figures halved)",
        _BLACKWELL)),
    ("B200", Peaks(
        "B200",
        _tensor(37.0, 75.0, 2250.0, bf16=2250.0, tf32=1125.0, fp8=4500.0, int8=4500.0, fp4=9000.0),
        7700.0, "NVIDIA Blackwell datasheet, 2025, a GPU of HGX B200 (sparse figures halved; TF32, printed "
        "as 2.2 PFLOP/s sparse, is half of FP16)", _BLACKWELL)),
    ("MI210", Peaks(
        "MI210", _tensor(22.6, 22.6, 181.0, bf16=181.0, int8=181.0, fp64_matrix=45.3, fp32_matrix=45.3),
        1638.4, "AMD Instinct MI210 datasheet, 2022", _MI210)),
    ("MI250X", Peaks(
        "MI250X, one GCD",
        _tensor(23.95, 23.95, 191.5, bf16=191.5, int8=191.5, fp64_matrix=47.9, fp32_matrix=47.9), 1638.4,
        "AMD Instinct MI250X datasheet, 2021, half a card", _MI250)),
    ("MI250", Peaks(
        "MI250, one GCD",
        _tensor(22.63, 22.63, 181.05, bf16=181.05, int8=181.05, fp64_matrix=45.25, fp32_matrix=45.25), 1638.4,
        "AMD Instinct MI250 datasheet, 2021, half a card", _MI250)),
    ("MI300A", Peaks(
        "MI300A",
        _tensor(61.3, 122.6, 980.6, bf16=980.6, tf32=490.3, fp8=1961.2, int8=1961.2, fp64_matrix=122.6,
                fp32_matrix=122.6), 5300.0, "AMD Instinct MI300A datasheet, 2023", NOT_CONFIRMED)),
    ("MI300X", Peaks("MI300X", _MI300X, 5300.0, "AMD Instinct MI300X datasheet, 2023", _MI300)),
    ("MI325X", Peaks("MI325X", _MI300X, 6000.0, "AMD Instinct MI325X datasheet, 2024", _MI300)),
    ("MI350X", Peaks(
        "MI350X",
        _tensor(72.1, 144.2, 2306.9, bf16=2306.9, fp8=4613.7, int8=4613.7, fp4=9227.5, fp64_matrix=72.1),
        8000.0, "AMD Instinct MI350X datasheet, 2025", _MI350)),
    ("MI355X", Peaks(
        "MI355X",
        _tensor(78.6, 157.3, 2516.6, bf16=2516.6, fp8=5033.2, int8=5033.2, fp4=10066.3, fp64_matrix=78.6),
        8000.0, "AMD Instinct MI355X datasheet, 2025", _MI350)),
)  # fmt: skip
