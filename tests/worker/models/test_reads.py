"""Which files a worker names as those of the user's model."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy
import pytest
from safetensors.numpy import save_file

import stele_worker

SITE = "env/lib/python3.11/site-packages"
PLACES = [f"{place}/{SITE}" for place in ("", "/../elsewhere", "/../link")]  # where packages may be
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
            sys.path += [{str(project)!r} + place for place in {PLACES}]
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
    write("env/lib/python3.11/site-packages/third-1.dist-info/RECORD", "third.py,sha256=1,0\n")
    assert files("import net, third") == ["helper.py", "net.py", "package/__init__.py", "package/part.py"]


RECORD = """whole/__init__.py,sha256=1,0
whole/table.txt,sha256=1,0
"quo,ted.txt",sha256=1,0
../../../bin/tool.txt,sha256=1,0
whole-1.dist-info/METADATA,sha256=1,0
"""


@pytest.fixture
def site(write):
    """site(name) -> the path of a file in the folder of packages, of which RECORD owns some."""
    write(f"{SITE}/whole-1.dist-info/RECORD", RECORD)
    write("env/pyvenv.cfg")

    def site(name, text=""):
        return write(f"{SITE}/{name}", text)

    return site


@pytest.mark.parametrize("name", ["stray.py", "whole/stray.py", "sitecustomize.py", "stray/__init__.py"])
def test_a_module_among_the_packages_that_belongs_to_none_is_named(files, site, name):
    site("whole/__init__.py")
    site(name)
    module = name.replace("/__init__.py", "")[:-3] if name.endswith(".py") and "__init__" not in name else "stray"
    code = f"sys.path.insert(0, folder + '/{SITE}'); sys.modules.pop('sitecustomize', None); import whole, "
    assert f"{SITE}/{name}" in files(code + module.replace("/", "."))
    assert f"{SITE}/whole/__init__.py" not in files(code + module.replace("/", "."))


@pytest.mark.parametrize(
    ("name", "named"),
    [
        (f"{SITE}/straydata.txt", True),
        (f"{SITE}/whole/stray.txt", True),
        ("env/lib/data.txt", True),
        ("env/bin/data.txt", True),
        (f"{SITE}/whole/table.txt", False),
        (f"{SITE}/quo,ted.txt", False),
        ("env/bin/tool.txt", False),
        (f"{SITE}/whole-1.dist-info/METADATA", False),
        (f"{SITE}/whole-1.dist-info/RECORD", False),
    ],
)
@pytest.mark.parametrize("place", ["", "../elsewhere/"])
def test_a_file_of_an_environment_is_left_out_only_if_a_package_has_it(files, write, name, named, place):
    write(f"{place}{SITE}/whole-1.dist-info/RECORD", RECORD)
    path = write(place + name, RECORD)
    assert files(f"open({str(path)!r}).read()") == ([place + name] if named else [])


def test_a_package_without_a_list_of_files_has_all_modules_in_its_folder(files, site):
    site("old-1.egg-info/top_level.txt", "first\nsecond\n")
    site("single-1.egg-info", "Name: single\n")
    for name in ("first/a.txt", "first/a.py", "second.py", "single/a.py", "third.py"):
        site(name)
    read = "; ".join(f"open(folder + '/{SITE}/{name}')" for name in ("first/a.txt", "first/a.py", "single/a.py"))
    assert files(f"import second, third; {read}") == [f"{SITE}/first/a.txt", f"{SITE}/third.py"]


def test_a_file_that_an_environment_has_behind_a_link_is_left_out(files, site, tmp_path):
    site("whole/table.txt", "1")
    (tmp_path / "project/env").rename(tmp_path / "env")
    (tmp_path / "link").mkdir()
    (tmp_path / "link/env").symlink_to("../env")
    assert files(f"import numpy; numpy.memmap(folder + '/../link/{SITE}/whole/table.txt')") == []


def test_a_module_beside_the_project_is_named(files, write):
    write("../shared/common.py")
    assert files("sys.path.append(folder + '/../shared'); import common") == ["../shared/common.py"]


def test_what_the_code_reads_of_the_project_is_named(files, write):
    write("tokenizer.json")
    write("data/table.csv")
    write("unread.json")
    code = "open(folder + '/tokenizer.json').read(); os.open((folder + '/data/table.csv').encode(), os.O_RDONLY)"
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


@pytest.mark.parametrize("how", ["open(PATH).read()", "import numpy; numpy.memmap(PATH)[0]"])
@pytest.mark.parametrize("name", ["w.txt", "../data/w.txt"])
def test_a_file_with_a_time_in_the_future_is_named(files, write, name, how):
    path = write(name, "numbers")
    os.utime(path, (2**32, 2**32))
    time.sleep(0.02)
    assert files(f"PATH = {str(path)!r}; {how}") == [name]


@pytest.mark.parametrize("name", ["data.db", "../data/d.sqlite"])
@pytest.mark.parametrize(
    "how", ["PATH", "PATH.encode()", "pathlib.Path(PATH)", "'file:' + PATH + '?mode=ro', uri=True"]
)
def test_a_database_that_is_read_is_named(files, write, name, how):
    path = write(name)
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("create table t (k)")
    time.sleep(0.02)
    query = f"sqlite3.connect({how}).execute('select * from t').fetchall()"
    assert files(f"import pathlib, sqlite3; PATH = {str(path)!r}; {query}") == [name]


@pytest.mark.parametrize("how", ["':memory:'", "''", "'file::memory:?cache=shared', uri=True", "folder + '/new.db'"])
def test_a_database_that_a_process_makes_is_not_named(files, how):
    code = f"import sqlite3; d = sqlite3.connect({how}); d.execute('create table t (k)'); d.commit()"
    assert files(code) == []


@pytest.mark.parametrize(
    "how", ["open(PATH)", "open(PATH, 'r+')", "os.open(PATH, os.O_RDONLY)", "__import__('numpy').load(PATH)"]
)
def test_a_file_of_the_project_that_could_not_be_opened_is_named(files, write, how):
    """It may be there later."""
    path = write("x").parent / "local.json"
    assert files(f"PATH = {str(path)!r}\ntry: {how}\nexcept FileNotFoundError: pass") == ["local.json"]


def test_a_file_that_was_deleted_or_written_meanwhile_or_is_no_part_of_the_project_is_not_named(files, write):
    old = write("old.txt")
    code = f"""
        def attempt(path):
            try: open(path)
            except FileNotFoundError: pass
        attempt(folder + "/../outside.json")
        attempt(folder + "/new.json")
        open(folder + "/new.json", "w").close()
        os.remove(folder + "/new.json")
        attempt({str(old)!r})
        os.remove({str(old)!r})
    """
    assert files(code) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux reports it")
def test_a_file_that_is_opened_relative_to_a_descriptor_is_noticed(files, write):
    write("parts/a.cfg", "1")
    code = "os.open('a.cfg', os.O_RDONLY, dir_fd=os.open(folder + '/parts', os.O_RDONLY))"
    assert files(code, "noticed") == ["parts/a.cfg"]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux reports it")
@pytest.mark.parametrize("name", ["conf.yaml", "conf.toml", "a.cfg", "part.tsv", "lines.jsonl", "data.sqlite3"])
def test_a_file_that_a_child_process_reads_is_noticed_by_its_suffix(files, write, name):
    path = write(name, "1")
    code = f"import subprocess; subprocess.check_output(['cat', {str(path)!r}])"
    assert files(code, "noticed") == [name]


@pytest.mark.parametrize(
    "code",
    [
        "os.listdir('parts')",
        "list(os.scandir('parts'))",
        "list(pathlib.Path('parts').iterdir())",
        "glob.glob('parts/*.txt')",
        "list(pathlib.Path('parts').glob('*'))",
        "list(os.walk('parts'))",
    ],
)
def test_a_folder_that_the_users_code_lists_is_named(files, write, code):
    write("parts/a.txt")
    write("net.py", f"import glob, os, pathlib; os.chdir({str(write('x').parent)!r}); {code}")
    assert "parts/**" in files("import net")


def test_a_folder_that_another_one_lists_is_not_named(files, write):
    """Python itself lists the folders of modules."""
    write("net.py", "import json, library; library.look()")
    write("package/x.py")
    library = "import os\ndef look(): os.listdir('.')"
    write(f"{SITE}/library.py", library)
    assert not [name for name in files("import net, package.x") if name.endswith("**")]


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


@pytest.mark.parametrize(
    "code",
    ["os.environb.get(b'B')", "os.environb[b'B']", "b'B' in os.environb", "os.getenvb(b'B')"],
)
def test_a_variable_that_is_asked_for_as_bytes_is_named(files, write, code):
    write("net.py", f"import os; {code}")
    found = files("import net", "variables", B="1", G="2")
    assert "B" in found and "G" not in found


def test_a_project_that_lists_all_variables_as_bytes_reads_all_of_them(files, write):
    write("net.py", "import os; dict(os.environb)")
    assert "G" in files("import net", "variables", G="2")


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
