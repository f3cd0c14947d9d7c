"""Signals to the host, and two commands at once, while it measures or builds."""

import os
import signal
import socket
import time

from harness import GATE, wait_for
from resources import online
from toy import describe_build

WAITING_GATE = (*(part for part in GATE if part != "--no-wait"), "--worker-timeout", "60")


# signals


def start_gate(project):
    """Start a gate whose NEW hangs in its sixth launch, and wait for that launch."""
    project.plant("wait", **{"from": 6})
    process = project.start(*WAITING_GATE)
    launches = project.folder / "workers" / "new" / "launches"
    wait_for(lambda: launches.exists() and len(launches.read_text().splitlines()) >= 6, 30)
    time.sleep(0.2)
    return process


def ctrl_c(project):
    """Ctrl-C during a measurement."""
    process = start_gate(project)
    process.interrupt()
    project.observe(process.wait(), 130)
    project.resume()


def ctrl_c_twice(project):
    """Ctrl-C twice during a measurement, 0 to 100 ms apart."""
    for gap in (0.0, 0.01, 0.03, 0.1):
        (project.folder / "workers/new/launches").unlink(missing_ok=True)
        process = start_gate(project)
        process.interrupt()
        time.sleep(gap)
        process.interrupt()
        # a second signal may end Python itself; the shell shows that as 130, too
        project.observe(process.wait(), 130, -signal.SIGINT)
    project.resume()


def sigterm(project):
    """SIGTERM to the host during a measurement."""
    process = start_gate(project)
    os.kill(process.process.pid, signal.SIGTERM)
    project.observe(process.wait(), 130)
    project.resume()


def sigkill(project):
    """SIGKILL to the host during a measurement."""
    process = start_gate(project)
    os.kill(process.process.pid, signal.SIGKILL)
    project.observe(process.wait(), -signal.SIGKILL)
    project.resume()


# builds


def start_build(project):
    """Start a build, and wait until it imports the framework. Return the process and the file that slows it."""
    slow = describe_build(project)
    slow.touch()
    process = project.start("env", "make", "toy")
    wait_for(lambda: any("import toy" in command for command in project.processes()), 60)
    return process, slow


def finish_build(project, slow):
    slow.unlink()
    project.proceed(project.run("env", "make", "toy"), 0)
    left = sorted(path.name for path in (project.cache / "environments").glob("*.building"))
    project.require(not left, f"an incomplete build remains: {left}")


def ctrl_c_build(project):
    """Ctrl-C while an environment is built."""
    process, slow = start_build(project)
    process.interrupt()
    project.observe(process.wait(), 130)
    finish_build(project, slow)


def sigterm_build(project):
    """SIGTERM to the host while an environment is built."""
    process, slow = start_build(project)
    os.kill(process.process.pid, signal.SIGTERM)
    project.observe(process.wait(), 130)
    finish_build(project, slow)


def sigkill_build(project):
    """SIGKILL to the host while an environment is built."""
    process, slow = start_build(project)
    os.kill(process.process.pid, signal.SIGKILL)
    project.observe(process.wait(), -signal.SIGKILL)
    finish_build(project, slow)


def ctrl_c_index(project):
    """Ctrl-C while uv waits for a package index that does not answer."""
    describe_build(project)
    with socket.create_server(("127.0.0.1", 0)) as server:
        index = f"http://127.0.0.1:{server.getsockname()[1]}/simple"
        process = project.start("env", "lock", "toy", **online(index))
        wait_for(lambda: any("uv" in command and "compile" in command for command in project.processes()))
        time.sleep(0.3)
        process.interrupt()
        project.observe(process.wait(), 130)
    project.proceed(project.run("env", "make", "toy"), 0)


# two at once


def two_gates(project):
    """Two gates at once."""
    project.plant("slow", **{"from": 1})
    first = project.start(*WAITING_GATE)
    wait_for(lambda: any("fake.py" in command for command in project.processes()), 30)
    second, refused = project.start(*WAITING_GATE), project.run(*GATE)
    ended, waited = first.wait(), second.wait()
    project.observe(refused, 2, contains="[Aa]nother measurement")
    project.check(ended, (0,), "the first gate")
    project.require("waiting" in waited.output, "the second gate does not say that it waits")
    project.proceed(waited, 0)
    project.keep(project.launches())


def two_suites(project):
    """Two suites at once."""
    project.plant("slow", **{"from": 1})
    project.teach_parity("resnet50")
    suite = (
        *("--stele-suite", "--stele-framework", "old,new", "--stele-task", "resnet50"),
        *("--stele-scale", "smoke", "-k", "infer", "-p", "no:cacheprovider", "-q"),
    )
    first, second = (project.start(*suite, module="pytest") for _ in range(2))
    ended, waited = first.wait(), second.wait()
    project.observe(ended, 0)
    project.proceed(waited, 0)
    runs = list((project.work / ".stele/runs").glob("*.json"))
    project.require(len(runs) == 4, f"{len(runs)} of 4 Runs were saved")
    project.kept = f"{len(runs)} Runs"


def two_builds(project):
    """Two builds of one environment at once."""
    describe_build(project)
    first, second = (project.start("env", "make", "toy") for _ in range(2))
    ended, waited = first.wait(), second.wait()
    project.observe(ended, 0)
    project.proceed(waited, 0)


FAULTS = (
    ctrl_c,
    ctrl_c_twice,
    sigterm,
    sigkill,
    ctrl_c_build,
    sigterm_build,
    sigkill_build,
    ctrl_c_index,
    two_gates,
    two_suites,
    two_builds,
)
