"""The arguments that the docker SDK is given for a container."""

from __future__ import annotations

from profrun.backends.docker.sdk_args import sdk_arguments
from tests.backends.docker.containers import RUN, SOURCE, asked


def test_the_whole_body_of_a_cpu_trial() -> None:
    trial = f"{RUN.path}/trials/000-a-none-r1"
    assert sdk_arguments(asked()) == {
        "create": {
            "name": "profrun-t-0a1b-000-a-none-r1-65edd1",
            "image": "img:1",
            "entrypoint": ["python3"],
            "command": [f"{RUN.path}/bundle/run.py", trial],
            "user": "1001:1002",
            "hostname": "profrun",
            "working_dir": trial,
            "environment": {
                "HOME": "/tmp",
                "LOGNAME": "ada",
                "NVIDIA_VISIBLE_DEVICES": "void",
                "USER": "ada",
            },
            "labels": {
                "profrun.path": trial,
                "profrun.role": "trial",
                "profrun.run": RUN.name,
                "profrun.trial": "000-a-none-r1",
            },
            "stop_timeout": 80,
        },
        "host_config": {
            "auto_remove": True,
            "init": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "network_mode": "none",
            "mounts": [
                {"Type": "bind", "Source": str(SOURCE), "Target": str(SOURCE), "ReadOnly": True},
                {
                    "Type": "bind",
                    "Source": f"{RUN.path}/bundle",
                    "Target": f"{RUN.path}/bundle",
                    "ReadOnly": True,
                },
                {"Type": "bind", "Source": trial, "Target": trial, "ReadOnly": False},
            ],
            "log_config": {"Type": "json-file", "Config": {"max-size": "10m"}},
            "ulimits": [
                {"name": "memlock", "soft": -1, "hard": -1},
                {"name": "stack", "soft": 67108864, "hard": 67108864},
            ],
            "read_only": True,
            "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={8 << 30}"},
            "shm_size": 16 << 30,
        },
        "secrets": [],
        "env_file": None,
    }
