"""``profrun status RUN``."""

from __future__ import annotations

from profrun.cli.options import JsonOption, RunArgument, RunsOption, VerboseOption, runs_root
from profrun.cli.output import emit

EXAMPLES = (
    ("profrun status", "the newest run"),
    ("profrun status mlp- -v", "a run by the beginning of its name, with its trials"),
)


def command(
    run: RunArgument = "last",
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Show a run and its trials."""
    from profrun.cli.run_text import show_run
    from profrun.contract.codec import to_json
    from profrun.runner.watch import observed_state
    from profrun.store.run_result import run_result
    from profrun.store.runs import find

    state = observed_state(find(runs_root(runs), run))
    if json_:
        emit(to_json(run_result(state)))
        return
    show_run(state, verbose=verbose)
