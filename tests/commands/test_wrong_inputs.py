"""Wrong command lines: each is one message with what to do, before the command waits, builds, downloads or measures."""

import shlex

import pytest

from stele import __main__ as entry_point
from stele.measuring import devices, lock, measure, processors

GATE = "gate jax==0.10.1 jax==0.10.2"
LINES = [
    # options without effect
    (f"{GATE} --input 8x3", "--input has no effect without --model. Add --model, or leave out --input."),
    (f"{GATE} --optimizer torch.optim:Adam", "--optimizer has no effect without --model."),
    (f"{GATE} --pretrained w.safetensors", "--pretrained has no effect without --model."),
    (f"{GATE} --weights-map map.json", "--weights-map has no effect without --model."),
    (f"{GATE} --model net.py:build --task gru", "--task has no effect with --model"),
    (f"{GATE} --target 60%", "--target has no effect without --metric time-to-target."),
    (f"{GATE} --metric step --accuracy-scale paper", "--accuracy-scale has no effect without --metric accuracy."),
    (f"{GATE} --scaling strong", "--scaling strong has no effect on one device."),
    (f"{GATE} --tolerance latency=5%", "--tolerance latency=N% has no effect: latency is not judged."),
    ("explain jax==0.10.1 jax==0.10.2 --input 8x3", "--input has no effect without --model."),
    ("bisect jax 0.9.2 0.10.2 --with numpy", "--with has no effect without --model."),
    ("bisect jax 0.9.2 0.10.2 --model net.py:build --task cnn", "--task has no effect with --model"),
    ("bisect jax 0.9.2 0.10.2 --metric round", "Unknown metric 'round' of gru"),
    ("bisect jax 0.9.2 0.10.2 --metric step -- pytest tests", "Unknown metric 'step' of pytest tests"),
    ("parity --python 3.11", "--python has no effect without --model."),
    ("parity --framework a,b --model net.py:build --task gru", "--task has no effect with --model"),
    ("releases run jax --extra dev", "--extra has no effect without --model."),
    ("env make torch --all", "--all selects every environment. Leave out --all or torch."),
    # what this machine does not have
    (f"{GATE} --device cuda", "--device cuda: this machine has no NVIDIA GPU. Use --device cpu."),
    ("explain jax==0.10.1 jax==0.10.2 --device cuda", "this machine has no NVIDIA GPU"),
    ("calibrate --device cuda", "this machine has no NVIDIA GPU"),
    ("parity --device cuda", "this machine has no NVIDIA GPU"),
    ("time-to-accuracy --scale cpu --device cuda", "this machine has no NVIDIA GPU"),
    (
        f"{GATE} --threads 99",
        "--threads 99 is too much: this machine has 2 processors, and one is for other processes.",
    ),
    (f"{GATE} --python 3.99", "Python ==3.99.* is not on PATH"),
    (f"{GATE} --resume none.jsonl", "--resume none.jsonl: there is no such file."),
    (f"{GATE} --resume", "No record of jax==0.10.1 and jax==0.10.2 in .stele/gates to resume."),
    ("gate --changed nobranch", "is not in a Git repository"),
    (f"{GATE} --with-project nofolder", "--with-project nofolder: there is no nofolder/pyproject.toml."),
    # names
    ("gate tf==2.20 tf==2.21", "Unknown framework 'tf'. Did you mean 'tensorflow'?"),
    ("gate jax=0.10.1 jax==0.10.2", "'jax=0.10.1' has one =. Did you mean jax==0.10.1?"),
    ("gate torch-2.12.0 torch-2.13.0", "Unknown framework 'torch-2.12.0'. Did you mean torch==2.12.0?"),
    ("gate 2.12.0 2.13.0", "Unknown framework '2.12.0'. Write a version with its framework, such as torch==2.12.0."),
    ("gate net.py jax==0.10.2", "net.py is no environment. Name a requirement such as torch==2.13.0"),
    ("gate jax-compile jax", "Unknown framework 'jax-compile'. Known: jax-as-shipped,"),
    (f"{GATE} --model torchvison:resnet18", "'torchvison' is not a library. Did you mean torchvision:resnet18?"),
    (f"{GATE} --model hf:nofolder/x", "there is no folder nofolder/x."),
    ("bisect jxa 0.9.2 0.10.2", "Unknown framework 'jxa'. Did you mean 'jax'?"),
    ("nightly jaxx", "Unknown framework 'jaxx'. Did you mean 'jax'?"),
    ("nightly jax --task gnu", "Unknown task 'gnu'. Did you mean 'gru'?"),
    ("fleet nightly jaxx", "Unknown framework 'jaxx'. Did you mean 'jax'?"),
    ("releases sync jaxx", "Unknown framework 'jaxx'. Did you mean 'jax'?"),
    ("releases run jaxx", "Unknown framework 'jaxx'. Did you mean 'jax'?"),
    ("releases list jaxx", "Unknown framework 'jaxx'. Did you mean 'jax'?"),
    ("releases measure jax-0.10.2 --python nopython", "there is no such interpreter."),
    ("calibrate --framework torhc", "Unknown framework 'torhc'. Did you mean 'torch'?"),
    ("calibrate --task gnu", "Unknown task 'gnu'. Did you mean 'gru'?"),
    ("tricks --framework torhc", "Unknown framework 'torhc'. Did you mean 'torch'?"),
    ("tricks --task cnn", "Task 'cnn' has no tricks. Choose another one, such as cifar-fast."),
    ("time-to-accuracy --framework torhc", "Unknown framework 'torhc'. Did you mean 'torch'?"),
    ("time-to-accuracy --task cnn", "Task 'cnn' has no scale 'cpu', the default. Add --scale with one of: "),
    ("time-to-accuracy --price X", "Unknown price 'X'."),
    ("env remove nope", "Unknown framework 'nope'. List all with: stele env list"),
    ("env remove", "Name an environment, or use --all."),
    # values
    (f"{GATE} --tolerance stp=5%", "Unknown metric 'stp' in --tolerance stp=5%. Did you mean 'step'?"),
    (f"{GATE} --tolerance 200%", "--tolerance 200% is too large: at most 100% is possible."),
    (f"{GATE} --tolerance 10% --margin 5%", "Raise it to at least 10%."),
    ("parity --devices 1", "--devices 1 is too small"),
    ("parity --seeds 4", "--seeds 4 is too small: the comparison of accuracies needs at least 5."),
    ("parity --merge none.json", "none.json cannot be read: No such file or directory."),
    ("fleet join notanaddress", "notanaddress is not an address such as 10.0.0.5:6379."),
    ("report none.json", "none.json does not exist. Name a record"),
    ("table --runs nofolder", "--runs nofolder: there is no such folder."),
    ("baseline promote nope", "There are no saved candidates in baselines."),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder on a machine with two processors and no GPU, on which nothing is measured or downloaded."""

    def refuse(*_, **__):
        raise AssertionError("the command was not refused")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lock, "machine", refuse)
    monkeypatch.setattr(measure, "inputs", refuse)
    monkeypatch.setattr(devices, "first", lambda: None)
    monkeypatch.setattr(processors, "count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "net.py").write_text("build = None\n")


@pytest.mark.parametrize(("line", "message"), LINES, ids=[line for line, _ in LINES])
def test_a_wrong_command_line_is_refused_before_anything_is_done(folder, capsys, line, message):
    assert entry_point.main(shlex.split(line)) == 2
    said = capsys.readouterr().err
    assert message in said and said.startswith("stele: ") and said.count("\n") == 1


@pytest.mark.parametrize(
    ("variable", "line"),
    [("STELE_ENVIRONMENTS", "env list"), ("STELE_INDEX", "releases sync jax")],
)
def test_a_variable_that_names_nothing_is_an_error(folder, capsys, monkeypatch, variable, line):
    from stele import environments

    monkeypatch.setenv(variable, "/nonexistent")
    environments.described.cache_clear()
    assert entry_point.main(line.split()) == 2
    assert f"{variable}=/nonexistent is n" in capsys.readouterr().err
