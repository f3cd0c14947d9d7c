import pytest

from stele import text
from stele.errors import SteleError
from stele.report import published, results
from stele.report.sections import suite
from tests.support.runs import changed


def test_a_run_is_one_line(run):
    assert results.line(run) == "torch  cnn train  [10.0 11.0 12.0] ms  5,818 images/s  accuracy 36.0%"


def test_the_accuracy_is_called_what_the_task_calls_it(run):
    scored = changed(run, task="densenet121", learning={"accuracy": 0.8034})
    assert results.line(scored).endswith("images/s  AUC 0.803")
    assert "  AUC 0.803" in results.terminal([scored])[-1]
    text = results.markdown([scored])
    assert "| first step s | AUC | inference" in text and "| 0.803 |" in text and "accuracy" not in text
    [figure] = suite.section([scored]).figures
    assert "AUC" in figure.table.head and "accuracy" not in figure.table.head


def test_the_line_of_a_run_shows_its_caveats(run):
    synthetic_run = changed(run, data={"origin": "synthetic", "fingerprint": "0"}, steps={"steady": False})
    assert results.line(synthetic_run).endswith("not steady  synthetic data")


def test_the_line_of_resnet50_shows_the_origin_of_the_weights(run):
    assert results.line(changed(run, task="resnet50")).endswith("seeded weights")


@pytest.mark.parametrize(
    ("label", "mode", "shown"),
    [
        ("PyTorch", "eager", "eager, tuned"),
        ("JAX, jax==0.9.2", "jit", "jit, tuned"),
        ("PyTorch, as shipped", "as-shipped", "as-shipped"),
        ("TensorFlow", "graph", "graph"),
        ("TensorFlow, eager", "eager", "eager"),
    ],
)
def test_a_tuned_mode_is_called_so(run, label, mode, shown):
    assert f"| {label} | {shown} |" in results.markdown([changed(run, label=label, mode=mode)])


def test_the_memory_of_the_device_is_in_both_tables(run):
    on_gpu = changed(run, memory={"device": 300 * 2**20})
    assert "device 300 MiB" in results.terminal([on_gpu])[-1]
    known = changed(on_gpu, memory={"process": 812 * 2**20})
    assert "| 300, device 300 MiB, 812 MiB with its context and caches |" in results.markdown([known])
    assert "device" not in results.terminal([run])[-1]


BUSY = {"seconds": 3.0, "steal": 0.0, "foreign": 0.4, "gpu": None}


def test_a_run_beside_other_processes_has_the_caveat_busy_machine(run):
    busy = changed(run, conditions=BUSY)
    quiet = changed(run, conditions={**BUSY, "foreign": 0.0})
    assert results.line(busy).endswith("busy machine")
    assert results.terminal([busy])[-1].endswith("busy machine")
    assert "busy" not in results.line(quiet)


@pytest.mark.parametrize("phase", ["train", "infer"])
def test_the_tables_show_which_time_was_measured_on_a_busy_machine(run, phase):
    busy = changed(run, phase=phase, conditions=BUSY)
    assert "| [10.0 11.0 12.0] busy machine |" in results.markdown([busy])
    assert "busy machine" in published.tables([busy])


def test_unknown_ends_of_an_interval_are_question_marks(run):
    short = changed(run, steps={"seconds": (0.5, 0.01, 0.01)})
    assert "[? 10.0 ?] ms" in results.line(short)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0000123, "0.01"), (0.00123, "1.23"), (0.0123, "12.3"), (1.234, "1,234")]
)
def test_milliseconds_have_three_significant_digits_and_no_exponent(seconds, shown):
    assert text.milliseconds(seconds) == shown


def test_the_terminal_has_a_table_for_each_task_and_phase_below_one_header(run):
    slower = changed(run, environment="jax", steps={"seconds": tuple(9 * s for s in run.steps.seconds)})
    infer = changed(run, phase="infer", learning={"accuracy": None})
    assert results.terminal([infer, slower, run]) == [
        "quick  [low median high] ms  ratio  rate            first step  import  peak memory",
        "",
        "cnn train, batch 64",
        "torch  [10.0 11.0 12.0]      1.00   5,818 images/s  0.50 s      1.2 s   300 MiB      accuracy 36.0%",
        "jax    [90.0 99.0 108]       9.00   646 images/s    4.50 s      1.2 s   300 MiB      accuracy 36.0%",
        "",
        "cnn infer, batch 64",
        "torch  [10.0 11.0 12.0]      1.00   5,818 images/s  0.50 s      1.2 s   300 MiB",
    ]


def test_the_terminal_has_one_table_for_one_environment(run):
    infer = changed(run, phase="infer", learning={"accuracy": None})
    assert results.terminal([infer, run]) == [
        "torch, quick         [low median high] ms    rate            first step  import  peak memory",
        "cnn train, batch 64  [10.0 11.0 12.0]        5,818 images/s  0.50 s      1.2 s   300 MiB      accuracy 36.0%",
        "cnn infer, batch 64  [10.0 11.0 12.0]        5,818 images/s  0.50 s      1.2 s   300 MiB",
    ]


def test_without_a_run_the_terminal_has_no_header():
    assert results.terminal([]) == []


def test_markdown_shows_the_newest_run_and_no_empty_cell(run):
    later = changed(run, when="2026-02-01T00:00:00.000+00:00", learning={"accuracy": 0.35})
    text = results.markdown([run, later])
    assert (
        "| PyTorch | default | torch 2.13.0 | [10.0 11.0 12.0] | 5,818 | 0.50 | 35.0% | not run | not run | 1.2 | 300 |"
        in text
    )
    assert "Measured 2026-02-01 on Abacus 3000, 2 processors, cpu, 2 threads, fp32, seed 0. Data: cnn official." in text


def test_markdown_escapes_cells(run):
    unescaped = changed(run, label="<script>|")
    assert "| &lt;script>\\| |" in results.markdown([unescaped])


def test_no_runs_are_an_error_with_the_command_that_measures():
    with pytest.raises(SteleError, match="pytest perf_tests --benchmark-only"):
        results.markdown([])


def test_no_table_mixes_machines(run):
    other = changed(run, environment="jax", machine={"processor": "Other CPU"})
    text = results.markdown([run, other])
    parts = text.split("## ")
    assert len(parts) == 3
    assert ["PyTorch" in part for part in parts[1:]] != ["jax" in part for part in parts[1:]]
    assert "other-cpu-" in text
    assert "## " not in results.markdown([run])
