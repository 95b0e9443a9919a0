#!/bin/bash
# One ranking as a job array on SLURM: every task ranks its shard, and none waits for another.
#
#   id=$(sbatch --parsable slurm-array.sh)
#   sbatch --dependency=afterok:$id --partition=compute --mem=16G \
#     --wrap "/shared/venv/bin/kgtrec merge shards/ -o ranks.parquet"
#
# One task again: sbatch --array=7 --export=ALL,SHARDS=16 slurm-array.sh
# (shards that are there, whole and of these inputs, are left as they are).
#SBATCH --job-name=kgtrec
#SBATCH --partition=compute
#SBATCH --time=04:00:00
#SBATCH --array=1-16
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --output=kgtrec-%A-%a.out

source /shared/venv/bin/activate
kgtrec rank --graph FB15k-237 --scores model.npz -o shards/ \
  --shard "$SLURM_ARRAY_TASK_ID/${SHARDS:-$SLURM_ARRAY_TASK_COUNT}" \
  --threads "$SLURM_CPUS_PER_TASK" --memory 6GB
