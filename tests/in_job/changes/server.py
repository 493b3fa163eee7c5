"""Runs small programs with changes, each in a forked child of one process that has imported torch.

Reads one request per line (JSON: ``changes``, ``before``, ``code``) and answers with one line: ``out``, the
dictionary that the code has filled, ``findings`` as pairs of code and text, and ``error``, the traceback of
a program that failed. Importing torch takes seconds, and what the hook changes must not outlive a test.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import Any

import torch
import torch._dynamo  # the first step of an optimizer would import it in each child

from profrun.in_job import dynamo
from profrun.in_job.changes import Changes
from profrun.in_job.config import HookConfig
from profrun.in_job.hook_process import HookProcess
from profrun.in_job.root_module_hook import RootModuleHook

_LIMIT_S = 120  # a program that hangs is a failure of its test, not of all
_kept: list[dict[str, Any]] = []
"""What programs have made, to the end of their process: whoever frees a process group of gloo holds the GIL
and waits for gloo's thread, which may itself wait for the GIL to free a gradient."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run one program, with the hook's parts that changes need."""
    process = HookProcess(HookConfig(folder="", changes=tuple(request["changes"])))
    process.torch = torch
    changes = Changes(process)
    dynamo.watch_compile(torch)
    names: dict[str, Any] = {"torch": torch, "out": {}, "changes": changes, "process": process}
    _kept.append(names)
    error = None
    try:
        exec(request["before"], names)
        hook = RootModuleHook(torch, lambda *_: None, lambda _module, _output: None, changes.root_called)
        hook.search()
        changes.compiler_imported()
        changes.attach(torch)
        exec(request["code"], names)
        hook.stop()
    except Exception:
        error = traceback.format_exc()
    changes.tell()
    findings = [[one.code, str(one)] for one in process.warnings]
    return {"out": names["out"], "findings": findings, "error": error}


def main() -> None:
    """Answer until the end of the input."""
    torch.set_num_threads(1)
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            signal.alarm(_LIMIT_S)
            answer = json.dumps(run(json.loads(line)))
            os.write(3, answer.encode() + b"\n")  # what the program prints goes elsewhere
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            os.write(3, b'{"out": {}, "findings": [], "error": "the child died"}\n')


if __name__ == "__main__":
    main()
