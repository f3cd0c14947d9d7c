"""Which files a worker names as those of the user's model."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import stele_worker

SOURCE = Path(stele_worker.__file__).parents[1]


@pytest.fixture
def files(tmp_path):
    """files(code) -> the paths that a new process names after this code, relative to the folder of the project."""
    project = tmp_path / "project"
    project.mkdir()

    def files(code):
        script = f"""
            import os, sys
            sys.path[:0] = [{str(SOURCE)!r}, {str(project)!r}]
            sys.dont_write_bytecode = True
            from stele_worker.models import reads
            folder = {str(project)!r}
            reads.watch(folder)
        """
        lines = [
            textwrap.dedent(script),
            textwrap.dedent(code),
            "print(*reads.of_project(folder), sep='\\n')",
        ]
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return [os.path.relpath(path, project) for path in done.stdout.split()]

    return files


@pytest.fixture
def write(tmp_path):
    def write(name, text=""):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_local_modules_are_named_and_installed_ones_are_not(files, write):
    write("net.py", "import json, numpy, helper, package.part")
    write("helper.py")
    write("package/__init__.py")
    write("package/part.py")
    write("unused.py")
    write("env/lib/python3.11/site-packages/third.py")
    code = "sys.path.append(folder + '/env/lib/python3.11/site-packages'); import net, third"
    assert files(code) == ["helper.py", "net.py", "package/__init__.py", "package/part.py"]


def test_a_module_beside_the_project_is_named(files, write):
    write("../shared/common.py")
    assert files("sys.path.append(folder + '/../shared'); import common") == ["../shared/common.py"]


def test_what_the_code_reads_of_the_project_is_named(files, write):
    write("tokenizer.json")
    write("data/table.csv")
    write("unread.json")
    code = (
        "open(folder + '/tokenizer.json').read(); os.open((folder + '/data/table.csv').encode(), os.O_RDONLY)"
    )
    assert files(code) == ["data/table.csv", "tokenizer.json"]


OPEN = "__import__('ctypes').CDLL(None).open((folder + '/{}').encode(), {})"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux reports it")
def test_what_compiled_code_reads_of_the_project_is_named(files, write):
    read = ("tokenizer.json", "data/a/model.onnx", "env/cache.bin", ".cache/log.txt", "README.md")
    for name in (*read, "env/pyvenv.cfg", "log.txt"):
        write(name)
    code = [OPEN.format(name, "os.O_RDONLY") for name in read]
    code.append("os.write({}, b'x')".format(OPEN.format("log.txt", "os.O_RDWR")))
    assert files("\n".join(code)) == ["data/a/model.onnx", "tokenizer.json"]


@pytest.mark.parametrize(
    "code",
    [
        "open(log, 'w').close(); open(log).read()",
        "open(log + '2', 'w').close(); os.replace(log + '2', log); open(log).read()",
        "open(folder + '/.cache/log.txt').read()",
        "open('/proc/self/status').read(); open(os.devnull).read()",
    ],
    ids=["written", "renamed", "hidden", "elsewhere"],
)
def test_what_a_process_writes_itself_and_what_is_hidden_or_elsewhere_is_not_named(files, write, code):
    write(".cache/log.txt")
    assert files(f"log = folder + '/log.txt'; {code}") == []


def test_the_weights_beside_a_config_are_named(files, write):
    """They may be read by a library that Python does not see."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md"):
        write(f"../checkpoint/{name}")
    names = ["config.json", "model.safetensors", "tokenizer.json"]
    assert files("open(folder + '/../checkpoint/config.json')") == [f"../checkpoint/{name}" for name in names]
