#!/bin/bash
#SBATCH --job-name=profrun:transformer-20260101T000000Z-abcd
#SBATCH --array=0-7%1
#SBATCH --output=/shared/runs/transformer-20260101T000000Z-abcd/slurm/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --time=00:37:00
#SBATCH --signal=URG@360
#SBATCH --nodes=64
#SBATCH --ntasks-per-node=8

run=/shared/runs/transformer-20260101T000000Z-abcd
trials=(
    000-baseline-none-r1
    001-optimised-none-r1
    002-baseline-none-blocking-r1
    003-optimised-none-blocking-r1
    004-baseline-nsys-r1
    005-optimised-nsys-r1
    006-baseline-nsys-blocking-r1
    007-optimised-nsys-blocking-r1
)
id=${trials[$SLURM_ARRAY_TASK_ID]}
trial=$run/trials/$id

# Started again (node lost, preempted): what the attempt before left is moved aside whole, and counted.
aside() {
    attempt=$(sed -n 's/.*"attempt": *\([0-9]*\).*/\1/p' "$trial/command.json" | head -n 1)
    mkdir -p "$trial/attempts/${attempt:=1}"
    cp "$trial/command.json" "$trial/attempts/$attempt/"
    find "$trial" -mindepth 1 -maxdepth 1 ! -name attempts ! -name command.json ! -name private.json \
        -exec mv -t "$trial/attempts/$attempt" {} +
    sed "s/\"attempt\": *$attempt/\"attempt\": $((attempt + 1))/" \
        "$trial/attempts/$attempt/command.json" >"$trial/command.json.new" &&
        mv "$trial/command.json.new" "$trial/command.json"
    mkdir -p "$trial/raw"
}

# srun waits for ever for a step whose slurmstepd was killed: it is ended 30 s after the end of its trial.
watch() {
    local ended=0 idle
    exec {idle}<> <(:)
    until [ "$ended" -ge 30 ]; do
        read -rt 5 -u "$idle"
        kill -0 $$ 2>/dev/null || return
        if [ -e "$trial/exit.json" ] &&
            [ -z "$(find "$trial/hook" -name "alive.rank*" -mmin -2 2>/dev/null)" ]; then
            ended=$((ended + 5))
        fi
    done
    local cancelled=1
    for step in $(squeue -h --steps -j "$SLURM_JOB_ID" -o "%i|%j" | sed -n "s/|profrun:$id\$//p"); do
        echo "profrun: step $step goes on although $id has ended, and is cancelled"
        trap "" TERM # srun may end before scancel returns, and then the script ends this watch
        scancel --quiet "$step" && cancelled=0
    done
    return $cancelled
}
watched() { # COMMAND...: run it, and watch it meanwhile
    watch &
    "$@"
    local code=$?
    # Slurm goes on counting what a cancelled step held as used: later steps share it.
    { kill $!; wait $!; } 2>/dev/null && overlap=--overlap
    return "$code"
}

if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
    if grep -qs '"state": *"finished"' "$trial/exit.json"; then exit 0; fi
    aside
fi

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export USER="${USER:-$(id -un)}"  # ch-run refuses to start without it
# Many ranks: the in-job part is copied to each node once, and removed at the end.
staged=/tmp/profrun-$SLURM_JOB_ID.$$
on_nodes() {
    srun --overlap --job-name=profrun-bundle --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" \
        --ntasks-per-node=1 sh -c "$1" bundle "$staged" "$run/bundle" </dev/null
}
on_nodes 'umask 077; to=$1.$SLURM_NODEID
    mkdir "$to.part" && cp -r "$2/." "$to.part" && mv "$to.part" "$to"' ||
    echo "profrun: not every node has a copy of the in-job part: ranks on the others use $run/bundle"
trap 'on_nodes "rm -rf \"\$1.\$SLURM_NODEID\" \"\$1.\$SLURM_NODEID.part\""' EXIT
watched srun --kill-on-bad-exit=0 --wait=2160 --job-name="profrun:$id" ch-run --write --bind=/shared/me/project:/shared/me/project --bind=/shared/runs/transformer-20260101T000000Z-abcd:/shared/runs/transformer-20260101T000000Z-abcd --cd=/shared/me/project /images/torch -- sh -c 'bundle=$1.$SLURM_NODEID; [ -O "$bundle/run.py" ] || bundle=$2; exec python3 "$bundle/run.py" "$3"' wrapper "$staged" "$run/bundle" "$trial"
