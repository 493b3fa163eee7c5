"""What is the user's under a real nsys: modules beside the script, and secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.nsys.kit import submit

pytestmark = pytest.mark.nsys

ROOMS = ("runner", "images", "collectors", "traces", "reports", "analysis", "jobs")
WORK = f"""
import os, sys, time
import {", ".join(ROOMS)}
import profrun
print(*(module.mine for module in ({", ".join(ROOMS)})))
assert len(os.environ["MY_TOKEN"]) == 20
for _ in range(8):
    with profrun.range("work"):
        time.sleep(0.002)
    profrun.step()
"""
SPEC = """
name: mine
command: python {folder}/work.py
collectors: [nsys]
secrets: [MY_TOKEN]
resources: {{timeout: 2m}}
"""


def test_modules_beside_the_script_and_secrets_stay_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """runner.py, jobs/, ... import as theirs; a secret is in nsys's own report only, and that is said."""
    secret = "0123456789" * 2
    monkeypatch.setenv("MY_TOKEN", secret)
    for name in ROOMS[:-1]:
        (tmp_path / f"{name}.py").write_text(f"mine = 'my-{name}'")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/__init__.py").write_text("mine = 'my-jobs'")
    (tmp_path / "work.py").write_text(WORK)
    code, document, run = submit(tmp_path, SPEC.format(folder=tmp_path))
    assert code == 0
    (trial,) = document["trials"]
    log = (run / "trials" / trial["trial"] / "stdout.log").read_text()
    assert " ".join(f"my-{name}" for name in ROOMS) in log.splitlines()
    holders = {path for path in run.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()}
    assert {path.parent.parent.name for path in holders} == {"raw"}
    (told,) = [row["fix"] for row in trial["warnings"] if row["code"] == "secrets-in-files"]
    assert "profrun bundle" in told
