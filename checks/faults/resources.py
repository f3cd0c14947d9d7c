"""Resources that the host lacks: a disk to write to, free space, a home folder, a network."""

import contextlib
import os
import socket
import subprocess

from harness import GATE, NotRun
from toy import describe_build

PAGE = os.sysconf("SC_PAGESIZE")
FREE_PAGES = (0, 1, 2, 3, 4, 6, 8, 12, 16)  # of a full disk: each number makes another write fail
DISK = 512 * PAGE
NOWHERE = "http://192.0.2.1/simple"  # RFC 5737: an address that no machine has


# disks


def in_namespace(script, *arguments):
    """Return a prefix that runs a command in separate namespaces after a shell script. Raises NotRun if that fails."""
    prefix = ["unshare", "--mount", "--net", "sh", "-c", f'{script} exec "$@"', *map(str, arguments)]
    try:
        done = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotRun(f"namespaces are not available: {error}") from None
    if done.returncode:
        raise NotRun(f"namespaces are not available: {done.stderr.strip()}")
    return prefix


def read_only(project):
    """The checkout is read-only."""
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" &&'
    prefix = in_namespace(script, project.work)
    project.observe(project.run(*GATE, prefix=prefix), 2, contains="[Rr]ead-only")
    project.proceed(project.run(*GATE), 0)


@contextlib.contextmanager
def small_disk(folder):
    """Mount a disk of DISK bytes. Raises NotRun without the right to mount."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotRun(f"a small disk cannot be mounted: {error}") from None
    if done.returncode:
        raise NotRun(f"a small disk cannot be mounted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def full(folder, pages):
    """Fill the disk of a folder except for some pages."""
    ballast = folder / "ballast"
    free = os.statvfs(folder)
    ballast.write_bytes(bytes(max(free.f_bavail * free.f_frsize - pages * PAGE, 0)))
    try:
        yield
    finally:
        ballast.unlink()


def full_disk(project):
    """The disk of the project is full, at each write of a gate."""
    with small_disk(project.work):
        for pages in FREE_PAGES:
            with full(project.work, pages):
                project.observe(project.run(*GATE), 0, 2)
            if project.launches():
                project.resume()
            else:
                project.proceed(project.run(*GATE), 0)


def full_cache(project):
    """The disk of the cache is full, at each write of a build."""
    describe_build(project)
    with small_disk(project.cache):
        for pages in (*FREE_PAGES, 64):
            with full(project.cache, pages):
                project.observe(project.run("env", "make", "toy"), 0, 2, contains="full|space|built")
        project.proceed(project.run("env", "make", "toy"), 0, 2)
    project.proceed(project.run("env", "make", "toy"), 0)


def full_temporary(project):
    """The disk for temporary files is full."""
    with small_disk(project.temporary):
        with full(project.temporary, 0):
            project.observe(project.run(*GATE), 0, 2)
        project.proceed(project.run(*GATE), 0)


def no_home(project):
    """There is no home folder."""
    project.observe(project.run(*GATE, HOME="/proc/none", STELE_CACHE=None), 2, contains="STELE_CACHE")
    project.proceed(project.run(*GATE, HOME=None), 0)


# networks


def online(index):
    """Return the variables with which uv uses an index."""
    return {
        "UV_FIND_LINKS": None,
        "UV_DEFAULT_INDEX": index,
        "UV_HTTP_TIMEOUT": "2",
        "UV_HTTP_RETRIES": "0",
        "STELE_INDEX": index,
    }


def unreachable(project, index, prefix=()):
    """Resolve an environment, and read the releases, from an index that cannot be reached."""
    describe_build(project)
    locked = project.run("env", "lock", "toy", prefix=prefix, **online(index))
    project.observe(locked, 2, contains=r"package index did not answer. Is there a network\?")
    project.observe(project.run("releases", "sync", "toy", prefix=prefix, **online(index)), 2)
    project.proceed(project.run("env", "make", "toy"), 0)


def no_network(project):
    """There is no network."""
    unreachable(project, NOWHERE, in_namespace("", "sh"))


def dropped_packets(project):
    """The network drops packets."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as stack:
        for _ in range(4):  # the kernel drops the packets of more connections than the queue can take
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        unreachable(project, f"http://127.0.0.1:{server.getsockname()[1]}/simple")


FAULTS = (
    read_only,
    full_disk,
    full_cache,
    full_temporary,
    no_home,
    no_network,
    dropped_packets,
)
