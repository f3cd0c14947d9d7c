"""Files of weights that a factory opens are noted; others are not."""

import subprocess
import sys
from pathlib import Path

import pytest

import stele_worker

SOURCE = str(Path(stele_worker.__file__).parents[1])
SCRIPT = """
import sys
sys.path.insert(0, {source!r})
from stele_worker.models import reads
{before}
reads.watch({folder!r})
reads.watch_libraries()
import os, numpy
from pathlib import Path
{code}
print(reads.of_weights({{"weights": os.path.abspath("old.npz"), "checkpoint": os.path.abspath("checkpoint")}}))
"""


def files_of(code, folder, before=""):
    script = SCRIPT.format(source=SOURCE, code=f"os.chdir({str(folder)!r})\n{code}", before=before, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def folder(tmp_path):
    for name in (
        "w.npy",
        "old.npz",
        "model.bin",
        "config.json",
        "notes.txt",
        "w.csv",
        "w.gguf",
        "ckpt.index",
    ):
        (tmp_path / name).write_bytes(b"123")
    return tmp_path


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("open('model.bin').read()", "['model.bin']"),
        ("Path('model.bin').read_bytes(); open(b'w.npy')", "['model.bin', 'w.npy']"),
        ("import io; io.open(Path('w.npy'), 'rb')", "['w.npy']"),
        ("open('config.json'); open('notes.txt'); os.fdopen(os.open('config.json', 0))", "[]"),
        ("open('old.npz')", "[]"),  # Stele itself reads it
        ("open('w.csv'); open('w.gguf'); open('ckpt.index')", "['ckpt.index', 'w.csv', 'w.gguf']"),
        ("os.makedirs('checkpoint'); open('checkpoint/w.pt', 'w').close(); open('checkpoint/w.pt')", "[]"),
    ],
)
def test_files_of_weights_are_noted(folder, code, files):
    assert files_of(code, folder) == files


def test_files_are_noted_in_a_python_without_audit_hooks(folder):
    assert files_of("open('model.bin')", folder, "del sys.addaudithook") == "['model.bin']"


@pytest.mark.parametrize("import_first", ["", "import safetensors.numpy"])
def test_files_that_compiled_code_opens_are_noted(folder, import_first):
    pytest.importorskip("safetensors")
    code = "from safetensors.numpy import save_file, load_file, safe_open\n"
    code += "save_file({'a': numpy.ones(2)}, 'w.safetensors')\nreads.read.clear()\n"
    code += (
        "with safe_open('w.safetensors', 'np') as file: file.get_tensor('a')"
        if import_first
        else ("import safetensors\nwith safetensors.safe_open(filename='w.safetensors', framework='np') as file: pass")
    )
    assert files_of(code, folder, import_first) == "['w.safetensors']"
