"""A Slurm of one node, on ports and in a folder of its own, for as long as a test needs it."""

import getpass
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "setpriv")
# munged, slurmctld and slurmd lie in sbin, which a path may lack.
PATH = os.pathsep.join([os.environ["PATH"], "/usr/local/sbin", "/usr/sbin", "/sbin"])

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=2
MinJobAge=300
ReturnToService=2
SlurmdParameters=config_overrides
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=16000
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def obstacle() -> str | None:
    """Return why no cluster can start here, if so."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing:
        return f"there is no {', '.join(missing)}; Debian's slurm-wlm and munge have them"
    if os.geteuid():
        return "only root can start a Slurm"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "requirements-slurm.txt is not installed"
    return None


@contextmanager
def cluster() -> Iterator[tuple[Path, dict[str, str]]]:
    """Run munged, slurmctld and slurmd; yield their folder and what the environment of jobs needs.

    The daemons and what jobs they have are ended however the block ends.
    """
    with ExitStack() as stack:
        # In /tmp, as the path of a socket has at most 107 characters.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp")))
        configuration = folder / "slurm.conf"
        # The plugin takes SLURM_CONF out of the environment of its job steps, as a cluster's
        # configuration has a place of its own.
        srun = folder / "bin/srun"
        srun.parent.mkdir()
        srun.write_text(
            f'#!/bin/sh\nSLURM_CONF={configuration} exec {shutil.which("srun", path=PATH)} "$@"\n'
        )
        srun.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(srun.parent), PATH]),
            "SLURM_CONF": str(configuration),
        }
        ports = [stack.enter_context(socket.socket()) for _ in range(2)]
        for port in ports:
            port.bind(("127.0.0.1", 0))
        controller_port, node_port = (port.getsockname()[1] for port in ports)
        for port in ports:
            port.close()
        configuration.write_text(
            CONFIGURATION.format(
                host=socket.gethostname().partition(".")[0],
                user=getpass.getuser(),
                folder=folder,
                controller_port=controller_port,
                node_port=node_port,
            )
        )
        (folder / "munge.key").write_bytes(secrets.token_bytes(128))
        (folder / "munge.key").chmod(0o600)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        files = {kind: folder / f"munge.{kind}" for kind in ("key", "seed", "pid", "log", "socket")}
        munged = ["munged", "--foreground", "--force", f"--key-file={files['key']}"]
        munged += [f"--seed-file={files['seed']}", f"--pid-file={files['pid']}"]
        munged += [f"--log-file={files['log']}", f"--socket={files['socket']}"]
        for command in (munged, ["slurmctld", "-D", "-c"], ["slurmd", "-D"]):
            process = subprocess.Popen(
                # A daemon ends with the test even where the test is killed.
                ["setpriv", "--pdeathsig", "TERM", *command],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=(folder / f"{command[0]}.err").open("w"),
                start_new_session=True,
            )
            stack.callback(_end, process)
            if command is munged:
                _wait_for(files["socket"].exists, folder, "munged makes no socket")
        _wait_for(lambda: _node_is_idle(environment), folder, "the node does not become idle")
        stack.callback(_cancel_jobs, environment, folder)
        yield folder, environment


def _end(process: subprocess.Popen) -> None:
    """End a daemon and all that it started in its session."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _cancel_jobs(environment: dict[str, str], folder: Path) -> None:
    subprocess.run(["scancel", "--user", getpass.getuser()], env=environment, check=False)
    _wait_for(lambda: not _output(["squeue", "--noheader"], environment), folder, "jobs do not end")


def _node_is_idle(environment: dict[str, str]) -> bool:
    return _output(["sinfo", "--noheader", "--format=%T"], environment) == "idle"


def _output(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=False, timeout=30
    )
    return done.stdout.strip()


def _wait_for(condition: Callable[[], bool], folder: Path, what: str) -> None:
    for _ in range(150):
        if condition():
            return
        time.sleep(0.2)
    logs = [f"{log.name}:\n{log.read_text()[-2000:]}" for log in sorted(folder.glob("*.log"))]
    raise RuntimeError("\n".join([f"{what} within 30 s", *logs]))
