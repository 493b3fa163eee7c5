"""From the word in a job spec to one exact image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from profrun.errors import UnavailableError, UsageError
from profrun.images.engine import docker_errors, explain
from profrun.images.pins import Pins, moved_text, pinned
from profrun.images.recipe import recipe

if TYPE_CHECKING:
    import docker
    import docker.models.images

LABEL_KIND = "profrun.kind"
LABEL_KEY = "profrun.key"
LABEL_BASE = "org.opencontainers.image.base.name"
LABEL_BASE_DIGEST = "org.opencontainers.image.base.digest"
LABEL_ARG = "profrun.arg."
"""Beginning of the labels that keep a build's arguments, so that its key can be computed again."""


@dataclass(frozen=True)
class Image:
    """One image of an engine.

    Attributes:
        reference: as it was named.
        id: ``sha256:...`` of its configuration: names exactly this content, on this engine.
        digest: ``name@sha256:...`` as its registry knows it, else the id.
        architecture: as the engine says, e.g. amd64.
        labels, user, size: as in the image; size in bytes.
    """

    reference: str
    id: str
    digest: str
    architecture: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    size: int = 0


def reference(wanted: str, vendor: str) -> str:
    """The reference that a job's ``image`` stands for. Pure.

    ``auto`` follows the GPU: ``rocm`` where AMD's is, else ``cuda``, also where there is no GPU (NVIDIA's
    images run on a CPU and hold torch). ``cuda`` and ``rocm`` are what `images build` made last.

    Args:
        wanted: auto, cuda, rocm, none, or any reference.
        vendor: nvidia, amd or none.

    Raises:
        UsageError: the job wants no image.
    """
    if wanted == "none":
        raise UsageError(
            "image: none means no container, and this backend runs containers",
            fix="name an image (auto, cuda, rocm or a reference), or use --backend local",
        )
    if wanted == "auto":
        wanted = "rocm" if vendor == "amd" else "cuda"
    return f"profrun/{wanted}:latest" if wanted in ("cuda", "rocm") else wanted


def find(client: docker.DockerClient, name: str) -> Image | None:
    """The image of this name on the engine, or None when it is not there.

    Raises:
        UnavailableError: the engine fails, or the name is none.
    """
    import docker.errors

    with docker_errors(f"image {name} cannot be looked up"):
        try:
            return describe(name, client.images.get(name))
        except docker.errors.ImageNotFound:
            return None


def built(client: docker.DockerClient) -> list[Image]:
    """Our own images on this engine, the newest first; each under its first name.

    Raises:
        UnavailableError: the engine does not answer.
    """
    with docker_errors("the engine's images cannot be listed"):
        found = client.images.list(filters={"label": LABEL_KEY})
    named = [image for image in found if image.tags]
    named.sort(key=lambda image: str(image.attrs.get("Created") or ""), reverse=True)
    return [describe(image.tags[0], image) for image in named]


def describe(name: str, image: docker.models.images.Image) -> Image:
    """The SDK's image as an ``Image``."""
    attrs: Mapping[str, Any] = image.attrs
    config: Mapping[str, Any] = attrs.get("Config") or {}
    tags = attrs.get("RepoTags") or []
    return Image(
        reference=tags[0] if name.startswith("sha256:") and tags else name,
        id=str(image.id),
        digest=_digest(name, attrs.get("RepoDigests") or [], str(image.id)),
        architecture=str(attrs.get("Architecture") or ""),
        labels=dict(config.get("Labels") or {}),
        user=str(config.get("User") or ""),
        size=int(attrs.get("Size") or 0),
    )


def _digest(name: str, known: list[str], fallback: str) -> str:
    """The repository digest under this name, else any, else the id."""
    repository = name.partition("@")[0]
    head, _, tail = repository.rpartition(":")
    if head and "/" not in tail:
        repository = head
    short = repository.removeprefix("docker.io/").removeprefix("library/")
    for digest in known:
        if digest.partition("@")[0].removeprefix("docker.io/").removeprefix("library/") == short:
            return digest
    return known[0] if known else fallback


def pull(client: docker.DockerClient, name: str) -> Iterator[str]:
    """Pull an image; yields lines of progress, one a layer and state.

    Raises:
        UnavailableError: it cannot be pulled.
    """
    told: set[tuple[str, str]] = set()
    with docker_errors(f"{name} cannot be pulled"):
        repository, tag = _split(name)
        events = client.api.pull(repository, tag=tag, stream=True, decode=True)
        for event in events:
            if event.get("error"):
                for _ in events:  # read to its end, else the SDK leaves the connection open
                    pass
                raise explain(RuntimeError(event["error"]), f"{name} cannot be pulled")
            state = (str(event.get("id") or ""), str(event.get("status") or ""))
            if state not in told and not state[1].startswith(("Downloading", "Extracting", "Waiting")):
                told.add(state)
                yield ": ".join(part for part in state if part)


