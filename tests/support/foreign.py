"""profrun as it would run on another system: what Python does not have there is taken away from its modules.

    echo '["normalize", "FILE", "-o", "OUT"]' | python -m tests.support.foreign win32

Each line of the input is a command line; each line of the output is its exit code and what it printed.

What Python has on which system is read from the stubs of the standard library that come with mypy. Only
modules of profrun see it: the standard library and other packages go on as on this system. ``sys.platform``
is the other system's, /proc, /sys and /dev are not there, and what is printed must be in Windows' code page.
Paths are those of this system.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import mypy

STUBS = Path(mypy.__file__).parent / "typeshed/stdlib"
HERE = "linux"
_OURS = "profrun"


def _true(test: ast.expr, system: str) -> bool:
    """Whether a condition of a stub holds: on a system, and in this version of Python."""
    names = {"sys": _Stub(system), "TYPE_CHECKING": True}
    return bool(eval(compile(ast.Expression(test), "stub", "eval"), {"__builtins__": {}}, names))


class _Stub:
    """``sys`` in a condition of a stub."""

    def __init__(self, system: str) -> None:
        self.platform = system
        self.version_info = sys.version_info


def _names(body: Sequence[ast.stmt], system: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _names(node.body if _true(node.test, system) else node.orelse, system)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


@functools.cache
def missing_names(module: str, system: str) -> frozenset[str]:
    """Names of a module of the standard library that it has here and not on ``system``."""
    path = STUBS.joinpath(*module.split("."))
    stub = next((file for file in (path.with_suffix(".pyi"), path / "__init__.pyi") if file.exists()), None)
    if stub is None:
        return frozenset()
    body = ast.parse(stub.read_text(encoding="utf-8")).body
    return frozenset(_names(body, HERE)) - frozenset(_names(body, system))


def is_missing(module: str, system: str) -> bool:
    """Whether a module of the standard library has nothing on ``system``, and so is not there."""
    path = STUBS / f"{module}.pyi"
    if not path.exists():
        return False
    body = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if not _is_heading(node)]
    return all(isinstance(node, ast.If) for node in body) and not any(_names(body, system))


def _is_heading(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


class Foreign(ModuleType):
    """A module of the standard library as it is on another system."""

    def __init__(self, real: ModuleType, system: str) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__["_real"] = real
        self.__dict__["_system"] = system

    def __getattr__(self, name: str) -> Any:
        real, system = self.__dict__["_real"], self.__dict__["_system"]
        if real is sys and name == "platform":
            return system
        if real.__name__ == "os" and name == "name" and system == "win32":
            return "nt"
        if name in missing_names(real.__name__, system):
            raise AttributeError(f"module {real.__name__!r} of {system} has no attribute {name!r}")
        return getattr(real, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_real"], name, value)


def become(system: str) -> None:
    """Let the modules of profrun that are imported from now on see the standard library of ``system``."""
    real_import = builtins.__import__
    seen: dict[str, ModuleType] = {}

    def import_(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        asker = str((globals_ or {}).get("__name__", ""))
        ours = asker == _OURS or asker.startswith(f"{_OURS}.")
        if ours and level == 0 and is_missing(name, system):
            raise ModuleNotFoundError(f"No module named {name!r} on {system}", name=name)
        found = real_import(name, globals_, locals_, fromlist, level)
        top = found.__name__
        if not ours or level or top not in sys.stdlib_module_names:
            return found
        if top != "sys" and not missing_names(top, system):
            return found
        return seen.setdefault(top, Foreign(found, system))

    builtins.__import__ = import_  # type: ignore[assignment]  # its stub has other names of arguments
    _hide_folders_of_linux()


def _hide_folders_of_linux() -> None:
    """An attempt to open a file of /proc, /sys or /dev fails, but for /dev/null."""

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and isinstance(args[0], str | bytes):
            path = args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]
            if path.startswith(("/proc/", "/sys/", "/dev/")) and path != "/dev/null":
                raise FileNotFoundError(2, "not on this system", path)

    sys.addaudithook(watch)


def main() -> None:
    """Carry out command lines of profrun on another system."""
    become(sys.argv[1])
    from profrun.cli import run

    for line in sys.stdin:
        out, err = Printed(), Printed()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(json.loads(line))
        print(json.dumps({"code": code, "out": out.text(), "err": err.text()}), flush=True)


class Printed(io.TextIOWrapper):
    """What a command prints, in the encoding of a Windows pipe: it refuses what that does not have."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="cp1252", errors="strict", newline="\n", write_through=True)

    def text(self) -> str:
        """Everything that was printed."""
        self.seek(0)
        return self.read()


if __name__ == "__main__":
    main()
