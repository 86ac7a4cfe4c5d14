"""A real Slurm cluster of one node on this machine: munged, slurmctld and slurmd of our own, on ports and in a folder of our own."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue")
# Debian keeps daemons where a user's PATH does not look.
PATH = f"{os.environ['PATH']}:/usr/sbin"
PATIENCE = 180  # seconds: machines that run tests are busy

# Processes are found by their parents and cores are counted, not held: neither needs cgroups. A task that is queued
# again waits until its old credential is void (cred_expire): two minutes unless told otherwise.
CONFIGURATION = """\
ClusterName=llmsweep-test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.sock,cred_expire=5
CredType=cred/munge
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=0
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=batch Nodes=node1 Default=YES MaxTime=INFINITE State=UP
"""


class CannotStart(Exception):
    """Why there is no cluster here."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, patience=PATIENCE):
    """What `what()` gives once it is true; nothing where that takes too long."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    return None


class SlurmCluster:
    """`with SlurmCluster(cpus=8) as cluster`: its commands are called with `cluster.environment`."""

    def __init__(self, cpus):
        self.cpus = cpus
        self.daemons = []

    def __enter__(self):
        missing = [name for name in DAEMONS + CLIENTS if not shutil.which(name, path=PATH)]
        if missing:
            raise CannotStart(f"there is no {missing[0]}: tools/test --with cluster installs it")
        if os.geteuid() != 0:
            raise CannotStart("only root may start slurmd")
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-cluster-")
        self.home = pathlib.Path(self.scratch.name)
        self.home.chmod(0o755)  # munged wants its socket to be reachable
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(self.home / "slurm.conf")}
        try:
            self.start()
        except CannotStart:
            self.__exit__()
            raise
        return self

    def start(self):
        for folder in ("state", "spool"):
            (self.home / folder).mkdir()
        key = self.home / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        (self.home / "slurm.conf").write_text(CONFIGURATION.format(
            home=self.home, host=socket.gethostname().split(".")[0], cpus=self.cpus, controller_port=free_port(), node_port=free_port()))
        self.daemon("munged", "--foreground", "--force", f"--socket={self.home}/munge.sock", f"--key-file={key}",
                    f"--pid-file={self.home}/munged.pid", f"--log-file={self.home}/munged.log", f"--seed-file={self.home}/munge.seed")
        self.ready("munged", (self.home / "munge.sock").exists)
        self.daemon("slurmctld", "-D", "-i")
        self.daemon("slurmd", "-D", "-N", "node1")
        self.ready("slurmd", lambda: self.answer("sinfo", "--noheader", "--format=%T").stdout.strip() == "idle")

    def daemon(self, *command):
        with open(self.home / f"{command[0]}.out", "w") as out:
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=out, stderr=out))

    def ready(self, name, condition):
        def settled():
            return condition() or any(daemon.poll() is not None for daemon in self.daemons)

        if not wait_for(settled, patience=60) or not condition():
            lines = [line for log in sorted(self.home.glob("*.out")) for line in log.read_text(errors="replace").splitlines() if line.strip()]
            raise CannotStart(f"{name} did not start: {' | '.join(lines[-4:])}")

    def answer(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)

    def queue(self):
        """The lines of squeue: one a job or task that is not over."""
        return self.answer("squeue", "--noheader", "--array", "--format=%i %T").stdout.splitlines()

    def __exit__(self, *_):
        if len(self.daemons) > 1:
            self.answer("scancel", "--user=root")
            wait_for(lambda: not self.queue(), patience=30)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.scratch.cleanup()
