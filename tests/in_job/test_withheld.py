"""What a profiler that keeps the environment is not shown."""

from __future__ import annotations

from pathlib import Path

from profrun.contract.command import Command
from profrun.contract.profilers import profiler
from profrun.in_job.withheld import KEPT, WITHHELD, close_files, shown_environment, withheld_names
from tests.contract.planted import PLANTED

ENVIRON = {
    "WANDB_API_KEY": "wandb",
    "HF_TOKEN": "hf",
    "INDEX": PLANTED["password in a URL"],
    "PATH": "/bin",
    "TOKENIZERS_PARALLELISM": "false",
}


def test_secrets_that_nobody_asked_for_are_withheld_and_the_others_are_named() -> None:
    command = Command("t", "r", "j", "v", "nsys", ("true",), "/", secrets=("HF_TOKEN",))
    shown, told = shown_environment(profiler("nsys"), command, ENVIRON)
    assert shown == {name: ENVIRON[name] for name in ("HF_TOKEN", "PATH", "TOKENIZERS_PARALLELISM")}
    assert [finding.code for finding in told] == [WITHHELD, KEPT]
    assert "INDEX, WANDB_API_KEY" in told[0].what
    assert "secrets: [INDEX, WANDB_API_KEY]" in told[0].fix
    assert "HF_TOKEN included" in told[1].what


def test_nothing_is_said_where_nothing_is_secret() -> None:
    assert withheld_names({"PATH": "/bin", "SLURM_JOB_ID": "3"}, ()) == []


def test_only_the_owner_may_read_what_is_kept(tmp_path: Path) -> None:
    raw = tmp_path / "rank0"
    raw.mkdir()
    (raw / "report.nsys-rep").write_bytes(b"x")
    other = tmp_path / "other"
    other.write_text("x")
    other.chmod(0o644)
    (raw / "link").symlink_to(other)
    close_files(raw)
    assert raw.stat().st_mode & 0o777 == 0o700
    assert (raw / "report.nsys-rep").stat().st_mode & 0o777 == 0o600
    assert other.stat().st_mode & 0o777 == 0o644
