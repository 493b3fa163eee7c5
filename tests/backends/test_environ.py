"""Secrets and variables of a file, taken from the caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.backends.environ import secret_env
from profrun.errors import UsageError
from profrun.jobs.load import load_text

SPEC = "name: t\ncommand: python x.py\n"


def test_secrets_come_from_the_caller_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text("# mine\n\nA=1\nB= two words \nC=\n")
    job = load_text(SPEC + "env_file: my.env\nsecrets: [B, D]\n")
    assert secret_env(job, tmp_path, {"D": "4", "E": "5"}) == {
        "A": "1",
        "B": " two words ",
        "C": "",
        "D": "4",
    }


@pytest.mark.parametrize(
    ("extra", "content", "said"),
    [
        ("secrets: [D]", None, "the job's secrets D are not set: .*export D="),
        ("env_file: my.env", None, r"env_file .*my\.env cannot be read: No such file"),
        ("env_file: my.env", "A=1\nB 2\n", r"my\.env:2: not a NAME=value line"),
    ],
)
def test_missing_secrets_are_said_before_anything_starts(
    tmp_path: Path, extra: str, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "my.env").write_text(content)
    with pytest.raises(UsageError, match=said):
        secret_env(load_text(f"{SPEC}{extra}\n"), tmp_path, {})
