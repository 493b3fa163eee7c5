"""The hook in real programs with CPU torch: steps, window, ranges, torch's own table, ways out.

Importing torch costs seconds, so each program shows several things; each starts when it is first asked for.
"""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.trace.modules import module_tree
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.in_job.kit import Done, Trial, fake_nsys

ENV = {"OMP_NUM_THREADS": "1"}
MODULES = {"modules": 2, "steps": "auto"}


def trace_of(done: Done, rank: int = 0) -> list[dict[str, Any]]:
    """Complete events of the rank's only torch trace."""
    (path,) = traces_of(done, rank)
    assert re.fullmatch(r"[^_]+_\d+\.\d+\.pt\.trace\.json\.gz", path.name), "as TensorBoard wants it"
    return complete_events(path)


def traces_of(done: Done, rank: int = 0) -> list[Path]:
    """The rank's torch traces: one of each cycle."""
    return sorted((done.folder / f"raw/rank{rank}").glob("*.pt.trace.json.gz"))


def complete_events(path: Path) -> list[dict[str, Any]]:
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def user_ranges(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [event for event in events if event.get("cat") == "user_annotation"]
    return sorted(found, key=lambda event: (event["ts"], -event["dur"]))


def inside(events: list[dict[str, Any]], inner: str, outer: str) -> bool:
    """Every slice named ``inner`` lies in one named ``outer`` of the same thread."""
    outers = [event for event in events if event["name"] == outer]
    inners = [event for event in events if event["name"] == inner]
    return bool(inners) and all(
        any(
            big["tid"] == small["tid"]
            and big["ts"] <= small["ts"]
            and small["ts"] + small["dur"] <= big["ts"] + big["dur"]
            for big in outers
        )
        for small in inners
    )


TRAIN = """
import torch, profrun
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(8, 8)
        self.calls = 0
    def forward(self, x, again=1):
        self.calls += 1
        if self.calls % 11 == 0 and again:
            raise RuntimeError("now and then")
        y = self.lin(x)
        return self(y, again - 1) if again else y   # re-entrant
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Block(), torch.nn.ReLU(), torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.c(self.b(self.a(x))).add_(1)     # in place on an output: full backward hooks break this
net = Net()
ema = torch.nn.Linear(8, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
opt_step = torch.compile(opt.step, backend="eager")   # its end, and the window's edges, lie in dynamo's reach
other = torch.optim.Adam(ema.parameters())
loss = torch.nn.MSELoss()
failed = 0
for step in range(7):
    for micro in range(2):
        with profrun.range("forward"):
            try:
                out = net(torch.randn(4, 8))
            except RuntimeError as error:
                assert "now and then" in str(error)
                failed += 1
                continue
        loss(out, torch.zeros(4, 8)).backward()
    with profrun.range("optimizer"):
        opt_step(); other.step()
    with torch.no_grad():
        net.b(torch.randn(2, 8)); net.c(torch.randn(2, 8))
print("failed", failed)
print("breaks", [key.split(chr(10))[0] for key in torch._dynamo.utils.counters["graph_break"]])
p = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
with p:
    net.c(torch.randn(4, 8))
print("own profiler saw", len(p.key_averages()))
"""


@pytest.mark.thorough
def test_training_with_accumulation_exceptions_and_two_optimizers(jobs: Jobs) -> None:
    done = jobs.done("train")
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert done.exit["steps"] == {"how": "optimizer", "count": 7}
    assert int(done.log().split()[1]) > 0, "a forward must have failed for this to show anything"
    breaks = done.log().splitlines()[1]
    assert breaks == "breaks ['Call to `torch._dynamo.graph_break()`']", "torch's own, and none of ours"
    events = trace_of(done)
    named = Counter(event["name"] for event in user_ranges(events))
    assert [name for name in named if name.startswith("ProfilerStep#")] == [
        "ProfilerStep#2",
        "ProfilerStep#3",
    ]
    assert named["forward"] == 4
    assert named["optimizer"] == 2, "one piece each although the step ends inside"
    _check_nesting(events, named)
    _check_table(done, events)
    assert "own profiler saw 0" in done.log()
    assert any("torch runs one profiler at a time" in text for text in done.warnings)
    assert done.steps()["ranges_emitted"] == done.exit["ranges_emitted"]
    assert done.provenance["torch"]["version"]
    assert any(line.startswith("torch==") for line in done.provenance["packages"])


def _check_nesting(events: list[dict[str, Any]], named: Counter[str]) -> None:
    failed = named["nn.Module: root (Net)"] - named["nn.Module: root (Net) backward"]
    assert named["nn.Module: root (Net)"] == 4
    assert failed == 1, "one of the four forwards in the window failed, and its range was closed all the same"
    assert named["nn.Module: a (Block)"] == 4 + 3, "re-entrant: twice in each good forward"
    assert named["nn.Module: c (Linear) backward"] == 3
    assert inside(events, "nn.Module: a.lin (Linear)", "nn.Module: a (Block)")
    assert inside(events, "nn.Module: a (Block)", "nn.Module: root (Net)")
    assert inside(events, "nn.Module: root (Net)", "forward")
    assert inside(events, "nn.Module: c (Linear) backward", "nn.Module: root (Net) backward")
    assert inside(events, "nn.Module: a.lin (Linear) backward", "nn.Module: a (Block) backward")
    assert inside(events, "aten::relu", "nn.Module: b (ReLU)")
    ours = [event for event in user_ranges(events) if not event["name"].startswith("ProfilerStep")]
    open_until: list[tuple[float, float]] = []
    for event in ours:  # ranges either nest or follow each other
        start, end = event["ts"], event["ts"] + event["dur"]
        open_until = [(low, high) for low, high in open_until if high > start]
        assert all(end <= high for _, high in open_until), event
        open_until.append((start, end))


def _check_table(done: Done, events: list[dict[str, Any]]) -> None:
    """torch's table of the same profile: its counts are those of the trace, its total is its sum."""
    (path,) = (done.folder / "raw/rank0").glob("*.key_averages.json")
    table = json.loads(path.read_text())
    assert table["unit"] == "us"
    assert path.name.startswith(table["trace"])
    rows = {row["key"]: row for row in table["rows"]}
    counted = Counter(event["name"] for event in events if event.get("cat") == "cpu_op")
    for name in ("aten::addmm", "aten::relu", "aten::mse_loss"):
        assert rows[name]["count"] == counted[name] > 0
        durations = sum(event["dur"] for event in events if event["name"] == name)
        assert abs(rows[name]["cpu"] - durations) < 0.01 * len(events)


COMPILED = """
import warnings, torch
from torch._dynamo.testing import CompileCounter
warnings.simplefilter("error")
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    def forward(self, x):
        return self.b(self.a(x))
torch.manual_seed(0)
eager = Net().eval()
counts = []
def check(model, counter):
    for _ in range(6):
        x = torch.randn(4, 8)
        with torch.no_grad():
            assert torch.equal(model(x), eager(x))
    counts.append(counter.frame_count)
def copy():
    net = Net().eval(); net.load_state_dict(eager.state_dict()); return net
counter = CompileCounter(); check(torch.compile(copy(), backend=counter), counter)
counter = CompileCounter(); net = copy(); net.compile(backend=counter); check(net, counter)
counter = CompileCounter(); net = copy(); check(torch.compile(lambda x: net(x), backend=counter), counter)
counters = torch._dynamo.utils.counters
print(counts, dict(counters["graph_break"]), dict(counters["recompiles"]))
print(torch.nn.Module.__call__ is torch._dynamo.utils.unpatched_nn_module_call)
"""


@pytest.mark.thorough
def test_compiled_modules_keep_one_graph_and_have_one_range(jobs: Jobs) -> None:
    done = jobs.done("compiled")
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert done.log().splitlines() == ["[1, 1, 1] {} {}", "True"]
    assert done.exit["steps"]["how"] == "module"
    assert done.exit["steps"]["count"] >= 12, "one a pass of the first two loops"
    events = trace_of(done)
    named = Counter(event["name"] for event in user_ranges(events))
    assert named["nn.Module: root (OptimizedModule)"] == 4, "steps 2 to 5 of the first loop"
    assert named["nn.Module: b.1 (ReLU)"] == named["nn.Module: a (Linear)"] > 0
    assert inside(events, "nn.Module: b.1 (ReLU)", "nn.Module: root (Net)")


INFERENCE = """
import os, sys, time
import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.1))
transform = torch.nn.Softmax(dim=-1)     # a module without parameters is no model
how = sys.argv[1]
for step in range(int(sys.argv[2])):
    for _ in range(3):
        transform(torch.randn(2, 8))
    net(torch.randn(4, 8))
    if step == 3 and how == "os._exit":
        os._exit(4)
    if step == 3 and how == "raise":
        raise torch.OutOfMemoryError("CUDA out of memory")
    if step == 3 and how == "sleep":
        print("sleeping", flush=True); time.sleep(60)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "end", "memory"),
    [
        ("raised", ("failed", 1, None), True),
        ("ended", ("timeout", None, "SIGTERM"), False),
        ("left", ("failed", 4, None), False),
    ],
    ids=["raised", "ended", "left"],
)
def test_the_window_is_kept_whichever_way_the_program_ends(
    jobs: Jobs, name: str, end: tuple[str, int | None, str | None], memory: bool
) -> None:
    """An exception, SIGTERM and os._exit in the middle of the window; python -m and a '#!' script."""
    if name == "ended":
        sleeper, process = jobs.start(name)
        sleeper.wait_for("sleeping\n")
        process.send_signal(signal.SIGTERM)
    trial = jobs.done(name)
    found = trial.exit
    assert (found["state"], found["exit_code"], found["signal"]) == end, found["reason"]
    names = {event["name"] for event in user_ranges(trace_of(trial))}
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= names
    assert [row["window"] for row in trial.steps()["steps"]][:3] == ["wait", "warmup", "active"]
    assert trial.steps()["how"] == "module"
    assert trial.steps()["out_of_memory"] is memory
    assert not memory or "OutOfMemoryError" in found["reason"]


@pytest.mark.thorough  # a torch program more; without torch: test_submit's schedule longer than the program
def test_a_schedule_longer_than_the_program_says_how_many_steps_there_were(jobs: Jobs) -> None:
    done = jobs.done("short")
    assert (done.exit["state"], done.exit["exit_code"], done.code) == ("failed", 0, 1)
    assert "it made 2 steps" in done.exit["reason"]
    assert "run at least 4 steps or set a smaller schedule" in done.exit["reason"]
    assert len(done.steps()["steps"]) == 2, "what was timed is kept"


LATE = """
import pathlib, time, torch
net = torch.nn.Linear(8, 8)
for step in range(9):
    net(torch.randn(4, 8))
    if step == 1:
        time.sleep(2.1)   # the file of step times is due
    if 2 <= step <= 3:
        print(step, len(list(pathlib.Path.cwd().parent.rglob("steps.json"))))
"""


@pytest.mark.thorough  # a torch program more
def test_a_recorded_step_has_its_root_module_and_no_time_of_the_hooks_own_file(jobs: Jobs) -> None:
    """The window opens before the known root modules are settled, and when step times are to be written."""
    done = jobs.done("late")
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert done.log().splitlines() == ["2 0", "3 0"], "nothing was written while steps were recorded"
    events = trace_of(done)
    for number in range(2, 6):
        (step,) = [event for event in events if event["name"] == f"ProfilerStep#{number}"]
        end = step["ts"] + step["dur"]
        mine = [event for event in events if step["ts"] <= event["ts"] < end]
        assert Counter(event["name"] for event in mine)["nn.Module: root (Linear)"] == 1, number
        assert inside(mine, "aten::linear", "nn.Module: root (Linear)")


SETTLED = """
import sys, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(8, 8)
    def forward(self, x):
        y = self.lin(x)
        if step == 7:
            raise ArithmeticError
        return y
net = Net()
if "compiled" in sys.argv:
    net.compile(backend="eager")
for step in range(16):
    try:
        with torch.no_grad():
            net(torch.randn(4, 8))
    except ArithmeticError:
        pass
"""


@pytest.mark.thorough  # two torch programs
@pytest.mark.parametrize("name", ["settled", "settled-compiled"])
def test_each_recorded_step_has_one_range_of_its_root_where_the_window_opens_in_the_roots_own_hook(
    jobs: Jobs, name: str
) -> None:
    """Steps 6, 7 and 12, 13 are recorded; the forward of step 7 raises."""
    done = jobs.done(name)
    assert done.exit["state"] == "finished", done.exit["reason"]
    events = [event for path in traces_of(done) for event in complete_events(path)]
    for number in (6, 7, 12, 13):
        (step,) = [event for event in events if event["name"] == f"ProfilerStep#{number}"]
        end = step["ts"] + step["dur"]
        mine = [event for event in events if step["ts"] <= event["ts"] < end]
        roots = [event for event in mine if event["name"] == "nn.Module: root (Net)"]
        assert len(roots) == 1, number
        assert roots[0]["ts"] + roots[0]["dur"] <= end
        assert inside(mine, "aten::linear", "nn.Module: root (Net)")


NSYS = """
import torch, profrun
net = torch.nn.Linear(4, 4)
with torch.profiler.profile() as own:     # asks for the GPU too where there is one
    for _ in range(4):
        with torch.profiler.record_function("mine"):
            net(torch.randn(2, 4))
        profrun.step()
assert own.key_averages().total_average().count > 0
"""


@pytest.mark.thorough
def test_under_nsys_record_function_is_emitted_and_lossy_nvtx_is_told(jobs: Jobs) -> None:
    done = jobs.done("nsys")
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert done.exit["steps"] == {"how": "explicit", "count": 4}
    assert done.steps()["emitter"] == "nvtx"
    assert done.exit["ranges_emitted"] >= 4 + 4 + 4, "steps, modules and record_function"
    assert any("ranges will be lost" in text for text in done.warnings)


DISTRIBUTED = """
import os, torch, torch.distributed as dist
class Data(torch.utils.data.Dataset):
    net = torch.nn.Linear(4, 4)               # a model in a worker: noted, never profiled
    def __len__(self): return 12
    def __getitem__(self, index):
        return self.net(torch.ones(4)).detach()
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
    model(batch).sum().backward()
    opt.step(); opt.zero_grad()
dist.destroy_process_group()
"""


STEADY = """
import time
now = time.perf_counter_ns()
time.perf_counter_ns = lambda: now
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(400):
    model(torch.ones(2, 4)).sum().backward()
    now += 8_000_000 if step < 30 else 10_000_000 + dist.get_rank()
    opt.step(); opt.zero_grad()
dist.destroy_process_group()
"""


@pytest.mark.thorough  # three imports of torch; the same with made processes: test_window_placer
def test_two_ranks_open_a_window_that_waits_for_the_steady_state_at_the_same_step(jobs: Jobs) -> None:
    done = jobs.done("steady")
    assert done.exit["state"] == "finished", done.exit["reason"]
    found = []
    for rank in (0, 1):
        active = [row["step"] for row in done.steps(rank)["steps"] if row["window"] == "active"]
        names = {event["name"] for event in user_ranges(trace_of(done, rank))}
        assert {name for name in names if name.startswith("ProfilerStep#")} == {
            f"ProfilerStep#{step}" for step in active
        }
        found.append(active)
    assert found[0] == found[1]
    assert 300 <= found[0][0] <= 330, "200 steps of 10 ms, and 1 s ahead"
    (opened,) = (row["what"] for row in done.exit["warnings"] if row["code"] == "window-opened")
    assert opened.startswith(f"the window opens at step {found[0][0]}, after 1.9")


@pytest.mark.thorough  # three imports of torch; ranks without it: test_ranks
def test_torchrun_gives_a_trace_a_rank_and_notes_the_other_processes(jobs: Jobs) -> None:
    done = jobs.done("torchrun")
    assert done.exit["state"] == "finished", done.exit["reason"]
    pids = set()
    for rank in (0, 1):
        steps = done.steps(rank)
        assert (steps["rank"], steps["local_rank"], steps["world_size"]) == (rank, rank, 2)
        assert (steps["how"], len(steps["steps"])) == ("optimizer", 6)
        pids.add(steps["pid"])
        names = {event["name"] for event in user_ranges(trace_of(done, rank))}
        assert {"ProfilerStep#2", "nn.Module: root (Sequential)", "nn.Module: 0 (Linear)"} <= names
    assert len(pids) == 2
    assert {row["state"] for row in done.exit["artefacts"]} == {"whole"}
    roles = Counter(row["role"] for row in done.provenance["processes"])
    assert (roles["workload"], roles["launcher"], roles["dataloader worker"]) == (2, 1, 2)


BLOCKS = """
import torch, profrun
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(8, 8)))
    def forward(self, x):
        return x + self.mlp(x)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.h = torch.nn.ModuleList(Block() for _ in range(3))
    def forward(self, x):
        for block in self.h:
            x = block(x)
        return x
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(6):
    net(torch.randn(4, 8)).sum().backward()
    opt.step(); opt.zero_grad()
