"""Many models x graphs x protocols from one file (`kgtrec batch`).

In: a job file. Out: one dataset of ranks and one summary; finished jobs are not repeated. Open
`batch` first; `job_file` reads and checks the jobs, `records` gives the state of each.
"""
