#!/bin/sh
# Prints what examples/hosts give on two emulated hosts of two ranks each, and whether one host gives the same bits.
# From the folder of the offline bundle. With two GPUs the hosts share them; with one GPU, all ranks do.
#
#     sh scripts/gpu/emulated-hosts.sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
gpus=$(nvidia-smi -L | wc -l)
by_two="" by_four=""
[ "$gpus" -ge 2 ] || by_two="--import $here/scripts/gpu/share-gpu.mjs"
[ "$gpus" -ge 4 ] || by_four="--import $here/scripts/gpu/share-gpu.mjs"
export NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" BRAID_TOKEN="emulated-$$" MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
folder=$(mktemp -d)

# host N ARGS...: the two ranks of a host
host() {
  n=$1
  shift
  [ "$gpus" -lt 4 ] || export CUDA_VISIBLE_DEVICES="$((2 * n)),$((2 * n + 1))"
  for local in 0 1; do
    NODE_OPTIONS="$by_two" NCCL_HOSTID="host$n" RANK="$((2 * n + local))" WORLD_SIZE=4 LOCAL_RANK="$local" LOCAL_WORLD_SIZE=2 \
      timeout 120 sh "$here/braid" run "$@" &
  done
  wait
}

fingerprints() { grep -o '"fingerprint": *"[0-9a-f]*"' "$1" | tr '\n' ' '; }

for example in allgather-matmul matmul-reduce-scatter matmul-allreduce; do
  for backend in nccl cuda; do
    program="examples/hosts/$example.ts --on cuda --backend $backend --check --repeat 5"
    # shellcheck disable=SC2086 # words
    {
      (host 0 $program --json >"$folder/two") &
      (host 1 $program --json) &
      wait
      NODE_OPTIONS="$by_four" timeout 120 sh "$here/braid" run $program --devices 4 --devices-per-host 2 --json \
        >"$folder/one"
    } 2>"$folder/errors"
    if [ -n "$(fingerprints "$folder/one")" ] && [ "$(fingerprints "$folder/one")" = "$(fingerprints "$folder/two")" ]; then
      echo "ok   $example, --backend $backend: two hosts have the bits of one, $(fingerprints "$folder/two")"
    else
      echo "FAIL $example, --backend $backend: $(fingerprints "$folder/one") $(fingerprints "$folder/two")"
      head -c 2000 "$folder/errors"
    fi
    grep -ao '"ok": *[a-z]*' "$folder/two" | sort | uniq -c
  done
done
rm -r "$folder"
