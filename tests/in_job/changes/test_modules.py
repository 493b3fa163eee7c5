"""Root modules under autocast, compiled, and in channels_last: what they compute, and what is left alone."""

from __future__ import annotations

import pytest

from tests.in_job.changes.conftest import Programs

NET = """
import collections, copy, inspect, io
torch.manual_seed(3)
Pair = collections.namedtuple("Pair", "a b")
class Output(collections.OrderedDict):
    pass
class Thing:
    def __init__(self, y): self.y = y
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(8, 2)
    def forward(self, x, scale=1.0):
        self.formats = [x.is_contiguous(memory_format=torch.channels_last), x.is_contiguous()]
        y = self.lin(self.conv(x).mean((2, 3))) * scale
        return Output(y=y, pair=Pair(y, [y, 5]), ids=torch.ones(2, dtype=torch.long), thing=Thing(y))
net, x = Net(), torch.rand(2, 3, 6, 6)
"""
CALL = """
made = net(x, scale=2.0)
out["values"] = made["y"].tolist()
pair = made["pair"]
out["types"] = [str(made["y"].dtype), str(pair.a.dtype), str(pair.b[0].dtype), pair.b[1]]
out["kept"] = [type(made).__name__, type(made["pair"]).__name__, str(made["ids"].dtype)]
out["thing"] = str(made["thing"].y.dtype)
"""


def close(found: list[list[float]], expected: list[list[float]], tolerance: float) -> bool:
    pairs = [pair for rows in zip(found, expected, strict=True) for pair in zip(*rows, strict=True)]
    return all(abs(one - other) < tolerance for one, other in pairs)


def test_autocast_gives_fp32_that_was_computed_in_bf16(programs: Programs) -> None:
    plain, changed = programs.run(code=NET + CALL), programs.run("autocast", code=NET + CALL)
    assert changed.only == (
        "change-applied",
        "autocast=bfloat16: 1 root module (Net) under autocast in bfloat16",
    )
    assert changed.out["types"] == ["torch.float32"] * 3 + [5]
    assert changed.out["kept"] == plain.out["kept"] == ["Output", "Pair", "torch.int64"]
    assert changed.out["thing"] == "torch.bfloat16", "objects of other classes are left as they are"
    assert changed.out["values"] != plain.out["values"]
    assert close(changed.out["values"], plain.out["values"], 1e-2)


COPIES = """
net(x)
twin = copy.deepcopy(net)
with torch.no_grad():
    twin.lin.bias.add_(100.0)
    out["twin"] = (twin(x)["y"] - net(x)["y"]).mean().item()
Net.__module__, Net.__qualname__ = "__main__", "Net"
import __main__
__main__.Net = Net
file = io.BytesIO()
torch.save(net, file)
out["ours"] = b"profrun" in file.getvalue()
file.seek(0)
out["loaded"] = type(torch.load(file, weights_only=False)(x)).__name__
out["signature"] = str(inspect.signature(net.forward))
out["name"] = net.forward.__name__
"""


@pytest.mark.parametrize("changes", [["autocast"], ["autocast", "channels-last"]])
def test_copies_and_saved_modules_are_modules_of_their_own(programs: Programs, changes: list[str]) -> None:
    """Trainers copy a model for averages of its weights, and read the names of its arguments."""
    answer = programs.run(*changes, code=NET + COPIES)
    assert answer.error is None
    assert answer.out["twin"] == pytest.approx(100.0, abs=1.0), "a copy has its own weights"
    assert not answer.out["ours"], "a saved module does not need profrun"
    assert (answer.out["loaded"], answer.out["name"]) == ("Output", "forward")
    assert answer.out["signature"] == "(x, scale=1.0)"