def _split(name: str) -> tuple[str, str | None]:
    """Repository and tag or digest, as the engine wants them; a bare name means latest, not all tags."""
    if "@" in name:
        repository, _, digest = name.partition("@")
        return repository, digest
    head, _, tail = name.rpartition(":")
    return (head, tail) if head and "/" not in tail else (name, "latest")


def find_pinned(client: docker.DockerClient, name: str, pins: Pins) -> Image | None:
    """The image that this name stands for, on the engine: its pin where it has one, under the name itself.

    Raises:
        UnavailableError: the engine fails, or the name is none.
    """
    pin = pinned(name, pins)
    if pin is None:
        return find(client, name)
    image = find(client, pin)
    return None if image is None else replace(image, reference=name, digest=pin)


def moved(client: docker.DockerClient, name: str, pins: Pins) -> str | None:
    """What to say where a pinned tag means another image on this engine; None where it does not.

    Raises:
        UnavailableError: the engine fails.
    """
    pin = pinned(name, pins)
    if pin is None:
        return None
    here, meant = find(client, name), find(client, pin)
    if here is None or (meant is not None and here.id == meant.id):
        return None
    return moved_text(name, pin, here.digest)


def resolve(
    client: docker.DockerClient, wanted: str, vendor: str, *, pins: Pins, allow_pull: bool = True
) -> Image:
    """The one image that a job's ``image`` means now: it is here, fits this machine, and is not stale.

    Args:
        wanted: auto, cuda, rocm, none, or any reference.
        vendor: nvidia, amd or none.
        pins: what tags stand for (``pins.known_pins``).
        allow_pull: pull it where it is not here.

    Raises:
        UnavailableError: it is not there and cannot be pulled, is for another architecture, or was built by
            profrun from a Dockerfile or a base that has changed since.
        UsageError: ``image: none``.
    """
    name = reference(wanted, vendor)
    exact = pinned(name, pins) or name
    image = find_pinned(client, name, pins)
    if image is None and name in ("profrun/cuda:latest", "profrun/rocm:latest"):
        kind = name[len("profrun/") :].partition(":")[0]
        raise UnavailableError(
            f"no {kind} image is built on this engine",
            why="image: auto with no GPU means cuda" if wanted == "auto" and vendor == "none" else None,
            fix=f"run `profrun images build {kind}` once, or name another image in the job",
        )
    if image is None and allow_pull:
        check_pullable(name, exact)
        for _ in pull(client, exact):
            pass
        image = find_pinned(client, name, pins)
    if image is None:
        raise UnavailableError(f"image {exact} is not on this engine", fix=f"`docker pull {exact}`")
    check_architecture(client, image)
    if "sha256:" not in name:
        check_fresh(client, image, pins)
    return image


def check_pullable(name: str, exact: str) -> None:
    """Refuse to pull an image that is pinned by its id: no registry knows it.

    Raises:
        UnavailableError: it is not on this engine and cannot be pulled.
    """
    if exact.startswith("sha256:"):
        raise UnavailableError(
            f"{name} is pinned to {exact[:19]}, which is not on this engine",
            why="it was made on an engine, and no registry knows it",
            fix=f"load it, or `profrun images pin {name}`",
        )


def check_architecture(client: docker.DockerClient, image: Image) -> None:
    """Refuse an image that this machine's processor cannot run.

    Raises:
        UnavailableError: it is made for another architecture.
    """
    with docker_errors("the engine does not say its architecture"):
        engine = str(client.version().get("Arch") or "")
    if (
        engine
        and image.architecture
        and _ARCH.get(engine, engine) != _ARCH.get(image.architecture, image.architecture)
    ):
        raise UnavailableError(
            f"{image.reference} is made for {image.architecture}, and this engine runs on {engine}",
            fix="use an image for this machine's architecture",
        )


_ARCH = {"x86_64": "amd64", "aarch64": "arm64", "arm64v8": "arm64"}


def check_fresh(client: docker.DockerClient, image: Image, pins: Pins) -> None:
    """Refuse one of our images whose Dockerfile, context or base is another by now.

    An image that is named by its digest is what it says, and never stale.

    Raises:
        UnavailableError: it must be built again.
    """
    kind = image.labels.get(LABEL_KIND)
    if kind is None or LABEL_KEY not in image.labels:
        return
    base = image.labels.get(LABEL_BASE, "")
    args = {k[len(LABEL_ARG) :]: v for k, v in image.labels.items() if k.startswith(LABEL_ARG)}
    fix = f"`profrun images build {kind} --base {base}`"
    try:
        now = recipe(kind, base, args)
    except UsageError as error:
        raise UnavailableError(
            f"{image.reference} was built by another profrun", why=error.what, fix=fix
        ) from error
    found = find_pinned(client, base, pins)
    digest = found.digest if found else image.labels.get(LABEL_BASE_DIGEST, "")
    if now.key(digest) == image.labels[LABEL_KEY]:
        return
    changed = f"its base {base}" if digest != image.labels.get(LABEL_BASE_DIGEST) else f"Dockerfile.{kind}"
    raise UnavailableError(
        f"{image.reference} is stale",
        why=f"{changed} has changed since it was built",
        fix=f"build it again: {fix}",
    )
