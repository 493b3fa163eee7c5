#!/bin/bash
#SBATCH --job-name=profrun:transformer-20260101T000000Z-abcd
#SBATCH --output=/shared/runs/transformer-20260101T000000Z-abcd/slurm/allocation0.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --time=01:54:00
#SBATCH --signal=URG@360
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=2
#SBATCH --partition=gpu

run=/shared/runs/transformer-20260101T000000Z-abcd
turns=$run/slurm/allocation0.turns  # trials, in the order in which they run
said=$run/slurm/allocation0.said    # what became of each, which profrun reads

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

say() { echo "$*" >>"$said"; }

# Seconds until the allocation ends; nothing where it has no end, or Slurm does not say.
seconds_left() {
    squeue -h -j "$SLURM_JOB_ID" -o %L 2>/dev/null | awk '/^[0-9]/ {
        split("1 60 3600 86400", unit, " ")
        for (n = split($1, part, /[-:]/); n; n--) left += part[n] * unit[++i]
        print left
    }'
}

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
overlap="" # or --overlap, see watched
restarted=${SLURM_RESTART_COUNT:-0}
if [ "$restarted" -gt 0 ]; then say restart; fi
while read -r id <&3; do
    trial=$run/trials/$id
    if [ "$restarted" -gt 0 ] && grep -qsx "begin $id" "$said"; then
        if [ -e "$trial/exit.json" ] && ! grep -q '"silent": *\[$' "$trial/exit.json" &&
            ! { grep -q '"state": *"timeout"' "$trial/exit.json" &&
            grep -q '"stopped_by": *"SIG' "$trial/exit.json"; }; then continue; fi
        aside
    fi
    say "begin $id"
    if [ -e "$trial/cancel" ] || [ -e "$run/cancel" ]; then
        say "skip $id cancelled"
        continue
    fi
    left=$(seconds_left)
    if [ -n "$left" ] && [ "$left" -lt 420 ]; then
        say "skip $id time"
        continue
    fi
    watched srun --kill-on-bad-exit=0 --wait=960 --job-name="profrun:$id" $overlap --cpus-per-task=8 python3 "$run/bundle/run.py" "$trial" \
        >>"$run/slurm/allocation0.$id.log" 2>&1 </dev/null 3<&-
    say "end $id $?"
done 3<"$turns"
