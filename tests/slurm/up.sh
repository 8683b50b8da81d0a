#!/usr/bin/env bash
# A throwaway SLURM on this machine, from Debian's packages: one node, no accounting. `down.sh`
# ends it. Idempotent. A slurm.conf that we did not write is left alone; ours says in its first line
# which checkout started this SLURM, for others not to end it.
#   partition main   the default; jobs of at most two days
# What is unlike a real cluster is so for tests to be short: jobs that are requeued wait five
# seconds instead of two minutes, and are killed five seconds after they were told to end.
set -euo pipefail

state=/var/tmp/paci-slurm  # daemons' state, logs and process ids
conf=/etc/slurm/slurm.conf
export SLURM_CONF=$conf  # whatever cluster this shell is used to
mark="# written by tests/slurm/up.sh"
here=$(cd "$(dirname "$0")/../.." && pwd -P)

fail() { echo "slurm-up: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "SLURM's daemons must be started by root, not by $(id -un)"
for file in $conf /etc/slurm/cgroup.conf; do
    [ ! -e $file ] || [[ $(head -n 1 $file) = "$mark"* ]] ||
        fail "$file is of another SLURM on this machine: use that one (pytest -m slurm tests/slurm)"
done

if [ -e $state/slurmctld.pid ] && kill -0 "$(cat $state/slurmctld.pid)" 2>/dev/null &&
    [ "$(timeout 10 sinfo -h -o %a 2>/dev/null)" = up ]; then
    echo "SLURM is up already: $(head -n 1 $conf | cut -c 3-)"
    exit
fi

if ! command -v slurmctld slurmd srun munged >/dev/null; then
    command -v apt-get >/dev/null || fail "SLURM is not installed, and there is no apt-get to do so"
    echo "installing Debian's SLURM ..."
    apt="apt-get -qq -o DPkg::Lock::Timeout=300"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    { $apt update && $apt install -y --no-install-recommends slurmctld slurmd slurm-client munge; } \
        >"$log" 2>&1 || { tail -5 "$log" >&2; fail "SLURM's packages could not be installed"; }
fi

mkdir -p $state/{ctld,spool} /etc/slurm
host=$(hostname -s)
cat >$conf <<CONF
$mark of $here
ClusterName=throwaway
SlurmctldHost=$host
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=5
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
EnforcePartLimits=ALL
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/spool
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.log
NodeName=$host CPUs=16 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=2-00:00:00 State=UP
CONF
printf '%s\nCgroupPlugin=autodetect\n' "$mark" >/etc/slurm/cgroup.conf

if ! munge -n 2>/dev/null | unmunge >/dev/null 2>&1; then
    install -d -o munge -g munge -m 0755 /run/munge
    [ -e /etc/munge/munge.key ] || { mungekey --create && chown munge: /etc/munge/munge.key; }
    runuser -u munge -- munged --force
    cp /run/munge/munged.pid $state/munged.pid
fi
setsid slurmctld -D </dev/null >$state/slurmctld.out 2>&1 &
echo $! >$state/slurmctld.pid
setsid slurmd -D </dev/null >$state/slurmd.out 2>&1 &
echo $! >$state/slurmd.pid

for _ in $(seq 60); do
    node=$(timeout 10 sinfo -h -o %T 2>/dev/null || true)
    case $node in
        idle) echo "SLURM is up: sinfo, squeue and sbatch work; logs are in $state"; exit ;;
        down* | drained* | unknown*)
            scontrol update nodename="$host" state=resume 2>/dev/null || true ;;
    esac
    sleep 0.5
done
tail -3 $state/slurm*.out $state/slurm*.log >&2 || true
fail "the node is '$node' after half a minute; the daemons' last words are above"
