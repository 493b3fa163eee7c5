"""Which calls and batches the step finder is told of."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from profrun.in_job import calls
from profrun.in_job.calls import CallWatch


class Told:
    """Stands for the step follower and its finder: writes down what it is told."""

    ends_with_calls = True

    def __init__(self) -> None:
        self.signs: list[str] = []
        self.broken = False
        self.finder = self

    def called(self, sign: str, _thing: object, *, grad: bool) -> None:
        if self.broken:
            raise ValueError("a bug of ours")
        self.signs.append(sign + " with graph" * grad)

    def batch(self, _batches: object, *, grad: bool) -> None:
        self.signs.append("batch" + " with graph" * grad)

    def exhausted(self, _batches: object) -> bool:
        return True

    def capture(self, *, on: bool) -> None:
        self.signs.append("capture" if on else "captured")

    def note_end(self) -> None:
        self.signs.append("end")


class Process:
    """Stands for the hook's process."""

    def __init__(self) -> None:
        self.grad = False
        self.used = False
        self.worker = False
        self.failures: list[Exception] = []
        self.torch = SimpleNamespace(
            is_grad_enabled=lambda: self.grad,
            cuda=SimpleNamespace(is_initialized=lambda: self.used),
            version=SimpleNamespace(cuda="13.0", hip=None),
        )

    def ignored(self) -> bool:
        return self.worker

    def fail(self, error: Exception) -> None:
        self.failures.append(error)


class Setting:
    """A watch, what it is told, and where it is."""

    def __init__(self) -> None:
        self.told, self.process, self.in_module = Told(), Process(), False
        steps: Any = self.told
        process: Any = self.process
        self.watch = CallWatch(process, steps, lambda: self.in_module)

    def everything(self) -> list[str]:
        """What is told of a call with another one in it, a batch, the end of batches and a capture."""
        self.told.signs.clear()
        if self.watch.before("compiled", self):
            assert not self.watch.before("graph", self)
            self.watch.batch(self)
            self.watch.after()
        self.watch.batch(self)
        self.watch.exhausted(self)
        for on in (True, False):
            self.watch.capture(on=on)
        return self.told.signs


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setattr(calls, "_GPUS", ())
    return Setting()


EVERY = ["compiled", "end", "batch", "end", "capture", "captured"]


def test_what_runs_in_a_call_in_a_module_or_in_a_worker_is_not_told(setting: Setting) -> None:
    assert setting.everything() == EVERY
    setting.in_module = True
    assert setting.everything() == []
    setting.in_module, setting.process.worker = False, True
    assert setting.everything() == []
    setting.process.worker, setting.process.grad = False, True
    assert setting.everything()[:3] == ["compiled with graph", "end", "batch with graph"]


def test_calls_count_on_one_thread_and_batches_on_the_main_one(setting: Setting) -> None:
    def elsewhere() -> list[str]:
        found: list[list[str]] = []
        thread = threading.Thread(target=lambda: found.append(list(setting.everything())))
        thread.start()
        thread.join()
        return found[0]

    first = elsewhere()
    assert first == ["compiled", "end", "capture", "captured"]
    assert setting.everything() == ["batch", "end"], "the thread of the first call is another one"
    setting.watch.after_fork()
    assert setting.everything() == EVERY
    assert elsewhere() == []


@pytest.mark.parametrize(
    ("used", "visible", "cuda", "told"),
    [
        (False, "0", "13.0", []),
        (True, "0", "13.0", ["batch"]),
        (False, "", "13.0", ["batch"]),  # the GPU is hidden
        (False, "0", None, ["batch"]),  # torch for the CPU
    ],
)
def test_batches_before_the_gpu_is_used_are_only_read(
    setting: Setting,
    monkeypatch: pytest.MonkeyPatch,
    used: bool,
    visible: str,
    cuda: str | None,
    told: list[str],
) -> None:
    monkeypatch.setattr(calls, "_GPUS", ("/dev/null",))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    setting.process.used, setting.process.torch.version.cuda = used, cuda
    setting.watch.batch(setting)
    assert setting.told.signs == told


def test_a_bug_of_the_hook_is_kept_from_the_program(setting: Setting) -> None:
    setting.told.broken = True
    assert setting.watch.before("jit", setting)
    setting.watch.after()
    assert [str(error) for error in setting.process.failures] == ["a bug of ours"]