"""


@pytest.mark.thorough
def test_torch_trials_have_modules_without_being_asked_and_their_backward_is_linked(
    jobs: Jobs, tmp_path: Path
) -> None:
    """Depth 3; the backward has no ranges, and belongs to the modules by torch's sequence numbers."""
    done = jobs.done("blocks")
    assert done.exit["state"] == "finished", done.exit["reason"]
    names = {event["name"] for event in user_ranges(trace_of(done))}
    assert "nn.Module: h.0.mlp.0 (Sequential)" in names
    assert "nn.Module: h.0.mlp.0.0 (Linear)" not in names, "depth 4"
    assert not any("ModuleList" in name or name.endswith(" backward") for name in names)
    (recorded,) = (done.folder / "raw/rank0").glob("*.pt.trace.json.gz")
    normalize([recorded], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        tree = module_tree(trace)
    assert tree is not None
    (root,) = tree.roots
    (block,) = root.children
    (mlp,) = block.children
    assert (block.name, block.modules, block.calls) == ("h.*", 3, 3 * tree.steps)
    assert 0 < mlp.host_backward_ns <= block.host_backward_ns <= root.host_backward_ns < tree.host_ns
    assert root.host_ns == root.own_host_ns + block.host_ns


class Jobs:
    """The programs of this module, each started once, when it is asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.started: dict[str, tuple[Trial, subprocess.Popen[str]]] = {}
        self.finished: dict[str, Done] = {}

    def done(self, name: str) -> Done:
        """A program's finished trial."""
        if name not in self.finished:
            trial, process = self.start(name)
            self.finished[name] = trial.finish(process)
        return self.finished[name]

    def start(self, name: str) -> tuple[Trial, subprocess.Popen[str]]:
        """A program's trial and the wrapper's process."""
        if name not in self.started:
            self._start(name)
        return self.started[name]

    def _start(self, name: str) -> None:
        root = self.root / name
        root.mkdir()
        argv, script, more = self._program(name)
        values = {"collector": "torch", "ranges": MODULES, "timeout_s": 200.0} | more
        trial = Trial(root, argv, script, **values)
        self.started[name] = trial, trial.start({**ENV, **fake_nsys(root, 0.0)})

    def _program(self, name: str) -> tuple[list[str], str | None, dict[str, Any]]:
        """argv, source of job.py and what else the trial's command says."""
        python = [sys.executable, "job.py"]
        long = {"wait": 1, "warmup": 1, "active": 7, "repeat": 1, "skip_first": 0}
        twice = {"wait": 3, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 2}
        run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "job.py"]
        programs: dict[str, tuple[list[str], str | None, dict[str, Any]]] = {
            "train": (python, TRAIN, {"options": {"record_shapes": True}}),
            "compiled": (python, COMPILED, {"schedule": long}),
            "left": ([sys.executable, "-m", "job", "os._exit", "9"], INFERENCE, {}),
            "raised": ([self._script(), "raise", "9"], None, {}),
            "ended": ([*python, "sleep", "9"], INFERENCE, {}),
            "short": ([*python, "end", "2"], INFERENCE, {}),
            "settled": (python, SETTLED, {"schedule": twice}),
            "settled-compiled": ([*python, "compiled"], SETTLED, {"schedule": twice}),
            "late": (python, LATE, {"schedule": {**long, "active": 4}}),
            "nsys": (python, NSYS, {"collector": "nsys"}),
            "blocks": (python, BLOCKS, {"ranges": {"steps": "auto"}}),
            "steady": ([sys.executable, *run], STEADY, {"ranks": 2, "schedule": {"wait": "steady"}}),
            "torchrun": ([sys.executable, *run], DISTRIBUTED, {"ranks": 2}),
        }
        return programs[name]

    def _script(self) -> str:
        path = self.root / "tool"
        path.write_text(f"#!{sys.executable}\n{INFERENCE}")
        path.chmod(0o755)
        return str(path)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return Jobs(tmp_path_factory.mktemp("jobs"))
