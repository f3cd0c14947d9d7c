"""The recorded passes in one file of the repository, so that a study outlasts a machine: passes.tar.xz."""

import tarfile
from pathlib import Path

FILE = Path(__file__).with_name("passes.tar.xz")


def pack(folder: Path, file: Path = FILE) -> None:
    """Write the passes of all conditions to the file. Equal passes give an equal file."""
    with tarfile.open(file, "w:xz") as archive:
        for path in sorted(folder.glob("*/*.jsonl")):
            archive.add(path, path.relative_to(folder).as_posix(), filter=without_owner)


def without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    return member.replace(mtime=0, mode=0o644, uid=0, gid=0, uname="", gname="", deep=False)


def unpack(folder: Path, file: Path = FILE) -> None:
    """Write the passes of the file to the folder, except those of cells that are recorded there."""
    if not file.exists():
        return
    with tarfile.open(file) as archive:
        missing = [member for member in archive.getmembers() if not (folder / member.name).exists()]
        archive.extractall(folder, missing, filter="data")
