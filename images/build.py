"""Building profrun's images on a base; nothing is built when recipe and base are the same as before."""

from __future__ import annotations

import io
import re
import tarfile
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profrun.contract.profilers import TIMELINE, become
from profrun.errors import FailedError, UnavailableError
from profrun.images.catalogue import VENDOR_OF
from profrun.images.engine import docker_errors, explain, one_line
from profrun.images.inspect import Contents, inspect
from profrun.images.pins import Pins, moved_text, pinned, registry_digest
from profrun.images.recipe import Recipe
from profrun.images.resolve import (
    LABEL_ARG,
    LABEL_BASE,
    LABEL_BASE_DIGEST,
    LABEL_KEY,
    LABEL_KIND,
    Image,
    check_architecture,
    check_pullable,
    describe,
    find,
    find_pinned,
    moved,
    pull,
)

if TYPE_CHECKING:
    import docker

_SAID = 50
"""Lines of a step that are kept to say why it failed."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Built:
    """What a build gave.

    Attributes:
        image: the image, under its own name.
        key: cache key (``Recipe.key``).
        cached: True when nothing had to be built.
        base: the base as it was found.
        tags: every name it has now.
    """

    image: Image
    key: str
    cached: bool
    base: Image
    tags: tuple[str, ...]


def build(
    client: docker.DockerClient,
    what: Recipe,
    *,
    pins: Pins,
    tag: str | None = None,
    refresh: bool = False,
    force: bool = False,
    network: str = "host",
) -> Generator[str, None, Built]:
    """Build an image, unless one with the same key is there. Yields lines of progress, returns the image.

    Args:
        client: the engine.
        what: the recipe.
        pins: what tags stand for (``pins.known_pins``): a pinned base is that one, wherever its tag is now.
        tag: a further name for the result.
        refresh: ask the registry for the base even when it is here.
        force: build even when the key is known, without the engine's layer cache.
        network: of the build's steps. ``host`` because they only download packages, and bridges of engines
            often lack the host's route, name server or proxy.

    Raises:
        UnavailableError: no base, wrong architecture, full disk.
        FailedError: a step of the Dockerfile failed, or the result lacks its profiler.
    """
    base = yield from _base(client, what.base, refresh, pins)
    key = what.key(base.digest)
    names = [f"{what.name}:{key[:12]}", f"{what.name}:latest", *([tag] if tag else [])]
    image = None if force else _with_key(client, key)
    cached = image is not None
    if image is None:
        raw = yield from _run(client, what, base, key, network, fresh=force)
        contents = _measure(client, what, raw)
        yield "measured inside: " + (_words(contents) or "no profiler")
        image = _with_labels(client, raw, _measured(raw, contents))
    else:
        yield f"nothing has changed: {names[0]} is up to date"
    with docker_errors("the image cannot be named"):
        for name in names:
            repository, _, version = name.rpartition(":")
            if not repository or "/" in version:
                repository, version = name, "latest"
            client.images.get(image.id).tag(repository, version)
    found = find(client, names[0])
    if found is None:
        raise FailedError(f"{names[0]} is gone right after it was built", fix="build it again")
    return Built(found, key, cached, base, tuple(names))


def _base(client: docker.DockerClient, name: str, refresh: bool, pins: Pins) -> Generator[str, None, Image]:
    """The base, pulled when it is not here or when asked to. A line says where its tag has left its pin."""
    pin = pinned(name, pins)
    image = find_pinned(client, name, pins)
    if image is None or (refresh and pin is None):
        yield f"pulling {pin or name}"
        check_pullable(name, pin or name)
        yield from pull(client, pin or name)
        image = find_pinned(client, name, pins)
    if image is None:
        raise UnavailableError(f"base image {name} is not there after it was pulled")
    told = moved(client, name, pins)
    if pin is not None and refresh:
        told = moved_text(name, pin, registry_digest(client, name))
    if told:
        yield told
    check_architecture(client, image)
    yield f"base {name} is {image.digest}" + (" (pinned)" if pin else "")
    return image


def _with_key(client: docker.DockerClient, key: str) -> Image | None:
    """The finished image with this key. One that was interrupted before it was measured has no key yet."""
    with docker_errors("the engine's images cannot be listed"):
        found = client.images.list(filters={"label": f"{LABEL_KEY}={key}"})
    return describe(f"profrun:{key[:12]}", found[0]) if found else None


def _run(
    client: docker.DockerClient, what: Recipe, base: Image, key: str, network: str, *, fresh: bool
) -> Generator[str, None, Image]:
    """The build itself, on exactly this base."""
    labels = {
        LABEL_KIND: what.kind,
        LABEL_BASE: what.base,
        LABEL_BASE_DIGEST: base.digest,
        **{LABEL_ARG + name: value for name, value in what.args.items()},
    }
    with docker_errors(f"{what.name} cannot be built"):
        stream = client.api.build(
            fileobj=io.BytesIO(what.tar()),
            custom_context=True,
            decode=True,
            rm=True,
            forcerm=True,
            nocache=fresh,
            network_mode=network,
            buildargs={**what.args, "BASE": base.id},
            labels=labels,
        )
        image_id = yield from _follow(stream, what.name)
    image = find(client, image_id)
    if image is None:
        raise FailedError(f"{what.name} is gone right after it was built", fix="build it again")
    return _pending(image, key)


def _pending(image: Image, key: str) -> Image:
    return Image(
        image.reference, image.id, image.digest, image.architecture, {**image.labels, LABEL_KEY: key}
    )


def _follow(stream: Any, name: str) -> Generator[str, None, str]:
    """Lines of a build; returns the image's id. Keeps the step and its last lines for the error."""
    step, image_id = "", ""
    said: deque[str] = deque(maxlen=_SAID)
    for event in stream:
        if event.get("error"):
            for _ in stream:  # read to its end, else the SDK leaves the connection open
                pass
            raise _step_error(name, step, list(said), str(event["error"]))
        image_id = str((event.get("aux") or {}).get("ID") or image_id)
        for coloured in str(event.get("stream") or event.get("status") or "").splitlines():
            line = _COLOUR.sub("", coloured).rstrip()
            if line.upper().startswith("STEP "):  # Podman writes it in capitals
                step = line
                said.clear()
            elif line and not line.startswith((" ---", "Removing intermediate")):
                said.append(line)
            if line:
                yield line
    if not image_id:
        raise FailedError(f"the build of {name} ended without an image", why=said[-1] if said else None)
    return image_id


