"""``--variant bs=8,16``: an argument of a command that has a different value in each variant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from profrun.contract.points import scalar_of
from profrun.errors import UsageError
from profrun.jobs.command import is_shell, text_of
from profrun.jobs.nodes import Scalar

_FORM = re.compile(r"(-{0,2})([A-Za-z_][A-Za-z0-9_-]*)", re.ASCII)


@dataclass(frozen=True)
class Sweep:
    """An argument and its values.

    Attributes:
        name: of the value in a job spec: letters, digits and '_'.
        argument: how the command takes it: ``--bs``.
        values: one for each variant.
        is_flag: the argument takes no value: it is there or not, and the values are '' and itself.
        typed: what the user typed.
    """

    name: str
    argument: str
    values: tuple[Scalar, ...]
    is_flag: bool
    typed: str

    @property
    def needs_quotes(self) -> bool:
        """Whether a value would not be one argument if its placeholder stood without quotes."""
        return any(shlex.quote(text_of(value)) != text_of(value) for value in self.values)

    @property
    def placeholder(self) -> str:
        """The placeholder as an argument of its own. In quotes, the '' of a flag would be an argument."""
        return f"'{{{self.name}}}'" if self.needs_quotes and not self.is_flag else f"{{{self.name}}}"

    def appended(self, argv: Sequence[str]) -> list[str]:
        """The words that a spec's ``command`` gets at its end.

        Raises:
            UsageError: the command has the argument already, or its end may not be the place for it.
        """
        said = f"--variant {self.typed}"
        held = f"{{{self.name}}}"
        plain = self.argument.replace("_", "-")
        if any(word.partition("=")[0].replace("_", "-") == plain for word in argv):
            where = f"replace it by '{held}'" if self.is_flag else f"write '{held}' in place of its value"
            raise UsageError(f"{said}: the command has {self.argument} already", fix=where)
        shell = is_shell(argv[0])
        if shell or "--" in argv:
            why = "a shell runs it" if shell else "it has a '--' of its own"
            raise UsageError(
                f"{said}: the end of the command may not be the place for {self.argument}",
                why=why,
                fix=f"write '{held}' where the value belongs",
            )
        if not self.typed.startswith("-") and len(self.name) == 1:
            raise UsageError(
                f"{said}: is the argument -{self.name} or --{self.name}?",
                fix=f"write it with its dashes, or write '{held}' in the command where the value belongs",
            )
        return [self.placeholder] if self.is_flag else [self.argument, self.placeholder]


def sweep_of(text: str) -> Sweep:
    """A sweep as it is typed: ``bs=8,16``, ``--bs=8,16``, or ``compile`` for without and with ``--compile``.

    Raises:
        UsageError: it has another form.
    """
    said = f"--variant {text}"
    argument, equals, given = text.partition("=")
    form = _FORM.fullmatch(argument.strip())
    if not form:
        raise UsageError(
            f"{said}: '{argument}' cannot be the name of an argument",
            fix="write one like --variant bs=8,16; for other places write {bs} in the command",
        )
    name = form[2].replace("-", "_")
    option = f"{form[1] or '--'}{form[2]}"
    if not equals:
        return Sweep(name, option, ("", option), True, text)
    values = [value.strip() for value in given.split(",")]
    if not all(values):
        raise UsageError(f"{said}: a value is empty", fix=f"write one like --variant {argument}=8,16")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise UsageError(f"{said}: {twice} is given twice", fix="give each value once")
    return Sweep(name, option, tuple(scalar_of(value) for value in values), False, text)