def test_autocast_in_fp16_is_for_inference(programs: Programs) -> None:
    training = programs.run("autocast=float16", code=NET + CALL)
    assert training.only[0] == "change-not-applied"
    assert "Net: gradients are computed, and in fp16 they can underflow" in training.only[1]
    code = NET + "with torch.no_grad():" + CALL.replace("\n", "\n    ")
    inference = programs.run("autocast=float16", code=code + "\nout['later'] = str(net(x)['thing'].y.dtype)")
    assert (inference.only[0], inference.out["types"][0]) == ("change-applied", "torch.float32")
    assert inference.out["thing"] == "torch.float16"
    assert inference.out["later"] == "torch.float32", "with gradients it runs as the program has it"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("with torch.autocast('cpu', dtype=torch.bfloat16):\n    net(x)", "runs it under autocast already"),
        ("net._original_forward = net.forward; net(x)", "runs it under autocast already"),
        ("net.bfloat16()(x.bfloat16())", "its parameters are bfloat16, not fp32"),
        ("torch.nn.ReLU()(x)", "the program called no module with parameters"),
    ],
)
def test_autocast_that_would_change_nothing(programs: Programs, code: str, why: str) -> None:
    found = programs.run("autocast", code=NET + code).only
    assert found[0] == "change-not-applied"
    assert why in found[1]


def test_channels_last_changes_weights_and_inputs_and_no_number(programs: Programs) -> None:
    code = NET + CALL + "out['formats'] = [*net.formats, net.conv.weight.stride()[1]]"
    plain, changed = programs.run(code=code), programs.run("channels-last", code=code)
    assert (plain.out["formats"], changed.out["formats"]) == ([False, True, 9], [True, False, 1])
    assert close(changed.out["values"], plain.out["values"], 1e-6)
    assert changed.only == (
        "change-applied",
        "channels-last: 1 root module (Net) in the memory format channels_last",
    )


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        ("torch.nn.Linear(6, 2)", "it has no 4-dimensional parameters"),
        (
            "torch.nn.ModuleList([torch.nn.Conv2d(3, 3, 1), torch.nn.Conv3d(3, 3, 1)])",
            "it has 5-dimensional parameters, too",
        ),
    ],
)
def test_channels_last_needs_images(programs: Programs, layer: str, why: str) -> None:
    code = f"""
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}
    def forward(self, x):
        return x
Net()(torch.ones(1))
"""
    assert (
        programs.run("channels-last", code=code)
        .only[1]
        .startswith(f"channels-last changed nothing: Net: {why}")
    )


def test_each_root_is_changed_once_also_in_a_forked_child(programs: Programs) -> None:
    code = NET + "net(x); changes.root_called(net, (x,), {}); out['depth'] = type(net.forward.inner).__name__"
    answer = programs.run("autocast", code=code)
    assert answer.out["depth"] == "method"
    assert "1 root module" in answer.only[1]


def test_an_error_in_a_change_does_not_reach_the_program(programs: Programs) -> None:
    broken = """
from {package}.modules import Autocast
from {package}.loaders import LoaderWorkers
def fail(*_args):
    raise ArithmeticError("our mistake")
Autocast.make = LoaderWorkers._refusal = fail
""".format(package="profrun.in_job.changes")
    code = NET + CALL + "out['batches'] = len(list(torch.utils.data.DataLoader(torch.arange(4), 2)))"
    plain = programs.run(code=code)
    answer = programs.run("autocast", "loader-workers", code=code, before=broken)
    assert answer.error is None
    assert answer.out == plain.out
    assert answer.findings == [
        (
            "change-failed",
            f"{text} failed, and the program went on without it: ArithmeticError: our mistake",
        )
        for text in ("autocast=bfloat16", "loader-workers=4")
    ]


EAGER = """
import functools
torch.compile = functools.partial(torch.compile, backend="eager")
"""


