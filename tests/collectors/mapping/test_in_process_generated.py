"""Which kernels the lines of generated code call."""

from __future__ import annotations

from profrun.collectors.mapping.in_process_generated import calls
from profrun.contract.generated_code import GeneratedCall, Operation, SourceLine

CODE = """\
def call(args):
    # Topologically Sorted Source Nodes: [x], Original ATen: [aten.mm]
    # [Provenance debug handles] extern_kernels.mm:1
    extern_kernels.mm(a, b, out=buf0)
    # [Provenance debug handles] triton_poi_fused_sin_0:2
    stream0 = get_raw_stream(0)
    triton_poi_fused_sin_0.run(buf0, buf1, 4096, stream=stream0)
    # [Provenance debug handles] cpp_fused_0:3, extern_kernels.addmm:4
    cpp_fused_0(buf1)
    not_cpp_fused_0(buf1)
    extern_kernels.addmm(buf1, out=buf2)
    extern_kernels.mm(a, b, out=buf3)
"""
SINE = '  File "/me/model.py", line 3, in forward\n    x = x.sin()\n'


def test_a_call_has_the_handle_of_the_comment_before_it() -> None:
    found = list(calls(CODE, {"triton_poi_fused_sin_0:2": [SINE, SINE, "damaged"]}))
    sine = Operation((SourceLine("/me/model.py", 3, "forward", own=True),))
    assert found == [
        GeneratedCall(4, "extern_kernels.mm:1"),
        GeneratedCall(7, "triton_poi_fused_sin_0:2", (sine,)),
        GeneratedCall(9, "cpp_fused_0:3"),
        GeneratedCall(11, "extern_kernels.addmm:4"),
    ], "the last call of mm has no comment of its own"


MIXED = """\
    # [Provenance debug handles] triton_per_fused_layer_norm_backward_1:7
    triton_per_fused_layer_norm_backward_1.run(buf3, buf9, workspace_0, 8192, 1024, stream=stream0)
    buf5 = workspace_0[0 * 128 * 1024 : (0 + 1) * 128 * 1024].view(128, 1024).sum(dim=0)
    buf6 = workspace_1[0 * 128 * 1024 : (0 + 1) * 128 * 1024].view(128, 1024).sum(dim=0)
    buf7 = buf5[0:1024].view(32, 32).sum(dim=0)
"""


def test_the_second_part_of_a_reduction_belongs_to_the_kernel_that_did_the_first() -> None:
    found = list(calls(MIXED, {"triton_per_fused_layer_norm_backward_1:7": [SINE]}))
    assert [one.line for one in found] == [2, 3]
    assert found[0].operations == found[1].operations != ()
    assert {one.kernel for one in found} == {"triton_per_fused_layer_norm_backward_1:7"}


def test_lines_of_packages_that_count_as_the_programs_own_say_so() -> None:
    place = "/venv/lib/python3.12/site-packages/timm/layers.py"
    text = f'  File "{place}", line 5, in forward\n    x = x.sin()\n'
    for packages, own in (((), False), (("timm",), True), (("torch",), False)):
        found = list(calls(CODE, {"triton_poi_fused_sin_0:2": [text]}, packages))
        assert found[1].operations[0].stack == (SourceLine(place, 5, "forward", own=own),)
