"""Versions as tools state them, and capabilities."""

from __future__ import annotations

from pathlib import Path

from profrun.contract.machine import CAP_PERFMON, CAP_SYS_ADMIN, Machine, rocm_version, version_in


def test_versions_as_tools_state_them() -> None:
    assert version_in("NVIDIA Nsight Systems version 2024.2.3.38-242334140272v0") == (2024, 2, 3)
    assert version_in("Version 2025.3.1.0 (build 36398880)") == (2025, 3, 1)
    assert version_in("none") is None


def test_rocms_version_is_that_of_the_first_installation(tmp_path: Path) -> None:
    (tmp_path / "b/.info").mkdir(parents=True)
    (tmp_path / "b/.info/version").write_text("6.4.1-83\n")
    assert rocm_version(tmp_path / "a", tmp_path / "b") == (6, 4, 1)
    assert rocm_version(tmp_path / "a") is None


def test_one_of_the_capabilities_is_enough() -> None:
    assert Machine(capabilities=1 << CAP_PERFMON).has(CAP_SYS_ADMIN, CAP_PERFMON)
    assert not Machine().has(CAP_SYS_ADMIN, CAP_PERFMON)
