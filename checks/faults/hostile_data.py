"""Links that lead out of a store, and data that would execute code, leave its folder or fill the memory."""

import gzip
import io
import os
import pickle
import tarfile
import zipfile

from damaged import TABLE, make_run
from harness import GATE
from toy import describe_build

BOMB = 2**30  # bytes after decompression
SECRET = "the content of a file outside"


# links that leave the store


def linked_run(project):
    """A Run in the store is a link to a file outside."""
    outside = project.folder / "outside.txt"
    outside.write_text(SECRET)
    path = make_run(project)
    link = path.with_name("link.json")
    link.symlink_to(outside)
    result = project.observe(project.run(*TABLE), 2, contains="link.json")
    project.require(SECRET not in result.output, "the content of the file outside is printed")
    project.require(outside.read_text() == SECRET, "the file outside was changed")
    link.unlink()
    project.proceed(project.run(*TABLE), 0)


def linked_build(project):
    """A build in the cache is a link to a folder outside."""
    outside = project.folder / "outside"
    describe_build(project)
    project.run("env", "make", "toy")
    (build,) = [path for path in (project.cache / "environments").iterdir() if (path / "bin").exists()]
    build.rename(outside)
    build.symlink_to(outside)
    project.observe(project.run("env", "remove", "toy"), 0, 2)
    project.require((outside / "bin/python").exists(), "files outside were deleted")
    project.proceed(project.run("env", "make", "toy"), 0)


# hostile data


class Hostile:
    """An object whose unpickling creates a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.system, (f"touch '{self.path}'",)


def with_data(project, task, fill):
    """Run a gate with STELE_DATA that ``fill`` prepared; then remove the data, and run it with seeded noise."""
    folder = project.folder / "data"
    folder.mkdir()
    fill(folder)
    arguments = list(GATE)
    arguments[4] = task
    result = project.observe(project.run(*arguments, STELE_DATA=str(folder)), 2)
    project.figures.append(f"{result.memory / 2**20:,.0f} MiB")
    project.require(not list(project.folder.rglob("escaped*")), "a file was written outside of the cache")
    project.proceed(project.run(*GATE), 0)


def hostile_pickle(project):
    """The batches of CIFAR-10 are pickles that start a command."""

    def fill(folder):
        batches = folder / "cifar-10-batches-py"
        batches.mkdir()
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            (batches / name).write_bytes(pickle.dumps(Hostile(project.canary)))

    with_data(project, "cnn", fill)


def object_arrays(project):
    """The archive of IMDB has arrays of objects that start a command."""

    def fill(folder):
        header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
        header += b" " * (117 - len(header)) + b"\n"
        array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        array += pickle.dumps([Hostile(project.canary)])
        with zipfile.ZipFile(folder / "imdb.npz", "w") as archive:
            for name in ("x_train", "y_train", "x_test", "y_test"):
                archive.writestr(f"{name}.npy", array)

    with_data(project, "gru", fill)


def tar_traversal(project):
    """The archive of CIFAR-10 has members and links that lead out of its folder."""

    def fill(folder):
        with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
            for name in (
                "../../escaped",
                str(project.folder / "escaped"),
                "cifar-10-batches-py/data_batch_1",
            ):
                info = tarfile.TarInfo(name)
                info.size = 4
                archive.addfile(info, io.BytesIO(b"evil"))
            link = tarfile.TarInfo("cifar-10-batches-py/data_batch_2")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
            archive.addfile(link)

    with_data(project, "cnn", fill)


def gzip_bomb(project):
    """The archive of CIFAR-10 decompresses to a gigabyte."""

    def fill(folder):
        with gzip.open(folder / "cifar-10-python.tar.gz", "wb", compresslevel=1) as file:
            for _ in range(BOMB // 2**24):
                file.write(bytes(2**24))

    with_data(project, "cnn", fill)


def zip_bomb(project):
    """The archive of IMDB decompresses to a gigabyte."""

    def fill(folder):
        with (
            zipfile.ZipFile(folder / "imdb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open("x_train.npy", "w", force_zip64=True) as file,
        ):
            for _ in range(BOMB // 2**24):
                file.write(bytes(2**24))

    with_data(project, "gru", fill)


FAULTS = (
    linked_run,
    linked_build,
    hostile_pickle,
    object_arrays,
    tar_traversal,
    gzip_bomb,
    zip_bomb,
)
