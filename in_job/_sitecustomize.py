"""Loads profrun's hook into this Python process, then the image's own sitecustomize."""

import sys
from typing import Any


def _load_hook() -> None:
    import importlib.util
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    bundle = os.path.dirname(here)
    package = os.path.join(bundle, "_profrun")
    if "_profrun" not in sys.modules:
        # Under its own name and from its own folder: nothing of ours but this file lies on the import path.
        spec: Any = importlib.util.spec_from_file_location(
            "_profrun", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules["_profrun"] = module
        spec.loader.exec_module(module)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        from _profrun.in_job import bootstrap  # type: ignore[import-not-found]

        bootstrap.install()
    finally:
        sys.dont_write_bytecode = written
    shim = os.path.join(bundle, "shim")
    if os.environ.get("PROFRUN_HOOK") and shim not in sys.path:
        sys.path.append(shim)  # last: an installed profrun wins


def _chain() -> None:
    """Run the sitecustomize that would have run without us; its errors are the image's own business."""
    import importlib.machinery
    import importlib.util
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    paths = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _load_hook()
except Exception as error:
    sys.stderr.write(f"profrun: the hook could not be loaded: {error!r}\n")
_chain()
