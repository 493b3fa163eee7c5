"""What a pod's container starts: a small POSIX script in front of the wrapper. Pure.

The wrapper takes the script's place (``exec``), so it is the container's first process and gets the kubelet's
SIGTERM itself. It handles that signal, which the kernel would otherwise not deliver to a first process.
"""

from __future__ import annotations

NOT_THERE = 199
"""Exit code of the script: the volume does not hold the run. No trial of the Job would find it."""
CANCELLED = 130
INTERRUPTED = 198
"""Exit code of the script: a node of a trial of several was started a second time."""

_CHECK = f"""\
set -eu
trap 'exit 143' TERM
{{choose}}trial=$PROFRUN_RUN/trials/$1
if ! [ -r "$PROFRUN_RUN/bundle/run.py" ] || ! [ -r "$trial/command.json" ]; then
    echo "profrun: $trial is not in the volume, or may not be read by $(id -u):$(id -g)" >&2
    exit {NOT_THERE}
fi
if [ -e "$trial/cancel" ]; then exit {CANCELLED}; fi
"""

_ATTEMPT = """\
# How an earlier pod's trial ended counts, unless what took the pod away ended the trial too.
if [ -e "$trial/exit.json" ] && ! { grep -q '"state": *"timeout"' "$trial/exit.json" &&
    grep -q '"stopped_by": *"SIG' "$trial/exit.json"; }; then exit 0; fi
if [ -e "$trial/pod" ] && [ "$(cat "$trial/pod")" != "$PROFRUN_POD" ]; then
    # Node lost, evicted, preempted: what the attempt before left is moved aside whole, and counted.
    attempt=$(sed -n 's/.*"attempt": *\\([0-9]*\\).*/\\1/p' "$trial/command.json" | head -n 1)
    old=$trial/attempts/${attempt:=1}
    mkdir -p "$old"
    for file in "$trial"/* "$trial"/.[!.]*; do
        case ${file##*/} in attempts | command.json | private.json) continue ;; esac
        if [ -e "$file" ]; then mv "$file" "$old/"; fi
    done
    cp "$trial/command.json" "$old/command.json"
    next=$((attempt + 1))
    sed "s/\\"attempt\\": *$attempt/\\"attempt\\": $next/" "$old/command.json" >"$trial/command.json.new"
    mv "$trial/command.json.new" "$trial/command.json"
    mkdir -p "$trial/raw"
fi
echo "$PROFRUN_POD" >"$trial/pod"
"""

_NODE = """\
mark=$trial/pod.$JOB_COMPLETION_INDEX
if [ -e "$mark" ] && [ "$(cat "$mark")" != "$PROFRUN_POD" ]; then
    echo "profrun: node $JOB_COMPLETION_INDEX was interrupted: resume repeats the whole trial" >&2
    exit {interrupted}
fi
echo "$PROFRUN_POD" >"$mark"
export RANK="$JOB_COMPLETION_INDEX" LOCAL_RANK=0 WORLD_SIZE={nodes}
export MASTER_ADDR={address} MASTER_PORT={port}
"""

_START = 'exec python3 "$PROFRUN_RUN/bundle/run.py" "$trial"\n'

PROBE = """\
set -eu
hostname >"$PROFRUN_RUN/node"
python3 "$PROFRUN_RUN/bundle/run.py" --preflight --json >"$PROFRUN_RUN/answer.new"
mv "$PROFRUN_RUN/answer.new" "$PROFRUN_RUN/answer.json"
"""
"""The probe's whole script (``probe``)."""


def script_of_many(*, ranks: int | None = None) -> str:
    """One node a trial: the Job's index chooses among the trials, which are the script's arguments.

    Args:
        ranks: processes that the command's own launcher (torchrun) makes; None: it has none.
    """
    launcher = "" if ranks is None else f"export PET_NNODES=1 PET_NPROC_PER_NODE={ranks}\n"
    return _CHECK.format(choose='shift "$JOB_COMPLETION_INDEX"\n') + _ATTEMPT + launcher + _START


def script_of_nodes(*, nodes: int, address: str, port: int, ranks: int | None = None) -> str:
    """Several nodes for the one trial that is the argument: the Job's index is the node.

    Args:
        address: name of the first node's pod, as the others find it.
    """
    node = _NODE.format(interrupted=INTERRUPTED, nodes=nodes, address=address, port=port)
    launcher = (
        ""
        if ranks is None
        else f'export PET_NNODES={nodes} PET_NPROC_PER_NODE={ranks} PET_NODE_RANK="$RANK" '
        'PET_MASTER_ADDR="$MASTER_ADDR" PET_MASTER_PORT="$MASTER_PORT"\n'
    )
    return _CHECK.format(choose="") + node + launcher + _START
