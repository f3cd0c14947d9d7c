"""An asv suite of the user: ``time_``, ``timeraw_``, ``mem_``, ``peakmem_`` and ``track_``, found by asv_runner.

Each combination of parameters is an item. What ``track_`` returns is a value, because asv does not say which direction
is better. asv's own environments and repetitions are not used.
"""

import itertools
import os
import sys
from time import perf_counter

from asv_runner.benchmarks.timeraw import TimerawBenchmark
from asv_runner.discovery import disc_benchmarks

from stele_worker import process
from stele_worker.models.errors import SpecError
from stele_worker.programs import Program, failed, outcome, profiling, timed, timing_of_calls, values

TIMED = ("time",)  # types of benchmarks
MEASURED = ("memory", "peakmemory")


class Main(Program):
    def prepare(self, model):
        [folder] = model["arguments"]
        root = os.path.join(self.folder, folder)
        start = perf_counter()
        sys.path.insert(0, os.path.dirname(os.path.abspath(root)))
        self.items, self.caches = {}, {}
        for benchmark in disc_benchmarks(os.path.abspath(root)):
            combinations = list(itertools.product(*benchmark.params)) if benchmark.params else [()]
            for number, combination in enumerate(combinations):
                shown = "({})".format(", ".join(combination)) if combination else ""
                self.items[benchmark.name + shown] = (benchmark, number if benchmark.params else None)
        if not self.items:
            raise SpecError("--asv {} contains no benchmark".format(folder))
        return perf_counter() - start, {}

    def collect(self, host):
        return {"items": [{"name": name} for name in self.items], "failures": []}

    def run(self, host, name, following=None):
        start = perf_counter()
        try:
            benchmark = self.chosen(name)
            if benchmark.do_setup():
                return outcome("skipped", "its setup, or a list of parameters, says so")
            result = benchmark.do_run() if benchmark.type not in TIMED else None
            timing = self.timing_of(benchmark)
            benchmark.do_teardown()
        except BaseException as error:  # also sys.exit()
            return failed(error, self.folder, perf_counter() - start)
        computed = values.describe(result) if benchmark.type not in (*TIMED, *MEASURED) else {}
        computed = {"tracked" + part: value for part, value in computed.items()}
        return outcome("passed", seconds=perf_counter() - start, values=computed, timing=timing)

    def rounds(self, host, task, steps, batch, turn=None, profile=0, sampler=None, **_):
        process.reset_peak_memory()
        benchmark = self.chosen(task)
        benchmark.do_setup()
        seconds, numbers = [], None
        for number in range(steps):
            if number and benchmark.type in TIMED:
                benchmark.do_teardown()
                benchmark.do_setup()
            if turn is not None:
                host.pause(number)
            if benchmark.type in TIMED:
                seconds.append(self.seconds_of(benchmark, batch) / batch)
                continue
            start = perf_counter()
            process.reset_peak_memory()
            result = benchmark.do_run()
            # asv's own number of the peak is that of the whole process, and of the one that started it
            numbers = {"memory": float(process.peak_memory() if benchmark.type == "peakmemory" else result)}
            seconds.append(perf_counter() - start)
            break
        shown = profiling.profile(lambda: self.seconds_of(benchmark, 1), profile, sampler) if profile else None
        benchmark.do_teardown()
        return dict(timed(seconds, batch, shown), numbers=numbers)

    def chosen(self, name):
        """Return the benchmark of an item, with its parameters and what ``setup_cache`` returned."""
        benchmark, number = self.items[name]
        if number is not None:
            benchmark.set_param_idx(number)
        key = benchmark.setup_cache_key
        if key is not None:
            if key not in self.caches:
                self.caches[key] = benchmark.do_setup_cache()
            if hasattr(benchmark, "set_cache"):
                benchmark.set_cache(self.caches[key])
            elif self.caches[key] is not None:
                benchmark.insert_param(self.caches[key])
        return benchmark

    def timing_of(self, benchmark):
        """Return how long a call takes; of memory, that there is one round; None of what is tracked."""
        if benchmark.type in MEASURED:
            return {"seconds": 1.0, "calls": 1, "rounds": 1}
        if benchmark.type not in TIMED:
            return None
        return timing_of_calls(lambda: self.seconds_of(benchmark, 1))

    def seconds_of(self, benchmark, calls):
        """Return the duration of some calls; each of ``timeraw_`` is in a process of its own."""
        parameters = tuple(benchmark._current_params)
        if hasattr(benchmark, "_build_params"):
            parameters = benchmark._build_params()
        if isinstance(benchmark, TimerawBenchmark):
            return benchmark._get_timer(*parameters).timeit(calls)
        function, clock = benchmark.func, benchmark.timer
        start = clock()
        for _ in range(calls):
            function(*parameters)
        return clock() - start