def _step_error(name: str, step: str, said: Sequence[str], error: str) -> Exception:
    """The error of a build: the step that failed, with its last line."""
    known = explain(RuntimeError(error), f"{name} cannot be built")
    if isinstance(known, UnavailableError):
        return known
    full = [line for line in said if "no space left" in line.lower()]
    if full:
        return explain(RuntimeError(full[-1]), f"{name} cannot be built")
    words = [one_line(error, 200)] + ([f"its last line: {one_line(said[-1], 200)}"] if said else [])
    return FailedError(
        f"the build of {name} failed at {one_line(step, 120) or 'its start'}",
        why="; ".join(words),
        fix="the whole output is above",
    )


def _measure(client: docker.DockerClient, what: Recipe, image: Image) -> Contents:
    """What is inside the new image. An image without its profiler is removed."""
    try:
        contents = inspect(client, image)
        _complete(what, contents)
    except BaseException:
        with docker_errors("the unfinished image cannot be removed"):
            client.images.remove(image.id, force=True)
        raise
    return contents


def _complete(what: Recipe, contents: Contents) -> None:
    """Refuse a result without the profiler that it was built for: what ``timeline`` becomes on its GPUs.

    The Dockerfile's argument that installs it begins with the profiler's name; empty: it is not installed.
    """
    wanted = become(TIMELINE, VENDOR_OF[what.kind])
    arg = next((name for name in what.known_args if wanted and name.startswith(wanted.name.upper())), None)
    if wanted is None or arg is None or what.args.get(arg) == "":
        return
    tool = wanted.tools[0]
    found = contents.tools.get(tool)
    if found is None or not found.version:
        raise FailedError(
            f"{what.name} was built, but has no working {tool} inside",
            why=found.problem if found is not None else None,
            fix=f"see the step that installs it, or build without it: --arg {arg}=",
        )


def _measured(image: Image, contents: Contents) -> dict[str, str]:
    """Labels that say what was found inside, and the key, which only a whole image has."""
    labels = {f"profrun.{name}.version": version for name, version in contents.versions.items()}
    return {**labels, LABEL_KEY: image.labels[LABEL_KEY]}


def _words(contents: Contents) -> str:
    return ", ".join(f"{name} {version}" for name, version in contents.versions.items())


def _with_labels(client: docker.DockerClient, image: Image, labels: Mapping[str, str]) -> Image:
    """The same image with more labels. They are added last, so that an unfinished image has no key."""
    dockerfile = f"FROM {image.id}\n".encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("Dockerfile")
        info.size = len(dockerfile)
        archive.addfile(info, io.BytesIO(dockerfile))
    with docker_errors("the image cannot be labelled"):
        stream = client.api.build(
            fileobj=io.BytesIO(buffer.getvalue()),
            custom_context=True,
            decode=True,
            rm=True,
            labels=dict(labels),
        )
        labelled = find(client, _drain(_follow(stream, image.reference)))
    if labelled is None:
        raise FailedError("the labelled image is gone right after it was made", fix="build it again")
    return labelled


def _drain(lines: Generator[str, None, str]) -> str:
    """The generator's result; its lines are not shown."""
    while True:
        try:
            next(lines)
        except StopIteration as end:
            return str(end.value)
