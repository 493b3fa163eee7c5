"""How root modules are found: torch's own function stays in place, and runs its own code in every forward."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

CALLS = """
import json, sys, torch
from profrun.in_job.root_module_hook import RootModuleHook

Module = torch.nn.Module
if sys.argv[1] == "patched":  # by another tool, with a function that has free variables
    def patch(original):
        def __call__(self, *args, **kwargs):
            return original(self, *args, **kwargs)
        return __call__
    Module.__call__ = patch(Module.__call__)
own = Module.__call__
own_code = own.__code__
seen = []
def note(where):
    seen.append([where, Module.__call__ is own, Module.__call__.__code__ is own_code])
class Net(Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)
    def forward(self, x, fail=False):
        note("forward")
        if fail:
            raise ArithmeticError
        return self.lin(x)
called = []
hook = RootModuleHook(torch, lambda module, args: (note("before"), called.append(type(module).__name__)),
                      lambda module, output: None)
hook.search()
net, x = Net(), torch.ones(1, 2)
net(x); note("between")
try:
    net(x, fail=True)
except ArithmeticError:
    note("between")
torch.nn.Linear(2, 2)(x)
graph = [node.op for node in torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2))).graph.nodes]
hook.settle(keep=True); note("settled")
net(x)
hook.stop()
net(x)
print(json.dumps({"seen": seen, "called": called, "graph": graph}))
"""


def calls(how: str) -> dict[str, Any]:
    """What the program saw at each moment: is ``nn.Module.__call__`` its own function, with its own code?"""
    done = subprocess.run([sys.executable, "-c", CALLS, how], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.thorough  # imports torch
def test_no_call_of_a_root_assigns_to_the_class_and_its_forward_runs_torchs_own_code() -> None:
    """Each assignment would empty Python's caches: the first steps would be 0.1 to 0.3 ms longer."""
    found = calls("plain")
    assert found["seen"] == [
        ["before", True, True], ["forward", True, True], ["between", True, False],
        ["before", True, True], ["forward", True, True], ["between", True, False],
        ["before", True, True],
        ["settled", True, True],
        ["before", True, True], ["forward", True, True],
        ["forward", True, True],
    ]  # fmt: skip
    assert found["called"] == ["Net", "Net", "Linear", "Net"], "a new root is found until it is settled"
    assert found["graph"] == ["placeholder", "call_module", "output"], "torch.fx traces as without a hook"


@pytest.mark.thorough  # imports torch
def test_roots_are_found_where_another_tool_has_replaced_the_call() -> None:
    assert calls("patched")["called"] == ["Net", "Net", "Linear", "Net"]