@pytest.mark.thorough  # torch.compile takes seconds
def test_a_compiled_root_computes_the_same_and_has_autocast_round_it(programs: Programs) -> None:
    code = (
        NET
        + """
class Plain(Net):
    def forward(self, x):
        return self.lin(self.conv(x).mean((2, 3)))
net = Plain()
results = [net(x) for _ in range(3)]
results[0].sum().backward()
out["values"], out["type"] = results[0].tolist(), str(results[0].dtype)
out["same"] = bool((results[0] == results[2]).all())
out["graphs"] = torch._dynamo.utils.counters["stats"]["unique_graphs"]
out["breaks"] = len(torch._dynamo.utils.counters["graph_break"])
"""
    )
    plain = programs.run(code=code)
    changed = programs.run("compile", code=code, before=EAGER)
    assert changed.only == ("change-applied", "compile=default: 1 root module (Plain) compiled")
    assert (changed.out["graphs"], changed.out["breaks"], plain.out["graphs"]) == (1, 0, 0)
    assert close(changed.out["values"], plain.out["values"], 1e-6)
    both = programs.run("compile", "autocast", "channels-last", code=code, before=EAGER)
    assert [found[0] for found in both.findings] == ["change-applied"] * 3
    assert (both.out["type"], both.out["graphs"], both.out["breaks"]) == ("torch.float32", 1, 0)
    assert both.out["values"] != plain.out["values"]
    assert close(both.out["values"], plain.out["values"], 1e-2)


@pytest.mark.thorough
def test_what_is_compiled_already_is_left_alone_and_a_failing_compiler_is_done_without(
    programs: Programs,
) -> None:
    code = "net = torch.nn.Sequential(torch.nn.Linear(2, 2))\n"
    part = code + "net[0].compile(); net(torch.ones(2))"
    assert programs.run("compile", code=part, before=EAGER).only[1] == (
        "compile=default changed nothing: Sequential: it is compiled already, or a part of it"
    )
    failing = """
import functools
def backend(graph, inputs):
    raise RuntimeError("no compiler")
torch.compile = functools.partial(torch.compile, backend=backend)
"""
    use = code + "out['shapes'] = [list(net(torch.ones(3, 2)).shape) for _ in range(2)]"
    answer = programs.run("compile", code=use, before=failing)
    assert answer.error is None
    assert answer.out["shapes"] == [[3, 2], [3, 2]]
    assert answer.only[0] == "change-failed"
    assert "no compiler" in answer.only[1]


DDP = """
import tempfile, torch.distributed as dist
file = tempfile.NamedTemporaryFile()
dist.init_process_group("gloo", init_method=f"file://{file.name}", rank=0, world_size=1)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)
    def forward(self, x):
        return self.lin(x).relu()
net = torch.nn.parallel.DistributedDataParallel(Net())
net(torch.ones(2)).sum().backward()
dist.destroy_process_group()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("torch.nn.Sequential(torch.nn.Linear(2, 2))(torch.ones(2))", "Sequential"),
        (DDP, "DistributedDataParallel"),
    ],
)
def test_modules_of_torch_itself_are_compiled_too(programs: Programs, code: str, name: str) -> None:
    """The compiler skips the frames of torch.nn."""
    answer = programs.run("compile", code=code, before=EAGER)
    assert answer.only == ("change-applied", f"compile=default: 1 root module ({name}) compiled")


@pytest.mark.thorough
def test_a_module_of_which_nothing_can_be_compiled_says_so(programs: Programs) -> None:
    code = """
class Net(torch.nn.Linear):
    @torch.compiler.disable
    def forward(self, x):
        return x
Net(2, 2)(torch.ones(2))
"""
    assert programs.run("compile", code=code, before=EAGER).only == (
        "change-not-applied",
        "compile=default changed nothing: torch.compile made no graph of Net",
    )


@pytest.mark.thorough
def test_errors_of_the_program_in_compiled_code_reach_it(programs: Programs) -> None:
    code = """
class Net(torch.nn.Linear):
    def forward(self, x):
        raise KeyError("mine")
Net(2, 2)(torch.ones(2))
"""
    answer = programs.run("compile", code=code, before=EAGER)
    assert answer.error is not None
    assert answer.error.splitlines()[-1] == "KeyError: 'mine'"
