#!/bin/bash
#SBATCH --job-name=profrun:transformer-20260101T000000Z-abcd
#SBATCH --array=0-7%1
#SBATCH --output=/shared/runs/transformer-20260101T000000Z-abcd/slurm/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --time=00:37:00
#SBATCH --signal=TERM@360
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2

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
ulimit -c 0
watched srun --kill-on-bad-exit=0 --wait=2160 --job-name="profrun:$id" bash -c 'limits=(--cpuset-cpus="$(awk '"'"'/^Cpus_allowed_list/ {print $2}'"'"' /proc/self/status)")
memory=${SLURM_MEM_PER_NODE:-$((${SLURM_MEM_PER_CPU:-0} * ${SLURM_CPUS_ON_NODE:-0}))}
memory=$((memory / ${SLURM_NTASKS_PER_NODE:-1}))
# NCCL registers memory; an engine without CAP_SYS_RESOURCE (bit 24) may not raise that limit.
caps=$(awk '"'"'/^CapEff/ {print $2}'"'"' "/proc/$(cat /var/run/docker.pid 2>/dev/null)/status" 2>/dev/null)
if (((0x${caps:-1000000} >> 24) & 1)); then limits+=(--ulimit=memlock=-1); fi
if [ "$memory" -gt 0 ]; then limits+=(--memory="${memory}m" --memory-swap="${memory}m"); fi
if [ -z "${SLURM_STEP_GPUS:-}" ]; then
    echo "profrun: Slurm does not say which GPUs this step has (SLURM_STEP_GPUS is not set)," \
        "and a container would get those of other jobs; set cluster.exclusive: true for whole nodes" >&2
    exit 69
fi
minors=($(cat $(ls -dv /sys/class/kfd/kfd/topology/nodes/*/properties) | awk '"'"'$1 == "drm_render_minor" && $2 > 0 {print $2}'"'"'))
gpus=(--env=NVIDIA_VISIBLE_DEVICES=void --device=/dev/kfd --group-add="$(stat -c %g /dev/kfd)")
for gpu in ${SLURM_STEP_GPUS//,/ }; do
    if [ -z "${minors[gpu]:-}" ]; then echo "profrun: no render node of GPU $gpu is here" >&2; exit 69; fi
    node=/dev/dri/renderD${minors[gpu]}
    gpus+=(--device="$node" --group-add="$(stat -c %g "$node")")
done
exec docker run --rm --init --network=none --cap-drop=ALL --security-opt=no-new-privileges --read-only --tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size=8589934592 --shm-size=17179869184 --ulimit=stack=67108864 --env=HOME=/tmp --env=RANK --env=LOCAL_RANK --env=WORLD_SIZE --env=MASTER_ADDR --env=MASTER_PORT --env=SLURM_PROCID --env=SLURM_LOCALID --env=SLURM_NODEID --env=SLURM_NTASKS --env=SLURM_STEP_NUM_TASKS --env=SLURM_STEP_NODELIST --env=SLURM_JOB_NODELIST --env=SLURM_JOB_ID --env=SLURMD_NODENAME --env=PET_NNODES --env=PET_NPROC_PER_NODE --env=PET_NODE_RANK --env=PET_MASTER_ADDR --env=PET_MASTER_PORT --user="$(id -u):$(id -g)" --env=USER="$(id -un)" --env=LOGNAME="$(id -un)" "${limits[@]}" "${gpus[@]}" --mount=type=bind,src=/shared/me/project,dst=/shared/me/project,readonly --mount=type=bind,src=/shared/runs/transformer-20260101T000000Z-abcd,dst=/shared/runs/transformer-20260101T000000Z-abcd --workdir=/shared/me/project rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0 "$@"' docker-step python3 "$run/bundle/run.py" "$trial"
