"""GPU work by name and call path: drawings whose places and modules can be read off."""

from __future__ import annotations

from profrun.analysis.compare import read_trial
from tests.analysis.kit import memory_trace, step


def test_places_modules_and_the_backward_of_a_module() -> None:
    rows = [
        step(1, 0, 1000),
        ("range", "nn.Module: blocks.0.mlp (MLP)", 10, 100, "main"),
        ("op", "aten::linear", 20, 50, "main"),
        ("op", "aten::mm", 25, 40, "main"),
        ("api", "cudaLaunchKernel", 30, 5, "main"),
        ("range", "backward", 200, 300, "main"),
        ("op", "autograd::engine::evaluate_function: MmBackward0", 210, 100, "autograd"),
        ("op", "MmBackward0", 215, 80, "autograd", {"ops.backward_of": 3}),
        ("api", "cudaLaunchKernel", 220, 5, "autograd"),
        ("op", "aten::add_", 320, 50, "autograd"),
        ("api", "cudaLaunchKernel", 330, 5, "autograd"),
        ("kernel", "forward_gemm", 40, 10, "stream 7", {"launch": 4}),
        ("kernel", "backward_gemm", 230, 10, "stream 7", {"launch": 8}),
        ("kernel", "add", 340, 10, "stream 7", {"launch": 10}),
    ]
    atoms = {atom.name: atom for atom in read_trial(memory_trace(rows)).kernel_groups}
    forward, backward, add = atoms["forward_gemm"], atoms["backward_gemm"], atoms["add"]
    assert forward.path == ("nn.Module: blocks.0.mlp (MLP)", "aten::linear", "aten::mm")
    assert (forward.kinds, forward.module, forward.backward) == ("roo", "blocks.0.mlp", False)
    assert (backward.module, backward.backward) == ("blocks.0.mlp", True)
    assert backward.path[0] == "backward"  # what the main thread was in
    assert (add.path, add.module) == (("backward", "aten::add_"), None)


def test_compiled_regions_are_no_places() -> None:
    rows = [
        step(1, 0, 1000),
        ("range", "forward", 0, 900, "main"),
        ("op", "Torch-Compiled Region: 0/0", 10, 800, "main"),
        ("range", "## Call CompiledFxGraph fxbdwh5rrl743ged6isuqdr6fidnbenbj2u ##", 20, 700, "main"),
        ("op", "aten::mm", 30, 100, "main"),
        ("api", "cudaLaunchKernel", 40, 10, "main"),
        ("kernel", "k", 60, 10, "stream 7", {"launch": 5}),
    ]
    (atom,) = read_trial(memory_trace(rows)).kernel_groups
    assert atom.path == ("forward", "aten::mm")
