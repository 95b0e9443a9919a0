"""Many models x graphs x protocols from one file (`kgtrec batch`).

In: a job file. Out: one dataset of ranks and one summary; finished jobs are not repeated. Open
`batch` first; `job_file` reads and checks the `jobs`, `records` gives the state of each.

A batch that is started again resumes at two levels. First, `records.Records` skips finished jobs:
the record of such a job has the hash of its present inputs, and its ranks have the record's
checksum. Second, an unfinished job ranks only what is missing: every part is a file as soon as it
is done. `kgtrec.cluster.plan.PartFiles` reads parts of questions again, `pair_jobs` relations of
pairs. The folder of parts is named after the hash of all that they depend on, so parts of other
inputs are never used. It is removed when the record of the job is written.
"""
