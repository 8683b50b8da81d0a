"""Run on a SLURM cluster; the modules are in the order in which a run meets them.

submission   choose the runs of a sweep to submit, each once
snapshot     copy the code as it is now, for jobs to import later
array        submit an array of jobs through submitit; what a job does
rendezvous   let the ranks of a job find each other
jobs         record the job of each run, and ask the queue for it
log          read from its log why a job ended
"""
