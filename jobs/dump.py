"""A job as YAML again: with every default written out, and itself a valid spec that repeats the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

import yaml

from profrun.contract.codec import given_json, to_json
from profrun.contract.quantities import size_text, time_text
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job
from profrun.jobs.nodes import Node, typed
from profrun.jobs.problems import Where


class _Dumper(yaml.SafeDumper):
    """Block style for the outer levels, one line for what is short and flat, no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _flow(dumper: yaml.SafeDumper, data: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)


def _items(dumper: yaml.SafeDumper, data: list[object]) -> yaml.Node:
    flat = all(not isinstance(item, (list, dict)) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat)


class _Line(dict[str, object]):
    """A mapping that stands on one line."""


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    """Quoted where our rules, or YAML 1.1's (pyyaml sees to those), would not read plain text as text."""
    plain = typed(Node("scalar", Where(0, 0), text=data, plain=True)).type == "text"
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if plain else "'")


_Dumper.add_representer(str, _text)
_Dumper.add_representer(_Line, _flow)
_Dumper.add_representer(list, _items)


def dump_job(job: Job) -> str:
    """The resolved job as YAML. ``load_text(dump_job(job))`` equals ``job``.

    Defaults are written out, ``matrix`` is spelled out as variants, ``--set`` is applied, and an image that
    was replaced by a digest stays one. Collector blocks hold what was given: their defaults belong to the
    collector.
    """
    data: dict[str, object] = {
        "name": job.name,
        "image": job.image,
        "command": job.command,
        "variants": {name: _Line(values) for name, values in job.variants.items()},
        "collectors": list(job.collectors),
        "launch_blocking": job.launch_blocking,
        "repeats": job.repeats if isinstance(job.repeats, int) else _Line(job.repeats),
        "schedule": _Line(_schedule(job)),
        "ranges": _Line(asdict(job.ranges)),
        "resources": _Line(_resources(job)),
    }
    if job.changes:
        data["changes"] = {name: list(changes) for name, changes in job.changes.items()}
    for name in ("results", "sequential"):
        if getattr(job, name) is not None:
            data[name] = _Line(asdict(getattr(job, name)))
    data["sample"] = job.sample or "off"
    if job.ranks is not None:
        data["ranks"] = list(job.ranks)
    if job.expect:
        data["expect"] = [given_json(item) for item in job.expect]
    for name in ("env", "secrets", "env_file", "workdir", "mounts"):
        if getattr(job, name):
            data[name] = to_json(getattr(job, name))
    data["network"] = job.network
    data.update({name: block for name, options in job.options.items() if (block := _given(options))})
    for neutral, blocks in job.overlays.items():
        data[neutral] = {name: _given(options) for name, options in blocks.items()}
    cluster = _cluster(job.cluster)
    if cluster:
        data["cluster"] = cluster
    return yaml_text(data)


def yaml_text(data: Mapping[str, object]) -> str:
    """Values as YAML that our reader, and one of YAML 1.1, read as the same values."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _cluster(settings: ClusterSettings) -> dict[str, object]:
    given = _given(replace(settings, sites={}))
    del given["sites"]
    sites = {name: _cluster(site) for name, site in settings.sites.items()}
    return {**given, "sites": sites} if sites else given


def _given(block: object) -> dict[str, object]:
    """What a block gives; times that are whole seconds without a decimal point."""
    values = given_json(block)
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in values.items()
    }


def _schedule(job: Job) -> dict[str, object]:
    values = _given(job.schedule)
    values["max_size"] = size_text(job.schedule.max_size)
    return values


def _resources(job: Job) -> dict[str, object]:
    values = asdict(job.resources)
    for name in ("memory", "shm", "tmp", "output"):
        values[name] = None if values[name] is None else size_text(values[name])
    if isinstance(job.resources.gpus, tuple):
        values["gpus"] = list(job.resources.gpus)
    for name in ("timeout", "grace"):
        values[name] = time_text(values[name])
    return values
