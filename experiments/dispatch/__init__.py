"""Where runs happen, all through submitit.

cluster=inline   one after the other, in this process              `dispatch` waits for them
cluster=local    as many at a time as fit, each a process          `dispatch` waits for them
cluster=slurm    jobs of a cluster, each of as many processes as   `submit` leaves them there
                 the run has ranks
"""

from experiments.dispatch.here import dispatch, places
from experiments.dispatch.slurm import Shape, script, submit

__all__ = ["Shape", "dispatch", "places", "script", "submit"]
