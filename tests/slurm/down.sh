#!/usr/bin/env bash
# End what up.sh of this checkout started, with all its jobs, and remove its files; SLURM's packages
# stay. FORCE=1 ends what another checkout started, too.
set -euo pipefail

state=/var/tmp/paci-slurm
conf=/etc/slurm/slurm.conf
export SLURM_CONF=$conf  # whatever cluster this shell is used to
mark="# written by tests/slurm/up.sh"
here=$(cd "$(dirname "$0")/../.." && pwd -P)

[ -d $state ] || { echo "SLURM is down already"; exit; }
first=$(head -n 1 $conf 2>/dev/null || true)  # nothing, if up.sh did not come that far
case $first in
    "" | "$mark of $here") ;;
    "$mark"*) if [ "${FORCE:-}" != 1 ]; then
        echo "SLURM stays up: its $conf was ${first#\# } (FORCE=1 ends it still)"
        exit
    fi ;;
    *) echo "SLURM stays up: $conf was not written by tests/slurm/up.sh"; exit ;;
esac
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
rm -rf $state $conf /etc/slurm/cgroup.conf
echo "SLURM is down"
