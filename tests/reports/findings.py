"""Findings for the tests of reports: one that explains another, one of several kernels, one about the
recording."""

from __future__ import annotations

from profrun.analysis.rules.finding import FindingRow, RuleFinding

LOADER = RuleFinding(
    remedy="more workers",
    code="dataloader-stall",
    severity="critical",
    what="35.72 ms per step pass in fetching a batch",
    why="The main thread fetches the next batch while the GPU has nothing to do.",
    fix="More workers.",
    title="Steps wait for data",
    threshold="at least 5 % of the step",
    evidence={
        "dataloader_ns": 178600000,
        "share": 0.919,
        "share_of": "the step",
        "names": [],
        "slices": [7, 9],
    },
    quality=("window_edge",),
    gain_ns=35_720_000,
    step_ns=38_860_000,
    gain_share=0.919,
    work_ns=35_720_000,
    basis="unprofiled",
    side="host",
    bound="The time of the fetches.",
)
HOST = RuleFinding(
    code="overhead-bound",
    severity="warning",
    what="a step takes 38.86 ms without a profiler for 159 us of GPU work",
    why="The GPU waits for work.",
    fix="Do more work per launch.",
    title="The host cannot keep the GPU busy",
    threshold="always",
    evidence={"names": ["aten::mm"], "slices": []},
    gain_ns=3_220_000,
    step_ns=38_860_000,
    gain_share=0.083,
    work_ns=9_000_000,
    basis="unprofiled",
    side="host",
    bound="The idle time of the GPU.",
    explained_by="dataloader-stall",
    because="91.7 % of the time in which the GPU waits for the host",
    rows=tuple(FindingRow(f"aten::op{number}", number, number * 1000, "waited for") for number in range(7)),
)
IDLE = RuleFinding(
    code="low-utilization",
    severity="info",
    what="the GPU works 0.4 % of the step",
    why="It is idle.",
    fix="Look.",
    title="The GPU is idle most of the time",
    threshold="always",
    gain_ns=38_700_000,
    step_ns=38_860_000,
    gain_share=0.996,
    work_ns=38_700_000,
    basis="unprofiled",
    side="host",
    explained_by="dataloader-stall",
    because="91.7 % of the GPU's idle time",
)
FINE = RuleFinding("fine", "info", "nothing to see", "Nothing.", "None.", "All is well", "never")
FINDINGS = [LOADER, HOST, IDLE, FINE]
"""In the order in which ``diagnose`` gives them."""
