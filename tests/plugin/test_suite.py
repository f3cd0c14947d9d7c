"""The suite as a user runs it, ``pytest perf_tests``, with the two fakes for frameworks.

It runs in this process, which has imported everything already. A separate process runs it if a signal stops it.
"""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from stele import environments
from tests.support.processes import alive, wait_until
from tests.support.suites import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind_when_the_suite_is_stopped(suite, number, tmp_path):
    note = tmp_path / "pid"
    source = textwrap.dedent(f"""
        import os, time
        from stele_worker import __main__, verbs
        def hang(request, tell):
            open({str(note)!r}, "w").write(str(os.getpid()))
            time.sleep(600)
        verbs.do = hang
        __main__.main()
    """)
    suite._describe("hanging", {}, command=[sys.executable, "-c", source])
    arguments = suite.arguments("--framework=hanging", "--task=resnet50", "-k", "inference")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env={**os.environ, **suite.variables()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        wait_until(lambda: note.exists() and note.read_text(), seconds=30)
        running.send_signal(number)
        running.wait(30)
    wait_until(lambda: not alive(int(note.read_text())))


@pytest.mark.slow
def test_collecting_the_suite_imports_no_framework():
    code = (
        "import sys, pytest; status = pytest.main(['perf_tests', '--collect-only', '-q', '--framework', sys.argv[1]]);"
        "print('FRAMEWORKS', sorted({'torch', 'jax', 'tensorflow', 'keras'} & set(sys.modules)), int(status))"
    )
    command = [sys.executable, "-c", code, ",".join(environments.names())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "FRAMEWORKS [] 0" in done.stdout
    assert f"[gru-{environments.names()[0]}]" in done.stdout
