"""A job with a secret of every planted kind in its command, environment, values, matrix and comments, and the
search for them in what was written."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import duckdb
import yaml

from tests.contract.planted import HEX, PLANTED, R

POSITIONAL = "positional-Zq7Rk2Vw9Xn4"
"""A value that only the name of its axis or key tells."""
OPTION = "short-Wd3Mn8Qs5Lv1"
"""Another one."""
NAMED = ("--api-key", "--password", "--auth-token", "--hf-token")
BEGAN, GO = "began", "go"
"""What the program prints first, and the file beside it for which it then waits."""
FAILURE = "the program had it in its hands"

PROGRAM = f"""
import os, sys, time, profrun
assert {POSITIONAL!r} in sys.argv and {OPTION!r} in sys.argv, "the program must get the values"
assert all("<redacted>" not in word for word in (*sys.argv, *os.environ.values()))
print({BEGAN!r}, flush=True)
while not os.path.exists({GO!r}):
    time.sleep(0.05)
for _ in range(6):
    with profrun.range("part"):
        profrun.step()
from _profrun.in_job.hook_errors import report
report(ValueError({FAILURE!r} + str(sys.argv)))
"""
"""Takes the values, waits, makes six steps, and has the hook keep an error whose words hold the values."""


def planted_job(*, matrix: bool = True, **more: Any) -> str:
    """The text of ``job.yaml``: one trial.

    Args:
        matrix: whether its values are of a matrix; else they are of a variant.
        more: further keys of the job, and others in the place of these.
    """
    plain = [text.replace("{", "{{").replace("}", "}}") for text in PLANTED.values()]
    named = [f"{name} {R}{number}" for number, name in enumerate(NAMED)] + [f"--password={R}eq", f"-p{R}"]
    words = " ".join([*map(shlex.quote, plain), *named])
    values = {"token": POSITIONAL, "passphrase": OPTION}
    spec = {
        "name": "t",
        "image": "none",
        "command": f"python3 work.py {{token}} {{passphrase}} {words} --tokens 128",
        "collectors": ["none"],
        "env": {**{f"V{n}": text for n, text in enumerate(plain)}, "MY_PASSWORD": R, "SSHPASS": R},
        **(
            {"matrix": {name: [value] for name, value in values.items()}}
            if matrix
            else {"variants": {"a": values}}
        ),
        "sample": "off",
        **more,
    }
    return f"# {PLANTED['GitHub token']}\n" + yaml.safe_dump(spec, sort_keys=False, width=10_000)


def holding(text: bytes | str, *more: str) -> list[str]:
    """The planted secrets in a text, and those of ``more``."""
    data = text.encode() if isinstance(text, str) else text
    return [word for word in (R, HEX[:32], "XN4TB6H", POSITIONAL, OPTION, *more) if word.encode() in data]


def places(run: Path, *more: str) -> tuple[dict[str, list[str]], int]:
    """(file -> the planted secrets that are in it or in its name, number of files that were searched) of a
    run: every file but the profilers' own in ``raw/`` and ``private.json``."""
    found, searched = {}, 0
    for path in sorted(run.rglob("*")):
        inner = path.relative_to(run)
        if not path.is_file() or path.name == "private.json" or inner.parts[2:3] == ("raw",):
            continue
        searched += 1
        data = path.read_bytes()
        if path.suffix == ".parquet":
            data = str(duckdb.read_parquet(str(path)).fetchall()).encode()
        if held := holding(data + str(inner).encode(), *more):
            found[str(inner)] = held
    return found, searched
