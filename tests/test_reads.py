"""Which files a worker names as those of the user's model."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy
import pytest
from safetensors.numpy import save_file

import stele_worker

SOURCE = Path(stele_worker.__file__).parents[1]


@pytest.fixture
def files(tmp_path):
    """files(code) -> the paths that a new process names after this code, relative to the folder of the project."""
    project = tmp_path / "project"
    project.mkdir()

    def files(code, kind="files", **variables):
        script = f"""
            import os, sys
            sys.path[:0] = [{str(SOURCE)!r}, {str(project)!r}]
            sys.dont_write_bytecode = True
            from stele_worker.models import reads
            folder = {str(project)!r}
            reads.watch(folder)
        """
        end = f"print(*reads.of_process(folder)[{kind!r}], sep='\\n')"
        lines = [textwrap.dedent(script), textwrap.dedent(code), end]
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(lines)],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        found = done.stdout.split()
        return found if kind == "variables" else [os.path.relpath(path, project) for path in found]

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
def test_what_compiled_code_reads_of_the_project_is_named_apart(files, write):
    """Another process may have read it."""
    read = ("tokenizer.json", "data/a/model.onnx", "env/cache.bin", ".cache/log.txt", "README.md")
    for name in (*read, "env/pyvenv.cfg", "log.txt", "both.json"):
        write(name)
    code = [OPEN.format(name, "os.O_RDONLY") for name in (*read, "both.json")]
    code.append("os.write({}, b'x'); open(folder + '/both.json')".format(OPEN.format("log.txt", "os.O_RDWR")))
    assert files("\n".join(code), "noticed") == ["data/a/model.onnx", "tokenizer.json"]
    assert files("\n".join(code)) == ["both.json"]


@pytest.mark.parametrize(
    "code",
    [
        "open(log, 'w').close(); open(log).read()",
        "open(log + '2', 'w').close(); os.replace(log + '2', log); open(log).read()",
        "open(log, 'w+').close()",
        "open(log, 'a').close()",
        "open(old).read(); open(old, 'r+').write('x')",
        "open(old).read(); import subprocess; subprocess.run(['touch', old])",
        "open('/proc/self/status').read(); open(os.devnull).read(); open('/etc/passwd').read()",
        "import zoneinfo; zoneinfo.ZoneInfo('Europe/Berlin')",
        "open(folder + '/.git/HEAD').read(); open(folder + '/.triton/cache.bin').read()",
        "open(os.environ['TMPDIR'] + '/own.txt').read()",
    ],
    ids=[
        "written",
        "renamed",
        "created",
        "appended",
        "changed",
        "touched",
        "system",
        "zone",
        "caches",
        "temporary",
    ],
)
def test_what_a_process_writes_and_what_belongs_to_the_system_or_a_cache_of_programs_is_not_named(
    files, write, tmp_path, code
):
    for name in (".git/HEAD", ".triton/cache.bin", "old.txt", "../temporary/own.txt"):
        write(name)
    names = "log, old = folder + '/log.txt', folder + '/old.txt'"
    assert files(f"{names}; {code}", TMPDIR=str(tmp_path / "temporary")) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../data/w.txt", "open(PATH).read()"),
        ("../home/.cache/huggingface/w.json", "open(PATH).read()"),
        (".cache/torch/hub/w.pt", "open(PATH).read()"),
        ("w.txt", "open(PATH, 'r+b').read()"),
        ("w.txt", "open(PATH, 'a+b').read()"),
        ("../data/w.txt", "os.open(PATH, os.O_RDWR | os.O_CREAT)"),
        ("../data/w.txt", "import numpy; numpy.memmap(PATH)[0]"),
        (
            "../data/w.txt",
            "import mmap, ctypes; m = mmap.mmap(ctypes.CDLL(None).open(PATH.encode(), 0), 0, prot=1)",
        ),
        ("../data/w.safetensors", "import safetensors; safetensors.safe_open(PATH, 'numpy')"),
    ],
    ids=["outside", "hidden", "cache", "r+", "a+", "os.open", "memmap", "mapped", "safetensors"],
)
def test_a_file_that_is_read_is_named_wherever_it_is_and_however_it_is_opened(files, write, name, code):
    path = write(name, "numbers")
    if "safetensors" in name:
        save_file({"w": numpy.zeros(2)}, path)
    time.sleep(0.02)  # the clock of the file system is coarse
    assert files(f"PATH = {str(path)!r}; reads.watch_libraries(); {code}") == [name]


def test_of_very_many_files_the_folders_are_named(files, write):
    for number in range(2100):
        write(f"../data/many/{number}.txt")
    write("../data/one.txt")
    code = """
        for number in range(2100):
            open(folder + "/../data/many/{}.txt".format(number)).close()
        open(folder + "/../data/one.txt").close()
    """
    assert files(code) == ["../data/many/*", "../data/one.txt"]


READING = """
import os
from os import environ
import library
A = os.environ["A"], os.environ.get("B"), "C" in os.environ, os.getenv("D"), environ.get("E", "8")
"""


def test_the_variables_that_the_users_code_reads_are_named(files, write):
    """Also those that a library reads by name, as for a configuration."""
    write("net.py", READING)
    library = "import os; os.environ.get('F'); dict(os.environ); dict(os.environ, x=''); os.environ.copy()"
    write("env/lib/site-packages/library.py", library)
    code = "sys.path.append(folder + '/env/lib/site-packages'); import net"
    assert set("ABCDEF") <= set(files(code, "variables", A="1", G="2"))
    assert "G" not in files(code, "variables", A="1", G="2")


@pytest.mark.parametrize("code", ["dict(os.environ)", "[*os.environ.items()]", "os.environ.copy()"])
def test_a_project_that_lists_all_variables_reads_all_of_them(files, write, code):
    write("net.py", f"import os; {code}")
    assert "G" in files("import net", "variables", G="2")


def test_the_weights_beside_a_config_are_named(files, write):
    """They may be read by a library that Python does not see."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md"):
        write(f"../checkpoint/{name}")
    names = ["config.json", "model.safetensors", "tokenizer.json"]
    assert files("open(folder + '/../checkpoint/config.json')") == [f"../checkpoint/{name}" for name in names]
