#!/bin/bash
#SBATCH --job-name=profrun:transformer-20260101T000000Z-abcd
#SBATCH --array=0-7%1
#SBATCH --output=/shared/runs/transformer-20260101T000000Z-abcd/slurm/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --time=00:37:00
#SBATCH --signal=URG@360
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:mi300x:2

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
# The image as one file, made once for all trials of the run. A mark says that it is whole.
image=/shared/runs/transformer-20260101T000000Z-abcd/slurm/image-c0f6c307.sif
if [ ! -e "$image.done" ]; then
    (
        flock 9
        if [ ! -e "$image.done" ]; then
            rm -f /shared/runs/transformer-20260101T000000Z-abcd/slurm/part-image-c0f6c307.sif
            apptainer pull --force /shared/runs/transformer-20260101T000000Z-abcd/slurm/part-image-c0f6c307.sif docker://nvcr.io/nvidia/pytorch:25.12-py3 </dev/null && mv /shared/runs/transformer-20260101T000000Z-abcd/slurm/part-image-c0f6c307.sif "$image" && touch "$image.done"
        fi
    ) >>/shared/runs/transformer-20260101T000000Z-abcd/slurm/image-c0f6c307.sif.log 2>&1 9>>"$image.lock"
fi
if [ ! -e "$image.done" ]; then
    echo "profrun: the image could not be made into a file: $(tail -n 1 /shared/runs/transformer-20260101T000000Z-abcd/slurm/image-c0f6c307.sif.log); each task imports it" >&2
    image=docker://nvcr.io/nvidia/pytorch:25.12-py3
fi
watched srun --kill-on-bad-exit=0 --wait=2160 --job-name="profrun:$id" apptainer exec --rocm --no-home --bind=/shared/me/project:/shared/me/project:ro --bind=/shared/runs/transformer-20260101T000000Z-abcd:/shared/runs/transformer-20260101T000000Z-abcd --pwd=/shared/me/project "$image" python3 "$run/bundle/run.py" "$trial"
