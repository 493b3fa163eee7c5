"""A job spec as text, made from a command line: what ``profrun run`` runs and ``profrun init`` writes.

``Draft.of`` takes the words that a user typed; ``short_text`` writes only what was given, ``commented_text``
every key with its meaning, from the declarations that also make the reference page.
"""

from __future__ import annotations

import itertools
import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profrun.contract.profilers import BUILT_IN, NEUTRAL
from profrun.errors import UsageError
from profrun.jobs.dump import yaml_text
from profrun.jobs.kinds import BAD, Kind
from profrun.jobs.nodes import parse
from profrun.jobs.problems import Problems
from profrun.jobs.schema import JOB
from profrun.jobs.sweep import Sweep
from profrun.jobs.tables import Field, Table

_WIDTH = 100
_ACTIVE = ("name", "command", "collectors", "repeats", "schedule")
"""Keys that a commented spec gives in any case; the others stand there as comments."""
_ELSEWHERE = (*BUILT_IN, *NEUTRAL, "cluster")
"""Blocks that a commented spec only names."""


@dataclass(frozen=True)
class Draft:
    """What a job spec gives: key -> value, in the order of the reference."""

    values: dict[str, object]

    @classmethod
    def of(
        cls,
        argv: Sequence[str],
        *,
        name: str | None = None,
        sweeps: Sequence[Sweep] = (),
        collectors: Sequence[str] | None = None,
        repeats: int | None = None,
        steps: int | None = None,
        workdir: str | None = None,
    ) -> Draft:
        """The spec of a command.

        Args:
            argv: the command, split into arguments.
            name: of the job; None: after the command's script or program.
            sweeps: arguments that differ between variants; several make their product.
            steps: how many steps are recorded.

        Raises:
            UsageError: it is not clear where the argument of a sweep belongs.
        """
        matrix = {sweep.name: list(sweep.values) for sweep in sweeps}
        values: dict[str, object] = {
            "name": name or job_name(argv),
            "command": command_text(argv, sweeps),
            "matrix": matrix or None,
            "collectors": list(collectors) if collectors else None,
            "repeats": repeats,
            "schedule": {"active": steps} if steps else None,
            "workdir": workdir,
        }
        return cls({key: value for key, value in values.items() if value is not None})


def short_text(draft: Draft, head: str) -> str:
    """Only what the draft gives, below a comment."""
    return f"# {head}\n{yaml_text(draft.values)}"


def commented_text(draft: Draft, head: Sequence[str]) -> str:
    """Every key of a job spec with its meaning: those of the draft and the most used ones with their values,
    the others as comments."""
    lines = [f"# {line}" for line in head]
    for key, field in JOB.fields.items():
        if key in _ELSEWHERE or (key == "variants" and "matrix" in draft.values):
            continue
        lines += ["", *_comment(field.doc)]
        lines += _entry(key, field, draft.values.get(key), active=key in draft.values or key in _ACTIVE)
    lines += ["", *_comment(f"Further blocks: {', '.join(_ELSEWHERE[1:])}. docs/job-spec.md explains them.")]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH - 2, break_on_hyphens=False)]


def _entry(key: str, field: Field, given: object, *, active: bool) -> list[str]:
    """The lines of one key; a block has one line for each of its keys."""
    if isinstance(field.kind, Table):
        block = given if isinstance(given, dict) else {}
        body = list(_block(field.kind, block, active=active))
        return [f"{key}:" if active else f"# {key}:", *body]
    if given is not None:
        return yaml_text({key: given}).splitlines()
    line = f"{key}: {_example(field)}".rstrip()
    return [line if active else f"# {line}"]


def _block(table: Table[object], given: dict[str, object], *, active: bool) -> Iterator[str]:
    for name, field in table.fields.items():
        value = yaml_text({name: given[name]}).strip() if name in given else f"{name}: {_example(field)}"
        yield f"{'' if active else '# '}  {value:<18} # {field.doc}"


def _example(field: Field) -> str:
    """A value that may stand there: the default, else an example, else nothing (null)."""
    default, example = field.default, str(getattr(field.kind, "example", ""))
    words = "" if " " in field.default_words and field.default_words[0] not in "[{" else field.default_words
    written = str(default) if isinstance(default, (str, int, float)) else ""
    written = written.lower() if isinstance(default, bool) else written
    for text in ("" if default else example, words, written, example):
        if text and _fits(field.kind, text):
            return text
    return ""


def _fits(kind: Kind[object], text: str) -> bool:
    problems = Problems("")
    try:
        return kind.read(parse(text, problems), "", problems) is not BAD and not problems.found
    except UsageError:
        return False


def job_name(argv: Sequence[str]) -> str:
    """A job's name after the script, module or program that a command runs."""
    script = next((Path(word).stem for word in argv if word.endswith(".py")), None)
    module = next((after for word, after in itertools.pairwise(argv) if word == "-m"), "")
    name = script or module.rpartition(".")[2] or Path(argv[0]).name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:64] or "run"


def command_text(argv: Sequence[str], sweeps: Sequence[Sweep] = ()) -> str:
    """A spec's ``command`` that is split into exactly these arguments.

    ``{name}`` of a sweep is its placeholder, every other brace is a brace. A sweep that has no placeholder
    is added at the end, with its argument.

    Raises:
        UsageError: it is not clear where the argument of a sweep belongs.
    """
    known = {sweep.name: sweep for sweep in sweeps}
    words = [_template_word(word, known) for word in argv]
    for sweep in sweeps:
        if not any(f"{{{sweep.name}}}" in word for word in argv):
            words += sweep.appended(argv)
    return " ".join(words)


def _template_word(word: str, known: dict[str, Sweep]) -> str:
    """One argument as it stands in ``command``: quoted where it must be."""
    held = re.compile("|".join(rf"\{{{name}\}}" for name in known)) if known else None
    used = held.findall(word) if held else []
    if held is None or not used:
        return _with_plain_braces(shlex.quote(word))
    sweeps = [known[text[1:-1]] for text in used]
    plain = held.sub("x", word)
    if shlex.quote(plain) == plain and all(not sweep.needs_quotes or word == used[0] for sweep in sweeps):
        return word if not sweeps[0].needs_quotes else sweeps[0].placeholder
    literal = [_with_plain_braces(text.replace("'", "'\"'\"'")) for text in held.split(word)]
    parts = [part for pair in zip(literal, [*used, ""], strict=True) for part in pair]
    return "'" + "".join(parts) + "'"


def _with_plain_braces(text: str) -> str:
    """Text in which each brace is written so that it begins or ends no placeholder."""
    return text.replace("{", "{{").replace("}", "}}")
