"""Which capabilities a container is given, for every kind of host and collector."""

from __future__ import annotations

import json

import pytest

from profrun.backends.docker.cli_args import docker_run
from profrun.backends.docker.sdk_args import sdk_arguments
from profrun.backends.privileges import needs_with
from profrun.contract.profilers import built_in, profiler
from tests.backends.docker.containers import HOSTS, OPTIONS, asked
from tests.conftest import ROOT

# host, collector -> capabilities added. Everything that is not here adds none.
CAPABILITIES = {
    ("cpu", "nsys-sample"): ("PERFMON",),
    ("nvidia", "nsys-sample"): ("PERFMON",),
    ("nvidia", "nsys-metrics"): ("PERFMON",),
    ("nvidia", "ncu"): ("PERFMON",),
    ("nvidia-old-driver", "nsys-sample"): ("PERFMON",),
    ("nvidia-old-driver", "nsys-metrics"): ("SYS_ADMIN",),
    ("nvidia-old-driver", "ncu"): ("SYS_ADMIN",),
    ("nvidia-old-engine", "nsys-sample"): ("SYS_ADMIN",),
    ("nvidia-old-engine", "nsys-metrics"): ("SYS_ADMIN",),
    ("nvidia-old-engine", "ncu"): ("SYS_ADMIN",),
    ("nvidia-open", "nsys-sample"): ("PERFMON",),
    ("amd", "nsys-sample"): ("PERFMON",),
    ("amd", "rocprof-pmc"): ("PERFMON",),
    ("amd-open", "nsys-sample"): ("PERFMON",),
}


MANY = ("cpu", "nvidia", "nvidia-old-driver", "nvidia-old-engine", "nvidia-open", "amd", "amd-open")


@pytest.mark.parametrize("collector", OPTIONS)
@pytest.mark.parametrize("host", MANY)
def test_privileges(host: str, collector: str) -> None:
    wanted = CAPABILITIES.get((host, collector), ())
    found = asked(host, collector)
    if not wanted:
        assert found.cap_add == ()
        assert found.user == "1001:1002"
        assert found.argv[0] == "python3"
        return
    # Engines give capabilities to root only: it starts as root, becomes the caller, keeps that one.
    assert set(found.cap_add) == {*wanted, "SETUID", "SETGID", "SETPCAP"}
    assert found.user == "0:0"
    keep = "-all," + ",".join(f"+{name.lower()}" for name in wanted)
    words = " ".join(found.argv[: found.argv.index("python3")])
    groups = f"--groups {','.join(map(str, found.groups))}" if found.groups else "--clear-groups"
    assert words == (
        f"setpriv --reuid 1001 --regid 1002 {groups} --inh-caps={keep} --ambient-caps={keep}"
        f" --bounding-set={keep} --"
    )


def test_a_root_caller_needs_no_setpriv() -> None:
    found = asked("root", "ncu")
    assert (found.user, found.cap_add, found.argv[0]) == ("0:0", ("PERFMON",), "python3")


def test_never_privileged() -> None:
    for host in HOSTS:
        for collector in OPTIONS:
            what = asked(host, collector)
            said = docker_run(what) + json.dumps(sdk_arguments(what))
            for word in (
                "--privileged",
                '"privileged"',
                "seccomp",
                "apparmor",
                "SYS_PTRACE",
                "--pid",
                "--ipc",
            ):
                assert word not in said


def test_options_that_are_off_need_nothing() -> None:
    for off in ("none", False, None, ""):
        options = {"sample": off, "cpuctxsw": off, "gpu_metrics": off}
        assert needs_with(profiler("nsys"), options, "nvidia") == ()
    assert {found.name for found in built_in() if found.privileges} == {"nsys", "ncu", "rocprof"}


def test_the_page_names_every_need() -> None:
    page = (ROOT / "docs/containers.md").read_text()
    rows = page[page.index("## Privileges") : page.index("## Without a registry")]
    for found in built_in():
        for need in found.privileges:
            assert f"`{found.name}`" in rows
            assert need.option is None or f"`{need.option}`" in rows
