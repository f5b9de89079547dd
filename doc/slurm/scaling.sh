#!/bin/sh
# scaling.sh - how chex-train scales: short runs of 1, 2, 4 ... ranks, one after the other, in one Slurm job
#
#     sbatch scaling.sh runs/scaling -d shards                      one node: 1, 2 and 4 GPUs
#     sbatch --nodes=4 scaling.sh runs/scaling -d shards            four nodes: also 8 and 16 GPUs
#     sbatch --export=ALL,STEPS=500 scaling.sh runs/scaling -d shards
#
# The first word is a folder: the runs are in 1, 2, 4 ... there, and the figure is scaling.svg.  All other words go to
# chex-train.  --batch counts the images of each rank, so the global batch grows with the ranks (weak scaling).  A run
# makes STEPS steps (200) and evaluates nothing.  A job that is submitted again measures all runs again.
#
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=chex-scaling
#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=8
#SBATCH --time=1:00:00
# Nodes of one leaf switch, if they become free within an hour; otherwise any nodes (sbatch --switches=COUNT@TIME).
#SBATCH --switches=1@1:00:00

case ${1:--} in -*) echo "usage: sbatch scaling.sh FOLDER -d SHARDS [chex-train options]" >&2 && exit 2 ;; esac
out=$1
shift
mkdir -p "$out" || exit 4

counts=1 ranks=1
while [ "$ranks" -lt "$SLURM_NTASKS" ]; do
    ranks=$((2 * ranks < SLURM_NTASKS ? 2 * ranks : SLURM_NTASKS))
    counts="$counts $ranks"
done

each=$((SLURM_NTASKS / SLURM_JOB_NUM_NODES)) # ranks of a node
for ranks in $counts; do
    srun --mpi=pmix -K --nodes=$(((ranks + each - 1) / each)) --ntasks="$ranks" \
        --cpus-per-task="${SLURM_CPUS_PER_TASK:-8}" chex-train --stage "${TMPDIR:-/tmp}" "$@" -o "$out/$ranks" \
        --resume none --max-steps "${STEPS:-200}" --epochs 1000 --eval-every never --checkpoint-every never || exit
done

set --
for ranks in $counts; do set -- "$@" "$out/$ranks"; done
exec chex-inspect scaling "$@" -o "$out/scaling.svg"
