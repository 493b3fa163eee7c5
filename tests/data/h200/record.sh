#!/usr/bin/env bash
# Records the fixtures of this folder, through profrun itself, on a machine with NVIDIA GPUs.
#   record.sh one OUT    one GPU: the transformer under none, torch, nsys and ncu, and a CUDA graph
#   record.sh two OUT    two GPUs: data-parallel training
# Run it in the repository's root. Needs profrun, torch with CUDA, nsys and ncu.
set -uo pipefail
what=${1:?usage: record.sh one|two OUT} out=$(realpath -m "${2:?usage: record.sh one|two OUT}")
read -ra profrun <<<"${PROFRUN:-profrun}"
runs=$(mktemp -d)
mkdir -p "$out"
submit() {
  local log=$1
  shift
  timeout "${LIMIT:-420}" "${profrun[@]}" submit "$@" --backend local --runs "$runs" >"$out/$log.txt" 2>&1
  echo "rc=$? $log"
  tail -n 40 "$out/$log.txt"
}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
case $what in
  one)
    submit transformer jobs/transformer.yaml --set 'collectors=[none,torch,nsys,ncu]' \
      --set "repeats=${REPEATS:-3}" --set launch_blocking=both
    submit graph tests/data/h200/graph.yaml
    ;;
  two)
    submit ddp tests/data/h200/ddp.yaml
    submit ddp-all tests/data/h200/ddp.yaml --set nsys.capture=all --set 'collectors=[nsys]'
    ;;
esac
# Everything but the Parquet files of the traces, which normalising makes again; reports of ncu hold cubins.
tar -C "$runs" --exclude='*.parquet' --exclude='*.nsys-rep' -cf - . | xz -3 -T0 >"$out/runs.tar.xz"
ls -la "$out"
