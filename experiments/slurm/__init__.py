"""Runs on a SLURM cluster, in the order in which a run meets them.

submission   which runs of a sweep to submit, each once whoever else submits
snapshot     the code as it is now, for jobs to import later
array        what is handed to SLURM, through submitit: an array of jobs, and what a job does
rendezvous   how the ranks of a job find each other
jobs         which runs are whose jobs, and what the queue says of them
log          why a job ended
"""
