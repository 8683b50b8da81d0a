#!/usr/bin/env bash
# End what up.sh started, with all its jobs, and remove its files; SLURM's packages stay.
set -euo pipefail

state=/var/tmp/paci-slurm

[ -d $state ] || { echo "SLURM is down already"; exit; }
timeout 10 scancel --user="$(id -un)" 2>/dev/null || true
for _ in $(seq 20); do
    [ -n "$(timeout 10 squeue -h 2>/dev/null)" ] || break
    sleep 0.5
done
for daemon in slurmd slurmctld munged; do
    [ -e $state/$daemon.pid ] || continue
    pid=$(cat $state/$daemon.pid)
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 40); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.25
    done
    kill -9 "$pid" 2>/dev/null && echo "$daemon had to be killed" || true
done
rm -rf $state /etc/slurm/slurm.conf /etc/slurm/cgroup.conf
echo "SLURM is down"
