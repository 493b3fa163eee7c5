"""Programs with known gains, for `profrun improve`: ``python bench/improve.py known known.json [--gpus K]``.

``known`` runs each program of ``programs/improve`` that has a planted stall, without profrun, as it is and
with its remedy, in turns. It prints the gain of each, and writes all times to the file.

    python bench/improve.py known known.json --gpus 4
    python bench/improve.py known known.json --only slow_loader,zero_grad --repeats 5

``planted`` improves these programs with ``profrun improve``, and ``real`` improves programs as people
write them. ``clean`` makes A/A experiments on programs without a stall: each experiment changes nothing, so
none may be proven. All three write one document per program. ``planted --only`` takes programs of ``real``,
too: in one call they share the GPUs.

    python bench/improve.py planted OUT --gpus 4 --known 3 --words='--budget 30m'
    python bench/improve.py real OUT --gpus 4
    python bench/improve.py planted OUT --gpus 4 --share 2 --known 3 --only hf_trainer,zero_grad
    python bench/improve.py clean OUT --gpus 4 --experiments 10

``page`` makes docs/improve-measured.md of such documents. Those that are kept lie in tests/data/improve, in a
folder for each machine, with the known gains beside it.

    python bench/improve.py page docs/improve-measured.md tests/data/improve

With ``--gpus K``, K programs run side by side, each on a GPU and on cores of its own. With ``--share S``, S
programs have one GPU in turns: most of a trial is imports and analysis, which use no GPU. Two are enough: a
trial of 12 s needs the GPU for 4 to 7 s. Several calls can share GPUs in this way, each with cores of its own
(``taskset``). Without ``--gpus``, all run on the CPU one after another: only those whose stall is there
without a GPU, too, unless ``--only`` names others.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from improving import known, stages
from programs.improve.table import CLEAN, PLANTED, REAL, Program


def chosen(programs: Sequence[Program], only: str, gpus: int) -> list[Program]:
    """The programs that are asked for.

    Raises:
        SystemExit: there is no program of that name.
    """
    if not only:
        return [program for program in programs if gpus or program.on_cpu]
    named = {program.name: program for program in programs}
    unknown = set(only.split(",")) - named.keys()
    if unknown:
        raise SystemExit(f"no program is called {', '.join(sorted(unknown))}; there are {', '.join(named)}")
    return [named[name] for name in only.split(",")]


def run_known(args: argparse.Namespace) -> int:
    """The subcommand ``known``; returns how many programs could not be measured in full."""
    asked = known.Asked(args.out, args.gpus, args.repeats, args.steps, args.limit, args.python)
    done = known.measure(chosen(PLANTED, args.only, args.gpus), asked)
    return sum(bool(one.problem) for one in done)


def run_planted(args: argparse.Namespace) -> int:
    """The subcommand ``planted``; returns how many programs could not be improved."""
    real_words = tuple(shlex.split(args.real_words))
    asked = replace(_asked(args), remedy=args.remedy, known=args.known, real_words=real_words)
    programs = (*PLANTED, *REAL) if args.only else PLANTED
    return stages.improve_all(chosen(programs, args.only, args.gpus), asked)


def _asked(args: argparse.Namespace, *words: str) -> stages.Asked:
    """How programs are improved with everything that findings ask for, or that ``words`` and --words name."""
    words = (*words, *shlex.split(args.words))
    return stages.Asked(
        args.out.resolve(), args.gpus, words, limit_s=args.limit, python=args.python, share=args.share
    )


def run_real(args: argparse.Namespace) -> int:
    """The subcommand ``real``; returns how many programs could not be improved."""
    return stages.improve_all(chosen(REAL, args.only, args.gpus), _asked(args))


def run_clean(args: argparse.Namespace) -> int:
    """The subcommand ``clean``; returns how many programs could not be measured."""
    names = [word for number in range(args.experiments) for word in ("--only", f"nothing={number + 1}")]
    return stages.improve_all(chosen(CLEAN, args.only, args.gpus), _asked(args, *names))


def run_page(args: argparse.Namespace) -> int:
    """The subcommand ``page``."""
    from improving import page  # needs profrun, which the programs alone do not

    args.out.write_text(page.page(args.folder), encoding="utf-8")
    return 0


def main() -> int:
    """Read the command line and run the subcommand."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("known", help="measure the gain of each remedy, without profrun")
    command.set_defaults(run=run_known)
    _common(command, "the file that is written", 120.0)
    command.add_argument("--repeats", type=int, default=3, help="runs of each version")
    command.add_argument("--steps", type=int, help="steps of a run")
    command = commands.add_parser("planted", help="profrun improve on programs with a stall")
    command.set_defaults(run=run_planted)
    _improving(command)
    command.add_argument("--remedy", action="store_true", help="try only the change that cures the stall")
    command.add_argument("--known", type=int, default=0, help="runs of each version without profrun, before")
    command.add_argument(
        "--real-words", default="", help="arguments for programs of 'real' that --only names"
    )
    command = commands.add_parser("real", help="profrun improve on programs as people write them")
    command.set_defaults(run=run_real)
    _improving(command)
    command = commands.add_parser("clean", help="A/A experiments on programs without a stall")
    command.set_defaults(run=run_clean)
    _improving(command)
    command.add_argument("--experiments", type=int, default=10, help="A/A experiments per program")
    command = commands.add_parser("page", help="make the page of what was measured")
    command.set_defaults(run=run_page)
    command.add_argument("out", type=Path, help="the page that is written")
    command.add_argument("folder", type=Path, help="the documents: a folder for each machine")
    args = parser.parse_args()
    code: int = args.run(args)
    return min(code, 100)


def _common(command: argparse.ArgumentParser, out: str, limit: float) -> None:
    command.add_argument("out", type=Path, help=out)
    command.add_argument("--gpus", type=int, default=0, help="GPUs that are used; 0: the CPU")
    command.add_argument("--limit", type=float, default=limit, help="seconds after which a call is killed")
    command.add_argument("--only", default="", metavar="NAME,...", help="these programs only")
    command.add_argument("--python", default=sys.executable, help="the Python that has torch")


def _improving(command: argparse.ArgumentParser) -> None:
    """The arguments of all subcommands that call ``profrun improve``."""
    _common(command, "the folder that is written", 1200.0)
    command.add_argument("--words", default="", help="further arguments of profrun improve")
    command.add_argument(
        "--share",
        type=int,
        default=1,
        help="programs that use a GPU in turns; while one measures, the others start",
    )


if __name__ == "__main__":
    sys.exit(main())
