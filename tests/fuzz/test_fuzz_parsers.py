"""Arbitrary and mutated text on a command line gives a value or an error that the user can act on."""

import argparse
import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stele import environments
from stele.commands import options
from stele.environments import arms, lockfiles, revisions
from stele.environments.arms import Extras
from stele.gate import metrics as gate_metrics
from stele.subjects.model import inputs, spec
from tests.fuzz.hostile import TEXT, changed_text, refuses_or_returns


def like(*examples):
    """Return a strategy for an argument like one of the examples. The operating system passes no null character."""
    text = st.sampled_from(examples).flatmap(changed_text) | TEXT
    return text.map(lambda drawn: drawn.replace("\0", "\udc80"))  # a byte that is not UTF-8


REQUIREMENTS = like(
    "jax==0.9.2",
    "jax==0.9.2 jaxlib==0.9.2 python==3.10",
    "keras-jax@keras==3.14.1",
    "torch[extra]>=2,<3 ; python_version < '3.11'",
    "tensorflow==2.*",
    "torch===2.4",
    "name @ git+https://example.org/x.git@main",
    "name @ file:///nowhere/x-1.0-py3-none-any.whl",
)


@given(REQUIREMENTS)
@example("jax===a")
@example("keras-jax@")
@example("torch==9" + "9" * 5000)
def test_a_requirement_names_an_environment_or_is_refused(text):
    refuses_or_returns(environments.load, text)


@given(REQUIREMENTS, st.booleans())
@example("~nobody-has-this-name/bin/python", False)
@example("torch==2.4.0 " * 400, False)
def test_an_arm_is_an_environment_or_is_refused(text, allow_vcs):
    extras = Extras(allow_vcs=allow_vcs)
    refuses_or_returns(arms.load, text, arms.TASKS, extras)
    refuses_or_returns(arms.load, text, arms.Needs(), extras)


@given(like("8x3x64x64", "int:4x128:30522", "ids=int:4x128:30522,mask=mask:4x128"))
@example("9" * 5000)
@example("1x٣")
@example("x".join(["0"] * 2000))
def test_inputs_are_typed_again_as_they_are_shown_or_are_refused(text):
    parsed = refuses_or_returns(inputs.parse, text)
    if parsed is not None:
        assert inputs.parse(",".join(map(str, parsed))) == parsed


@given(
    like(
        "package.module:attribute",
        "path/file.py:attribute",
        "hf-tiny:bert",
        "timm:resnet18",
        "recipes/cnn/torch.py:network",
    )
)
@example("x" * 300 + ".py:y")
def test_a_model_is_named_or_refused(text):
    refuses_or_returns(spec.parse, text, Path.cwd())


@given(like("torch.optim:AdamW"), like("weights.safetensors"))
@example(":", "x" * 300 + ".safetensors")
@example("a:b", "~nobody/x.safetensors")
def test_the_optimizer_and_the_weights_of_a_model_are_named_or_refused(optimizer, pretrained):
    refuses_or_returns(spec.parse, "package:model", Path.cwd(), optimizer=optimizer, pretrained=pretrained)


@given(like("90s", "20m", "1.5h"))
@example("9" * 400 + "h")
@example("٣m")
def test_a_duration_is_a_finite_number_of_seconds_or_is_refused(text):
    with contextlib.suppress(argparse.ArgumentTypeError):
        assert 0 <= options.parse_duration(text) < math.inf


THRESHOLDS = st.lists(like("5%", "host-memory=3%", "step=0.5%"), max_size=3)


@given(THRESHOLDS, THRESHOLDS)
@example(["9" * 400 + "%"], [])
@example([], ["9" * 5000 + "%"])
def test_thresholds_are_finite_or_are_refused(tolerances, margins):
    parsed = [
        refuses_or_returns(gate_metrics.parse_thresholds, *pair)
        for pair in (("--tolerance", tolerances), ("--margin", margins))
    ]
    metrics = None if None in parsed else refuses_or_returns(gate_metrics.with_thresholds, *parsed)
    assert metrics is None or all(0 <= metric.tolerance <= metric.margin < math.inf for metric in metrics)


@given(like("cnn,gru", "cnn", ","))
def test_tasks_are_known_or_refused(text):
    refuses_or_returns(options.CellOptions(task=text).cells)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a folder with a lock file, outside of any repository: git then refuses every revision at once."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@given(text=like("requirements.txt@main", "requirements.txt", "uv.lock@v1.0~2^{commit}"))
@example(text="x" * 300 + "@main")
@example(text="requirements.txt@--output=x")
def test_a_file_at_a_revision_is_read_or_refused(repository, text):
    lockfiles.is_lockfile(text)
    refuses_or_returns(revisions.read, text)
    assert [path.name for path in repository.iterdir()] == ["requirements.txt"]
