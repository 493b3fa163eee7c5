"""What a run's folder keeps of its Jobs, in ``kubernetes/``: trials, manifests, and images by digest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profrun.backends.kubernetes.objects import ApiObject, PodHandle, status_part
from profrun.backends.kubernetes.states import newest_pods
from profrun.contract.codec import from_json, to_json
from profrun.errors import InputError
from profrun.store.documents import read_exit, unsettled
from profrun.store.events import Handle
from profrun.store.files import read_json, write_json, write_text
from profrun.store.runs import Run


def jobs_folder(run: Run) -> Path:
    """Where the Jobs of a run are written down."""
    return run.path / "kubernetes"


def keep(run: Run, number: int, handle: PodHandle, trials: Sequence[str], text: str) -> None:
    """Which trials a Job has, and its manifest, without secrets."""
    write_json(jobs_folder(run) / f"job{number}.json", {"trials": list(trials), **to_json(handle)})
    write_text(jobs_folder(run) / f"job{number}.yaml", text)


def kept(run: Run) -> Iterator[tuple[list[str], PodHandle]]:
    """Trials and handle of every Job of the run, the newest first."""
    files = jobs_folder(run).glob("job*.json")
    for file in sorted(files, key=lambda file: int(file.stem.removeprefix("job") or 0), reverse=True):
        with contextlib.suppress(InputError, ValueError):
            data = read_json(file) or {}
            yield list(data.get("trials", ())), from_json(PodHandle, {"index": 0, **data})


def pod_handle(trial: str, handle: Handle, run: Run) -> PodHandle | None:
    """The handle, found again when the driver was killed before it wrote it down."""
    known = PodHandle.of(handle)
    if known is not None:
        return known
    return next(
        (replace(found, index=trials.index(trial)) for trials, found in kept(run) if trial in trials), None
    )


def deletable_jobs(members: Mapping[str, PodHandle], run: Run) -> set[str]:
    """Jobs whose other trials have all ended: those may be deleted."""
    wanted = {handle.job for handle in members.values()}
    for trials, handle in kept(run):
        others = [trial for trial in trials if trial not in members]
        if any(read_exit(run.trial(trial)) is None for trial in others):
            wanted.discard(handle.job)
    return wanted


def jobs_that_said_all(run: Run) -> list[PodHandle]:
    """Jobs all of whose trials have said how they ended, and will not be started again by Kubernetes."""
    found = []
    for trials, handle in kept(run):
        ended = [read_exit(run.trial(trial)) for trial in trials]
        if all(each is not None and not unsettled(each) for each in ended):
            found.append(handle)
    return found


def note_images(members: Mapping[str, PodHandle], pods: Sequence[ApiObject], run: Run) -> None:
    """What image each trial really ran, by digest, as its node says: ``kubernetes/images.json``."""
    told = {}
    last = newest_pods(pods)
    for trial, handle in members.items():
        pod = last.get((handle.job, handle.indexes[0]))
        for container in (status_part(pod) if pod else {}).get("containerStatuses") or ():
            if container.get("imageID"):
                told[trial] = str(container["imageID"])
    if not told:
        return
    file = jobs_folder(run) / "images.json"
    kept: dict[str, object] = {}
    with contextlib.suppress(InputError):
        kept = read_json(file) or {}
    if {**kept, **told} != kept:
        write_json(file, {**kept, **told})
