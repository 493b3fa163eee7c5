"""``profrun images list | build | inspect``."""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated, Any, TypeVar

import typer

from profrun.cli.options import JsonOption
from profrun.cli.output import columns, emit, note, say, tell

EXAMPLES = (
    ("profrun images list", "known base images, and those built here"),
    ("profrun images build cuda", "build the image for NVIDIA GPUs"),
    ("profrun images inspect cuda", "which profilers are in it"),
    ("profrun images unpin rocm/pytorch:latest", "forget it: what it means then is used"),
    ("profrun images pin", "record what the tags of the bases here stand for"),
)
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="List, build, inspect and pin container images.",
)
T = TypeVar("T")


@app.command(name="list")
def list_(json_: JsonOption = False) -> None:
    """List known base images, and the images built here with what was measured inside."""
    import msgspec

    from profrun.images.catalogue import load
    from profrun.images.inspect import tool_places
    from profrun.images.pins import known_pins, pinned

    bases = load()
    pins = known_pins()
    ours, problem = _built()
    if json_:
        emit({"images": [msgspec.to_builtins(base) for base in bases], "built": ours, "pins": pins})
        return
    say("known base images, and what their makers say is inside;")
    say("`profrun images inspect IMAGE` measures it:")
    for base in bases:
        say(base.reference + (" (default)" if base.default else ""))
        say(f"  {_inside(base.kind, base.framework, base.toolkit, **base.profilers)}")
        if digest := pinned(base.reference, pins):
            say(f"  pinned to {digest}")
    say()
    others = {name: digest for name, digest in pins.items() if name not in {base.reference for base in bases}}
    if others:
        say("other images that are pinned:")
        for name, digest in others.items():
            say(f"{name} is pinned to {digest}")
        say()
    if not ours:
        tell(f"built here: none ({problem or 'see `profrun images build --help`'})")
        return
    say("images built here and what was measured inside:")
    for about in ours:
        torch = about["torch"] and f"torch {about['torch']}"
        say(f"{about['image']}  {about['id'][7:19]}")
        say(f"  {_inside('on ' + about['base'], torch, **{name: about[name] for name in tool_places()})}")


def _inside(*words: str | None, **profilers: str | None) -> str:
    """What is known of an image, separated by commas."""
    known = [word for word in words if word]
    return ", ".join([*known, *(f"{tool} {version}" for tool, version in profilers.items() if version)])


def _built() -> tuple[list[dict[str, Any]], str | None]:
    """The images built here, from their labels on the engine; and why they cannot be listed, or None."""
    from profrun.errors import ProfrunError
    from profrun.images.engine import connect
    from profrun.images.inspect import tool_places
    from profrun.images.resolve import LABEL_BASE, LABEL_BASE_DIGEST, built

    try:
        found = built(connect(timeout=20))
    except ProfrunError as error:
        return [], str(error)
    known = ("torch", *tool_places(), "nvtx")
    return [
        {
            "image": image.reference,
            "id": image.id,
            "base": image.labels.get(LABEL_BASE),
            "base_digest": image.labels.get(LABEL_BASE_DIGEST),
            **{name: image.labels.get(f"profrun.{name}.version") for name in known},
        }
        for image in found
    ], None


@app.command()
def build(
    kind: Annotated[str, typer.Argument(help="cuda or rocm.")],
    base: Annotated[
        str | None, typer.Option(help="Base image [default: the catalogue's].", show_default=False)
    ] = None,
    tag: Annotated[str | None, typer.Option(help="One more name for the image.", show_default=False)] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="KEY=VALUE", help="A build argument.", show_default=False),
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask the registry for a newer base.")] = False,
    network: Annotated[
        str, typer.Option(help="Network of the build's steps: host, or a network of the engine.")
    ] = "host",
    force: Annotated[bool, typer.Option("--force", help="Build even when nothing has changed.")] = False,
    json_: JsonOption = False,
) -> None:
    """Build profrun's image on a base, unless the same image is there already."""
    from profrun.errors import UsageError
    from profrun.images import build as building
    from profrun.images.engine import connect
    from profrun.images.pins import known_pins
    from profrun.images.recipe import recipe

    pairs = dict(item.partition("=")[::2] for item in arg or ())
    if any("=" not in item for item in arg or ()):
        raise UsageError("--arg needs KEY=VALUE", fix="e.g. --arg NSYS_VERSION=2025.1.1")
    what = recipe(kind, base, pairs)
    built = _narrate(
        building.build(
            connect(), what, pins=known_pins(), tag=tag, refresh=refresh, force=force, network=network
        )
    )
    if json_:
        emit(
            {
                "image": built.image.reference,
                "id": built.image.id,
                "key": built.key,
                "cached": built.cached,
                "base": {"reference": built.base.reference, "digest": built.base.digest},
                "tags": list(built.tags),
            }
        )
    else:
        say(
            f"{built.image.reference} on {built.base.digest}"
            + (" (already up to date)" if built.cached else "")
        )


