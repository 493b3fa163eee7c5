"""A stand-in for Proton without a GPU: sessions, scopes and files as triton 3.6 has them.

``launch`` stands for a kernel: it is recorded by every session under the scopes that are open, 1 us long and
10 us after the one before. A session that is not finalized leaves no file, and an empty trace an empty file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_sessions: dict[int, dict[str, Any]] = {}
_scopes: list[str] = []
_started = 0


def start(
    name: str,
    *,
    context: str = "shadow",
    data: str = "tree",
    backend: str | None = None,
    hook: str | None = None,
) -> int:
    """Start a session; returns its number."""
    global _started
    _sessions[_started] = {"name": name, "data": data, "events": []}
    _started += 1
    return _started - 1


def finalize(session: int) -> None:
    """End a session and write its file."""
    ended = _sessions.pop(session)
    base, events = str(ended["name"]), ended["events"]
    if ended["data"] == "trace":
        text = json.dumps({"displayTimeUnit": "us", "traceEvents": events}, separators=(",", ":"))
        Path(base + ".chrome_trace").write_text(text + "\n" if events else "")
    else:
        Path(base + ".hatchet").write_text("\n" + json.dumps(_tree(events), indent=4, sort_keys=True))


def _tree(events: list[dict[str, Any]]) -> list[object]:
    """The root with a node for each name of the call paths, and the GPUs."""

    def node(name: str) -> dict[str, Any]:
        return {"frame": {"name": name, "type": "function"}, "metrics": {}, "children": []}

    root = node("ROOT")
    for event in events:
        here = root
        for name in event["args"]["call_stack"][1:]:
            found = next((child for child in here["children"] if child["frame"]["name"] == name), None)
            if found is None:
                found = node(name)
                here["children"].append(found)
            here = found
        sums = here["metrics"] or {"count": 0, "time (ns)": 0, "device_id": "0", "device_type": "CUDA"}
        here["metrics"] = sums | {"count": sums["count"] + 1, "time (ns)": sums["time (ns)"] + 1000}
    return [root, {"CUDA": {"0": {"arch": "90", "num_sms": 132}}} if events else {}]


def launch(name: str) -> None:
    """A kernel."""
    for session in _sessions.values():
        args = {"call_stack": ["ROOT", *_scopes, name]}
        times = {"dur": 1.0, "ts": 10.0 * len(session["events"])}
        session["events"].append({"args": args, "cat": "kernel", "name": name, "ph": "X", "tid": 7, **times})


class scope:
    """A scope round kernels."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> scope:
        _scopes.append(self.name)
        return self

    def __exit__(self, *_error: object) -> None:
        _scopes.remove(self.name)
