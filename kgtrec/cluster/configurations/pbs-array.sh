#!/bin/bash
# One ranking as a job array on PBS: every task ranks its shard, and none waits for another.
#
#   id=$(qsub pbs-array.sh)
#   echo 'cd "$PBS_O_WORKDIR"; /shared/venv/bin/kgtrec merge shards/ -o ranks.parquet' |
#     qsub -W depend=afterok:"$id" -q compute -l select=1:ncpus=1:mem=16GB
#
# The numbers of -J and SHARDS go together. Shards that are there, whole and of these inputs, are
# left as they are. On Torque, write `#PBS -t 1-16` and $PBS_ARRAYID.
#PBS -N kgtrec
#PBS -q compute
#PBS -l walltime=04:00:00
#PBS -l select=1:ncpus=4:mem=8GB
#PBS -J 1-16

SHARDS=${SHARDS:-16}
cd "$PBS_O_WORKDIR" || exit 1
source /shared/venv/bin/activate
kgtrec rank --graph FB15k-237 --scores model.npz -o shards/ \
  --shard "$PBS_ARRAY_INDEX/$SHARDS" --threads 4 --memory 6GB
