"""One run: what it is made from, and its work.

run                    data, cut, costs and folder of a run that has not started
folder identity        the run folder, and what the run's numbers depend on
recorded longer        whether a folder holds the run of a configuration, or a shorter one
weights                the initial weights of a run from another run
environment starts     the machine and the code, and the times of each start, environment.json
text                   its micro-batches, of both splits of the corpus
cache cut costs        measurements that the runs of a folder share
stopwatch              the clock that measures them
stages pipelines       a stage's module, and the pipeline on one of the executors of `paci`
launcher rank          ranks that torchrun or SLURM started, and how they join each other
execution              from start to end, in this process or in one for each rank
task                   the work of a run, of which there are two kinds:
training throughput    training on a budget of tokens, and measuring tokens/s
timelines              the times of all actions, on disk
"""
