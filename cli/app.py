"""The ``profrun`` command: its subcommands, each imported only when it is called."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import typer
import typer.core
import typer.main
from typer._completion_classes import completion_init

from profrun.cli.asked import add_to

COMMANDS: dict[str, dict[str, str]] = {
    "Run a job": {
        "run": "Profile a command: profrun run -- python train.py.",
        "wrap": "Record a command in every rank that another launcher starts.",
        "submit": "Plan a job, run its trials, make traces and a report.",
        "init": "Write a commented job file: profrun init train.py.",
        "demo": "Run the example: a small transformer in two variants, compared.",
        "runs": "List the runs.",
        "status": "Show a run and its trials.",
        "logs": "Show what a trial printed.",
        "cancel": "Stop a run and keep what was recorded.",
        "resume": "Continue a run that was interrupted; nothing that finished is repeated.",
        "bundle": "Pack a run to hand it on: traces, numbers, report; no secrets, no raw files.",
        "rm": "Remove runs from the disk.",
        "prune": "Remove old runs from the disk.",
    },
    "Look at a trace": {
        "normalize": "Turn the files of any profiler into one trace.",
        "summary": "Show GPU utilization, steps, kernels, operators and modules of a trace.",
        "diagnose": "Say what slows the recorded program down, and what could be gained.",
        "query": "Answer an SQL query over a trace.",
        "export": "Write a trace for Perfetto, Chrome, speedscope or pprof.",
        "open": "Show a run's report in the browser, or a trace in Perfetto.",
        "report": "Write one self-contained HTML file about a run, traces, or all runs.",
    },
    "Compare": {
        "compare": "Compare two sets of traces or runs: what changed, by how much, how sure.",
        "blocking": "Show how much slower each variant gets with CUDA_LAUNCH_BLOCKING=1.",
        "improve": "Try what findings advise, and say what it gave: each change is proven, or it is not.",
        "baseline": "Keep a run's numbers to compare with later.",
    },
    "Set up": {
        "doctor": "Check which profilers work here, and how to fix those that do not.",
        "images": "List, build, inspect and pin container images.",
        "job": "Check a job spec, print the schema of job specs, or copy a job that comes with profrun.",
        "completion": "Print the script that lets a shell complete commands, options, runs and trials.",
    },
}
"""Command -> one line, by section. A test holds each line equal to the command's own help."""

EXAMPLES = (
    ("profrun run -- python train.py", "what a step costs, and what would help"),
    ("profrun open", "the report of the newest run"),
    ("profrun compare last/old-none vs last/new-none", "two of its variants"),
)


class CompletionItem(NamedTuple):
    """A word that a shell offers, as click's class of this name; typer has no public name for that."""

    value: str
    help: str
    type: str = "plain"


MODULES = {"run": "run_command"}
"""Command -> module where they differ: ``profrun.cli.run`` is the function that runs a command line."""


class LazyGroup(typer.core.TyperGroup):
    """Knows every command's name and line; imports a command only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the sections."""
        return [name for section in COMMANDS.values() for name in section]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now; None when there is none of that name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        return load_command(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As click does, with the nearest names from all commands, loaded or not."""
        wrong = args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx)
        if wrong and not ctx.resilient_parsing:  # not while a shell asks for completions
            ctx.fail(no_such_command(args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Options, or commands from the table above: no command is imported for that."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        rows = [row for section in COMMANDS.values() for row in section.items()]
        return [CompletionItem(name, line) for name, line in rows if name.startswith(incomplete)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples, then the exit codes."""
        from profrun.cli.help import write_examples

        write_examples(EXAMPLES, formatter)
        super().format_epilog(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by section, from the table above."""
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))


def no_such_command(name: str, names: list[str]) -> str:
    """What to say about a command that does not exist."""
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(item) for item in near)}?" if near else "see `profrun --help`"
    return f"no command {name!r}; {hint}"


def module_of(name: str) -> ModuleType:
    """The module of a command, imported now."""
    return importlib.import_module(f"profrun.cli.{MODULES.get(name, name)}")


def load_command(name: str) -> Any:
    """Import a command's module: it offers ``command`` (a function) or ``app`` (a group)."""
    from profrun.cli.help import Command, Group, with_examples

    module = module_of(name)
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        settings = getattr(module, "CONTEXT", {})
        app.command(name, context_settings=settings)(module.command)
    else:
        app.info.cls = Group
    for info in app.registered_commands:
        info.cls = Command
    found = typer.main.get_command(app)
    found.name = name
    return with_examples(add_to(found), getattr(module, "EXAMPLES", ()), f"profrun {name}")


def build() -> Any:
    """The whole command, ready for ``main(args, standalone_mode=False)``."""
    app = typer.Typer(
        cls=LazyGroup,
        add_completion=False,
        rich_markup_mode=None,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="One YAML job, profiled on NVIDIA or AMD, into one trace format, with numbers you can trust.",
        epilog="Exit codes: 0 fine, 1 worse or failed, 2 inconclusive, 64 wrong usage, 65 bad input, "
        "69 something needed is not there, 70 a bug of profrun.",
    )
    app.callback()(_top)
    completion_init()  # tells typer the shells; else it answers "Shell source not supported"
    return add_to(typer.main.get_command(app))


def _top(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("-V", "--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from profrun.version import VERSION

        print(f"profrun {VERSION}")
        raise typer.Exit(0)
    if ctx.invoked_subcommand is None:
        from profrun.cli.overview import show_next_steps

        show_next_steps()
