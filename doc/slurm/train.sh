#!/bin/sh
# train.sh - chex-train in a Slurm job that may end, or be preempted, before the training does
#
#     sbatch train.sh -d shards -o runs/a               one node, four GPUs
#     sbatch --nodes=4 train.sh -d shards -o runs/a     four nodes, sixteen GPUs
#
# One rank for each GPU.  Two minutes before the time is up each rank gets USR1; a job that makes room for another one
# gets TERM.  The run saves, ends with 75, and is queued again; its next start resumes.  Two minutes must be enough for
# a step and a checkpoint.
#
# --stage copies the shards to $TMPDIR, or to /tmp where Slurm sets none.  Only you can read the copy.  It stays for the
# next job: remove chex-ID-UID there when you no longer need it.
#
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=chex-train
#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=8
#SBATCH --time=4:00:00 --signal=USR1@120 --requeue --open-mode=append
# Nodes of one leaf switch, if they become free within an hour; otherwise any nodes (sbatch --switches=COUNT@TIME).
#SBATCH --switches=1@1:00:00

trap : TERM USR1 # the ranks save; this shell waits for them

srun --mpi=pmix -K --cpus-per-task="${SLURM_CPUS_PER_TASK:-8}" chex-train --stage "${TMPDIR:-/tmp}" "$@"
code=$?

# 75: saved.  8: a rank or its node is lost, and the last checkpoint is complete; three times in a row, since the
# cause may stay.
lost="chex-train-$SLURM_JOB_ID.lost"
again=false
case $code in
75) again=true && rm -f "$lost" ;;
8) echo "$code" >> "$lost" && [ "$(wc -l < "$lost")" -le 3 ] && again=true ;;
*) rm -f "$lost" ;;
esac
if $again; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
