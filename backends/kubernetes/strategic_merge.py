"""A strategic merge patch of a pod's template, as the API server itself would apply it. Pure.

kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch: mappings merge key by key,
null deletes a key, lists that have a merge key merge item by item, and every other value replaces what was
there. Of the directives only ``$patch: delete`` of an item is known.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]
"""Where something is: keys, and for an item of a list the value of its merge key."""

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "evictionResponders": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""List of a pod's template -> the key by which its items are the same (``patchMergeKey``)."""
_DIRECTIVE = "$patch"
_SHAPES: tuple[tuple[type, str], ...] = ((Mapping, "a mapping"), (list, "a list"), (object, "a value"))


class MergeError(ValueError):
    """The patch does not fit.

    Attributes:
        path: the place in the patch.
        what: what is wrong there; it goes on after the path.
    """

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path_text(path)} {what}")
        self.path, self.what = path, what


def path_text(path: Path) -> str:
    """``spec.containers[trial].env[HOME]``."""
    text = ""
    before = ""
    for step in path:
        text += f"[{step}]" if before in MERGE_KEYS else f".{step}" if text else step
        before = "" if before in MERGE_KEYS else step
    return text


def merge(base: Mapping[str, Any], patch: Mapping[str, Any], at: Path = ()) -> dict[str, Any]:
    """What ``patch`` makes of ``base``; neither is changed. New items of lists come last.

    Args:
        at: where ``base`` is, for messages.

    Raises:
        MergeError: the patch has another shape than what it is laid over, an item lacks its merge key or has
            a list, a mapping or a fraction there, or a directive is not known.
    """
    merged = dict(base)
    for key, value in patch.items():
        here = (*at, key)
        if key.startswith("$"):
            raise MergeError(here, f"is not known; only an item of a list may have {_DIRECTIVE}: delete")
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, list):
            _need(base.get(key), list, here)
            merged[key] = _list(base.get(key) or [], value, here)
        elif isinstance(value, Mapping):
            _need(base.get(key), Mapping, here)
            merged[key] = merge(base.get(key) or {}, value, here)
        else:
            _need(base.get(key), (str, int, float, bool), here)
            merged[key] = value
    return merged


def _need(current: object, kinds: Any, at: Path) -> None:
    """Refuse to lay a value of another shape over ``current``; over nothing any will do."""
    if current is not None and not isinstance(current, kinds):
        what = next(words for kind, words in _SHAPES if isinstance(current, kind))
        raise MergeError(at, f"does not fit: it is {what} in the pod")


def _list(base: list[Any], patch: list[Any], at: Path) -> list[Any]:
    """The whole patch where the list has no merge key."""
    name = MERGE_KEYS.get(at[-1])
    if name is None:
        return copy.deepcopy(patch)
    merged = list(base)
    for number, item in enumerate(patch):
        if not isinstance(item, Mapping) or item.get(name) is None:
            raise MergeError((*at, str(number)), f"has no {name}, by which items of this list are found")
        if not isinstance(item[name], (str, int)):
            raise MergeError((*at, str(number), name), "is neither a text nor a whole number")
        here = (*at, str(item[name]))
        index = next((i for i, known in enumerate(merged) if known.get(name) == item[name]), None)
        if _DIRECTIVE in item:
            if item[_DIRECTIVE] != "delete":
                raise MergeError((*here, _DIRECTIVE), f"is not known: write {_DIRECTIVE}: delete")
            merged = [known for known in merged if known.get(name) != item[name]]
        elif index is None:
            merged.append(merge({}, item, here))
        else:
            merged[index] = merge(merged[index], item, here)
    return merged
