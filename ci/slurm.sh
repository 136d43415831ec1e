#!/usr/bin/env bash
# Run a command with a Slurm of one node, which is stopped afterwards:
#     ci/slurm.sh python -m pytest tests/daskdl/test_slurm.py
# For Debian and Ubuntu, as root; missing packages are installed by apt.
set -euo pipefail

if ! command -v sbatch slurmd slurmctld munged >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        slurm-wlm munge >/dev/null
fi

folder=$(mktemp -d -t slurm-XXXXXX)
chmod 755 "$folder"
mkdir "$folder/state" "$folder/spool"
host=$(hostname -s)
# Always four cores, so that a job that replaces another need not wait for its end.
cat >"$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MailProg=/bin/true
SlurmdParameters=config_overrides
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 RealMemory=$(free -m | awk '/^Mem/ {print $2}') State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"

pids=()
stop() {
    kill "${pids[@]}" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap stop EXIT

if ! munge -n >/dev/null 2>&1; then
    install -d -o munge -g munge -m 755 /run/munge
    [[ -s /etc/munge/munge.key ]] || runuser -u munge -- mungekey --create
    runuser -u munge -- munged --foreground >"$folder/munged.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do munge -n >/dev/null 2>&1 && break || sleep 0.1; done
fi
slurmctld -D >/dev/null 2>&1 &
pids+=($!)
slurmd -D >/dev/null 2>&1 &
pids+=($!)

for _ in $(seq 300); do
    [[ $(sinfo --noheader --format %T 2>/dev/null) == idle ]] && break || sleep 0.1
done
if [[ $(sinfo --noheader --format %T 2>/dev/null) != idle ]]; then
    echo "the node is not idle after half a minute:" >&2
    tail -n 20 "$folder"/*.log >&2
    exit 1
fi
"$@"
