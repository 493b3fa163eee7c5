"""Optimizers: fused and foreach give the same parameters, and zero_grad removes gradients."""

from __future__ import annotations

import pytest

from tests.in_job.changes.conftest import Programs

STEPS = """
torch.manual_seed(1)
net = torch.nn.Linear(5, 3)
class Own(torch.optim.{name}):
    pass
optimizer = Own(net.parameters(), 0.1{more})     # parameters come from a generator
data = torch.rand(8, 5)
for _ in range(4):
    optimizer.zero_grad()
    net(data).square().sum().backward()
    optimizer.step()
out["weights"] = net.weight.tolist()
out["flags"] = [optimizer.param_groups[0].get("fused"), optimizer.param_groups[0].get("foreach")]
"""


@pytest.mark.parametrize(
    ("change", "name", "more", "flags"),
    [
        ("fused-optimizer", "Adam", "", [True, None]),
        ("fused-optimizer", "AdamW", ", fused=False, foreach=True", [True, None]),
        ("fused-optimizer", "SGD", ", momentum=0.9", [True, None]),
        ("foreach-optimizer", "AdamW", ", fused=True", [None, True]),
        ("foreach-optimizer", "RMSprop", "", [None, True]),
    ],
)
def test_parameters_are_equal_to_rounding(
    programs: Programs, change: str, name: str, more: str, flags: list[bool | None]
) -> None:
    code = STEPS.format(name=name, more=more)
    plain, changed = programs.run(code=code), programs.run(change, code=code)
    argument = change.partition("-")[0]
    assert changed.only == ("change-applied", f"{change}: 1 optimizer got {argument}=True (Own)")
    assert changed.out["flags"] == flags
    for row, expected in zip(changed.out["weights"], plain.out["weights"], strict=True):
        assert row == pytest.approx(expected, abs=1e-6)


REFUSED = """
whole = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
group = {"params": (p for p in [whole]), "lr": 0.5}
optimizer = torch.optim.Adam([group], lr=0.1)
out["found"] = [optimizer.param_groups[0] is group, group["fused"], group["lr"], len(group["params"])]
"""


def test_what_torch_cannot_fuse_is_made_as_the_program_wants_it(programs: Programs) -> None:
    """torch itself would refuse only at the first step."""
    answer = programs.run("fused-optimizer", code=REFUSED)
    code, text = answer.only
    assert code == "change-not-applied"
    assert text.startswith(
        "fused-optimizer changed nothing: Adam: its parameters are complex64, not floating-point numbers"
    )
    assert answer.out["found"] == [True, None, 0.5, 1]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], fused=True)", "has fused=True already"),
        ("torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], differentiable=True)", "is differentiable"),
        ("torch.optim.RMSprop([torch.nn.Parameter(torch.ones(1))])", "no optimizer that can be fused"),
    ],
)
def test_what_is_left_alone_says_why(programs: Programs, code: str, why: str) -> None:
    found = programs.run("fused-optimizer", code=code).only
    assert found[0] == "change-not-applied"
    assert why in found[1]


RAISES = """
own = torch.optim.Adam.__init__
def strict(self, params, lr=0.1, foreach=None, fused=None):
    own(self, params, lr, foreach=foreach, fused=fused)
    if fused:
        raise RuntimeError("not here")
torch.optim.Adam.__init__ = strict
"""


def test_after_a_failed_attempt_the_groups_of_the_program_are_what_they_were(programs: Programs) -> None:
    """torch puts its defaults into the groups."""
    code = """
group = {"params": (p for p in [torch.nn.Parameter(torch.ones(1))]), "lr": 0.5}
optimizer = torch.optim.Adam([group], lr=0.1)
out["found"] = [optimizer.param_groups[0] is group, group["fused"], group["lr"], len(group["params"])]
"""
    answer = programs.run("fused-optimizer", code=code, before=RAISES)
    assert answer.only[1] == "fused-optimizer changed nothing: Adam does not take it: not here"
    assert answer.out["found"] == [True, None, 0.5, 1]


def test_a_group_that_says_itself_whether_it_is_fused_keeps_that(programs: Programs) -> None:
    code = """
a, b = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
optimizer = torch.optim.SGD([{"params": [a], "fused": False}, {"params": [b]}], lr=0.1)
out["found"] = [group["fused"] for group in optimizer.param_groups]
"""
    assert programs.run("fused-optimizer", code=code).out["found"] == [False, True]


def test_a_wrong_call_fails_as_it_does_without_changes(programs: Programs) -> None:
    code = "torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], lr=-1.0)"
    plain, changed = programs.run(code=code), programs.run("fused-optimizer", code=code)
    assert plain.error is not None
    assert changed.error == plain.error or changed.error is not None
    assert changed.error.splitlines()[-1] == plain.error.splitlines()[-1]
    assert "During handling" not in changed.error


ZERO = """
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for clear in (lambda: optimizer.zero_grad({first}), lambda: net.zero_grad(set_to_none={second})):
    net(torch.ones(2)).sum().backward()
    clear()
    out.setdefault("found", []).append(net.weight.grad is None)
"""


def test_zero_grad_removes_gradients(programs: Programs) -> None:
    plain = programs.run(code=ZERO.format(first=False, second=False))
    changed = programs.run("set-to-none", code=ZERO.format(first=False, second=False))
    assert (plain.out["found"], changed.out["found"]) == ([False, False], [True, True])
    assert changed.only == ("change-applied", "set-to-none: 2 calls of zero_grad() removed the gradients")
    already = programs.run("set-to-none", code=ZERO.format(first="", second=True))
    assert already.only == (
        "change-not-applied",
        "set-to-none changed nothing: zero_grad() removes the gradients already",
    )