@app.command()
def inspect(
    image: Annotated[str, typer.Argument(help="auto, cuda, rocm or any image reference.")] = "auto",
    vendor: Annotated[
        str, typer.Option(help="The vendor that `auto` means: nvidia, amd or none.")
    ] = "nvidia",
    pull: Annotated[bool, typer.Option("--pull", help="Pull the image if it is not here.")] = False,
    json_: JsonOption = False,
) -> None:
    """Run an image once, without network, and list the profilers and frameworks inside."""
    from profrun.images import inspect as inspecting
    from profrun.images.engine import connect
    from profrun.images.pins import known_pins
    from profrun.images.resolve import resolve

    client = connect()
    found = resolve(client, image, vendor, pins=known_pins(), allow_pull=pull)
    document = inspecting.document(found, inspecting.inspect(client, found))
    if json_:
        emit(document)
        return
    rows = []
    for name, value in document.items():
        if name == "profilers":
            rows += [(tool, _tool_text(about)) for tool, about in value.items()]
        elif name != "labels":
            rows.append((name, _plain(value)))
    say(columns(("what", "found"), rows))


@app.command()
def pin(
    images: Annotated[
        list[str] | None,
        typer.Argument(metavar="[IMAGE]...", help="Tags [default: the known bases that are on this engine]."),
    ] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Ask the registry, also for an image that is here.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Record which digest a tag stands for: builds and runs then use that one, wherever the tag moves."""
    from profrun.errors import UnavailableError
    from profrun.images.catalogue import load
    from profrun.images.engine import connect
    from profrun.images.pins import check_pinnable, plain, registry_digest, users_pins, write_pins
    from profrun.images.resolve import find

    for name in images or ():
        check_pinnable(name)
    client = connect()
    names = images or [base.reference for base in load() if find(client, base.reference)]
    if not names:
        raise UnavailableError(
            "no known base is on this engine", fix="name an image: `profrun images pin IMAGE`"
        )
    before = users_pins()
    now = {}
    for name in names:
        here = None if registry else find(client, name)
        now[plain(name)] = here.digest if here else registry_digest(client, name)
    file = write_pins({**before, **now})
    if json_:
        emit({"pinned": now, "before": {name: before.get(name) for name in now}, "file": str(file)})
        return
    for name, digest in now.items():
        say(f"{name} is pinned to {digest}")
        old = before.get(name)
        if old and old != digest:
            say(f"  it has moved: it was pinned to {old}")


@app.command()
def unpin(images: Annotated[list[str], typer.Argument(metavar="IMAGE...", help="Tags.")]) -> None:
    """Forget what tags stand for: builds and runs take what they mean at that time."""
    from profrun.errors import UsageError
    from profrun.images.pins import plain, users_pins, write_pins

    kept = users_pins()
    for name in images:
        if kept.pop(plain(name), None) is None:
            raise UsageError(f"{name} is not pinned by you", fix="`profrun images list` shows the pins")
    write_pins(kept)
    for name in images:
        say(f"{plain(name)} is no longer pinned")


def _tool_text(about: dict[str, Any] | None) -> str | None:
    if about is None:
        return None
    problem = f" ({about['problem']})" if about.get("problem") else ""
    return f"{about.get('version') or 'version unknown'} at {about.get('path')}{problem}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items() if item)
    return value


def _narrate(lines: Generator[str, None, T]) -> T:
    """Print a generator's lines as they come and return what it returns."""
    while True:
        try:
            note(next(lines))
        except StopIteration as end:
            result: T = end.value
            return result
