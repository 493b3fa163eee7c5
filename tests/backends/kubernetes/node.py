"""What a cluster does behind its API, small: a Job controller, and a node that starts pods as processes.

A container's command runs for real, as the first process of a PID namespace where this machine allows it: the
claim is a folder that has the same path here, and the image is this machine.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.backends.kubernetes.server import Server

INDEX = "batch.kubernetes.io/job-completion-index"


def own_pids() -> list[str]:
    """Words that start a command as first process of a PID namespace; none where this user may not.

    The namespace has a /proc of its own, as in a pod, where this user may mount one. Without it a wrapper
    takes all processes of this machine for what its command has left, and waits 14 s for them to end.
    """
    users = ((), ("--user", "--map-root-user"))
    for proc, user in itertools.product((("--mount-proc",), ()), users):
        argv = ["unshare", *user, "--pid", "--fork", *proc]
        with contextlib.suppress(FileNotFoundError):
            if subprocess.run([*argv, "true"], capture_output=True, check=False).returncode == 0:
                return argv
    return []


class Cluster:
    """Runs the Jobs of a server until ``close``."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.first = own_pids()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.lost: set[str] = set()
        self._stop = False
        server.on_delete = self._on_delete
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Kill what still runs."""
        self._stop = True
        self.thread.join()
        for process in self.processes.values():
            process.kill()
            process.wait()

    def lose(self, pod: str) -> None:
        """The pod's node is gone: its processes die without a word, and Kubernetes notices."""
        self.lost.add(pod)
        self._signal(pod, signal.SIGKILL)

    def preempt(self, pod: str) -> None:
        """A pod of a higher priority wants the node: this one is asked to end, and may write what it has."""
        self.lost.add(pod)
        self._signal(pod, signal.SIGTERM)

    def _loop(self) -> None:
        while not self._stop:
            with self.server.changed:
                for job in self.server.of("jobs"):
                    self._reconcile(job)
            time.sleep(0.02)

    def _reconcile(self, job: dict[str, Any]) -> None:
        """The Job controller: enough pods, and what became of each index."""
        status = job.setdefault("status", {})
        if status.get("conditions") or job["spec"].get("suspend"):
            return
        container = job["spec"]["template"]["spec"]["containers"][0]
        wanted = [source["secretRef"]["name"] for source in container.get("envFrom", ())]
        if any(("secrets", name) not in self.server.objects for name in wanted):
            return  # CreateContainerConfigError until it comes
        pods = [
            pod
            for pod in self.server.of("pods")
            if pod["metadata"]["labels"]["job-name"] == job["metadata"]["name"]
        ]
        active = [pod for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
        for pod in pods:
            self._count(job, pod)
        done = status.setdefault("done", {})
        for index in range(job["spec"]["completions"]):
            taken = any(pod["metadata"]["annotations"][INDEX] == str(index) for pod in active)
            if str(index) not in done and not taken and len(active) < job["spec"]["parallelism"]:
                active.append(self._pod(job, index))
        status["active"] = len(active)
        ended = sorted(done.items(), key=lambda item: int(item[0]))  # by index, not by who ended first
        status["completedIndexes"] = ",".join(index for index, word in ended if word == "complete")
        status["failedIndexes"] = ",".join(index for index, word in ended if word == "failed")
        if len(done) == job["spec"]["completions"] and "conditions" not in status:
            bad = status["failedIndexes"]
            status["conditions"] = [
                {"type": "Failed" if bad else "Complete", "status": "True", "reason": "FailedIndexes"}
            ]

    def _count(self, job: dict[str, Any], pod: dict[str, Any]) -> None:
        """podFailurePolicy, as the Job states it."""
        if pod["metadata"].get("counted") or pod["status"]["phase"] not in ("Succeeded", "Failed"):
            return
        pod["metadata"]["counted"] = True
        index = pod["metadata"]["annotations"][INDEX]
        code = pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
        if code == 0:
            job["status"].setdefault("done", {})[index] = "complete"
            return
        for rule in job["spec"]["podFailurePolicy"]["rules"]:
            codes = rule.get("onExitCodes")
            fits = codes and (code in codes["values"]) == (codes["operator"] == "In")
            if "onPodConditions" in rule:
                fits = bool(pod["status"].get("conditions"))
            if fits and rule["action"] == "FailJob":
                job["status"]["conditions"] = [
                    {
                        "type": "Failed",
                        "status": "True",
                        "reason": "PodFailurePolicy",
                        "message": f"exit code {code}",
                    }
                ]
            if fits and rule["action"] != "Ignore":
                job["status"].setdefault("done", {})[index] = "failed"
            if fits:
                return

    def _pod(self, job: dict[str, Any], index: int) -> dict[str, Any]:
        name = f"{job['metadata']['name']}-{index}-{len(self.processes)}"
        labels = job["spec"]["template"]["metadata"]["labels"]
        pod: dict[str, Any] = {
            "metadata": {
                "name": name,
                "labels": {
                    **labels,
                    "job-name": job["metadata"]["name"],
                    "batch.kubernetes.io/job-name": job["metadata"]["name"],
                },
                "annotations": {INDEX: str(index)},
                "creationTimestamp": datetime.now(timezone.utc).isoformat(),
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [{"name": "trial", "state": {"running": {}}}],
            },
        }
        self.server.put("pods", pod, "ADDED")
        container = job["spec"]["template"]["spec"]["containers"][0]
        env = {
            entry["name"]: entry.get("value", pod["metadata"].get("uid", "")) for entry in container["env"]
        }
        for source in container.get("envFrom", ()):
            secret = self.server.objects["secrets", source["secretRef"]["name"]]
            env |= {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
        words = [expand(word, env) for word in (*container["command"], *container.get("args", ()))]
        process = subprocess.Popen(
            [*self.first, *words],
            env={
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "JOB_COMPLETION_INDEX": str(index),
                **env,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.processes[name] = process
        threading.Thread(target=self._attend, args=(pod, process), daemon=True).start()
        return pod

    def _attend(self, pod: dict[str, Any], process: subprocess.Popen[bytes]) -> None:
        """The kubelet: log lines with time stamps, and how it ended."""
        name = pod["metadata"]["name"]
        assert process.stdout is not None
        for number, line in enumerate(process.stdout):
            stamp = f"2026-01-01T00:00:00.{number:09d}Z"
            self.server.logs.setdefault(name, []).append(f"{stamp} {line.decode().rstrip()}")
        code = process.wait()
        process.stdout.close()
        over = {
            "exitCode": code if code >= 0 else 128 - code,
            "reason": "Completed" if code == 0 else "Error",
        }
        status = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "containerStatuses": [{"name": "trial", "state": {"terminated": over}}],
        }
        if name in self.lost:
            status["conditions"] = [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByTaintManager",
                    "message": "node lost",
                }
            ]
        with self.server.changed:
            pod["status"] = status
            gone = pod["metadata"].get("deletionTimestamp")
            self.server.put("pods", pod, "DELETED" if gone else "MODIFIED")

    def _on_delete(self, kind: str, value: dict[str, Any], body: dict[str, Any]) -> bool:
        """Deleting a Job deletes its pods; deleting a pod asks its process, and kills it after the grace."""
        if kind == "jobs":
            for pod in self.server.of("pods"):
                if pod["metadata"]["labels"]["job-name"] == value["metadata"]["name"]:
                    self._end(pod, value["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30))
            return False
        if kind == "pods" and value["status"]["phase"] == "Running":
            self._end(value, body.get("gracePeriodSeconds", 30))
            return True
        return False

    def _end(self, pod: dict[str, Any], grace: float) -> None:
        if pod["status"]["phase"] != "Running":
            return
        again = pod["metadata"].get("deletionTimestamp")
        pod["metadata"]["deletionTimestamp"] = "now"
        name = pod["metadata"]["name"]
        if grace == 0:
            self._signal(name, signal.SIGKILL)
        elif not again:
            self._signal(name, signal.SIGTERM)
            killer = threading.Timer(grace, self._signal, (name, signal.SIGKILL))
            killer.daemon = True
            killer.start()

    def _signal(self, pod: str, number: int) -> None:
        """To the container's first process."""
        process = self.processes[pod]
        if process.poll() is not None:
            return
        pid = process.pid
        if self.first:
            told = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pid = int(told[0]) if told else pid
        os.kill(pid, number)


def expand(word: str, env: dict[str, str]) -> str:
    """``$(NAME)`` in a container's command, as the kubelet does it: unknown names stay, ``$$`` is ``$``."""

    def one(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", one, word)
