"""Mutation check: break one rule, guard, batching rule or lowering at a time, and count what the default tests notice.

``python -m tests.mutation --count 200 --seed 1 --jobs 2`` runs in temporary copies of the tree, in three steps:

1. One run of the default tests under coverage records the lines that each test executes, and its duration (``--map``).
2. Mutations are sampled at random, equally from the four families.
3. For each, the tests that execute the mutated line run, cheapest first, until one fails. If all pass, the other tests of the
   same function and of the mirrored folder follow. A mutant survives if every test passes.

A test that also fails without the mutation is not counted. ``--results`` holds one line of JSON per mutant; a run that is
interrupted continues there.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from queue import Queue
from typing import Any

from tqdm import tqdm

from tests.support.mutants import Site, sites_of

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {
    "rules": ["autodiff/grads/**/*.py", "autodiff/rules/**/*.py"],
    "guards": [
        "compgraph/guards/*.py", "compgraph/executor/passes.py",
        *(f"compgraph/compiled/{name}.py" for name in ("call_signatures", "captured_state")),
        *(f"compgraph/compiled/{name}.py" for name in ("pure_functions", "snapshots", "state_search")),
        "compgraph/compiled/specializations.py",
    ],
    "batching": ["autodiff/batching/**/*.py"],
    "lowerings": [
        *(f"compgraph/compiled/llvm/{name}/**/*.py" for name in ("lowering", "emission", "mathematics")),
        *(f"compgraph/compiled/llvm/{name}.py" for name in ("elementwise_ops", "convolution_geometry")),
    ],
}  # fmt: skip
TEXTS = {"autodiff/rules/rule_errors.py"}  # modules of error messages
MEMORY = 8 << 30  # bytes of address space of a test process, so that an endless loop cannot fill the machine
BATCHES = (30, 300)  # tests of the first runs of a mutant; the next run has all others


def all_sites() -> dict[str, list[Site]]:
    """List the mutations of each family."""
    sites: dict[str, list[Site]] = {}
    for family, patterns in FAMILIES.items():
        paths = sorted({path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)} - TEXTS)
        sites[family] = [site for path in paths for site in sites_of(family, path, (ROOT / path).read_text())]
    return sites


def sampled(sites: dict[str, list[Site]], count: int, seed: int) -> list[Site]:
    """Choose mutations at random, equally many of each family, at most one at each place."""
    orders = []
    for family in sorted(sites):
        shuffled = random.Random(f"{seed} {family}").sample(sites[family], len(sites[family]))
        orders.append(iter({(site.path, site.start): site for site in reversed(shuffled)}.values()))
    chosen: list[Site] = []
    while len(chosen) < count and orders:
        for order in list(orders):
            site = next(order, None)
            if site is None:
                orders.remove(order)
            else:
                chosen.append(site)
    return chosen[:count]


# ----------------------------------------------------------------------------------------------- the tests

_durations: dict[str, float] = defaultdict(float)
_failed: dict[str, None] = {}


def pytest_runtest_logreport(report: Any) -> None:
    """Note the duration of a test and whether it failed (this module is a plugin of the test processes)."""
    _durations[report.nodeid] += report.duration
    if report.failed:
        _failed[report.nodeid] = None


def pytest_sessionfinish(session: Any) -> None:
    """Write the records."""
    if "MUTATION_REPORT" in os.environ and not hasattr(session.config, "workerinput"):
        Path(os.environ["MUTATION_REPORT"]).write_text(json.dumps({"durations": _durations, "failed": [*_failed]}))


@dataclass
class Tree:
    """A copy of the project in which mutants are run."""

    root: Path
    sound: dict[str, bool] = field(default_factory=dict)  # whether tests pass without a mutation

    @classmethod
    def copied(cls, root: Path) -> Tree:
        """Copy the files that git knows, or would add."""
        names = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT).decode()
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, root / name)
        return cls(root)

    def write(self, path: str, text: str) -> None:
        """Write a module, and remove its bytecode."""
        (self.root / path).write_text(text)
        Path(importlib.util.cache_from_source(self.root / path)).unlink(missing_ok=True)

    def run(
        self, tests: Sequence[str], limit: float, *options: str, is_shown: bool = False, **environment: str
    ) -> tuple[bool, dict[str, Any]]:
        """Run tests in a process that may take `limit` seconds: whether all pass, and durations and failures."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            listed, report = Path(scratch, "tests.txt"), Path(scratch, "report.json")
            listed.write_text("\n".join(tests))
            settings = {
                "PYTHONPATH": f"{self.root}{os.pathsep}{ROOT}", "MUTATION_REPORT": str(report), "MPLBACKEND": "Agg",
                "COMPGRAPH_CACHE": f"{scratch}/cache", "HYPOTHESIS_STORAGE_DIRECTORY": f"{scratch}/hypothesis",
            }  # fmt: skip
            output = None if is_shown else subprocess.DEVNULL
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutation"]
            process = subprocess.Popen(
                [*command, "--basetemp", f"{scratch}/tmp", *options, *([f"@{listed}"] if tests else [])],
                cwd=self.root, env=os.environ | settings | environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip
            if hasattr(resource, "prlimit"):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
            try:
                passed = process.wait(limit) == 0
            except subprocess.TimeoutExpired:
                return False, {"durations": {}, "failed": ["time limit"]}
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            report_data = json.loads(report.read_text()) if report.exists() else {"durations": {}, "failed": []}
            return passed, report_data

    def noticing(self, site: Site, tests: Sequence[str], seconds: dict[str, float]) -> str:
        """Return a test that fails with a mutation and passes without, or another outcome; empty if all pass."""
        text = (self.root / site.path).read_text()
        try:
            while rest := [test for test in tests if self.sound.get(test, True)]:
                self.write(site.path, site.applied_to(text))
                passed, outcome = self.run(rest, 90 + 10 * sum(seconds.get(test, 1) for test in rest), "-x", "-n", "0")
                if passed or outcome["failed"] == ["time limit"]:
                    return "" if passed else "time limit"
                self.write(site.path, text)
                suspects = [test for test in outcome["failed"] if test in rest] or rest  # all, if none was run
                if self._are_sound(suspects, seconds):
                    return suspects[0] if outcome["failed"] else "the tests did not end"
            return ""
        finally:
            self.write(site.path, text)

    def _are_sound(self, tests: Sequence[str], seconds: dict[str, float]) -> bool:
        """Whether tests pass without a mutation."""
        if not all(self.sound.get(test) for test in tests):
            passed, outcome = self.run(tests, 90 + 10 * sum(seconds.get(test, 1) for test in tests), "-n", "0")
            failed = set() if passed else {*tests}.intersection(outcome["failed"]) or {*tests}
            self.sound |= {test: test not in failed for test in tests}
        return all(self.sound[test] for test in tests)


def beside(file: Path) -> Path:
    """Return the file of durations and failures that belongs to a file of coverage."""
    return file.with_name(f"{file.name}.json")


class Map:
    """The tests that execute a line, and their durations; tests that fail without a mutation are excluded.

    Parameters
    ----------
    file : path
        Data of coverage; durations and failures are next to it, in a file with ``.json`` added to its name.
    """

    def __init__(self, file: Path) -> None:
        from coverage import CoverageData

        report = json.loads(beside(file).read_text())
        self.seconds = {test: t for test, t in report["durations"].items() if test not in set(report["failed"])}
        self.data = CoverageData(str(file))
        self.data.read()
        self._lines: dict[str, dict[int, set[str]]] = {}

    @classmethod
    def by_run(cls, file: Path, jobs: int, tests: Sequence[str]) -> Map:
        """Run the default tests, or some of them, under coverage."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mutation-") as scratch:
            tree = Tree.copied(Path(scratch))
            Path(scratch, "coverage.ini").write_text("[run]\nrelative_files = true\n")
            options = ["--cov=compgraph", "--cov=autodiff", "--cov-context=test", "--cov-report=", "--cov-config=coverage.ini"]
            data_file = str(file.absolute())
            _, outcome = tree.run(tests, 4 * 3600, *options, "-n", str(jobs), is_shown=True, COVERAGE_FILE=data_file)
        if not outcome["durations"]:
            raise SystemExit("No test ran for the map. It needs pytest-cov, and arguments of --tests that pytest accepts.")
        beside(file).write_text(json.dumps(outcome))
        print(
            f"map of {len(outcome['durations'])} tests; these fail without a mutation:", *outcome["failed"] or ["none"], sep="\n"
        )
        return cls(file)

    def lines(self, path: str) -> dict[int, set[str]]:
        """Return the tests of each line of a module."""
        if path not in self._lines:
            contexts_by_line = {}
            for line, contexts in self.data.contexts_by_lineno(path).items():
                contexts_by_line[line] = {context.rpartition("|")[0] for context in contexts} & self.seconds.keys()
            self._lines[path] = contexts_by_line
        return self._lines[path]

    def executing(self, path: str, first: int, last: int) -> set[str]:
        """Return the tests that execute one of the lines."""
        lines = self.lines(path)
        return set().union(*(lines.get(line, ()) for line in range(first, last + 1)))

    def is_executed(self, site: Site) -> bool:
        """Whether a test executes the line of a mutation."""
        return bool(self.executing(site.path, site.start[0], site.end[0]))

    def groups(self, site: Site) -> list[list[str]]:
        """Return the tests to run for a mutation: of its line, of its function, of the mirrored folder; cheapest first."""
        folder = Path("tests", site.path).parent
        while not (ROOT / folder).is_dir():
            folder = folder.parent
        near = {test for test in self.seconds if test.startswith(f"{folder.as_posix()}/")}
        if not self.executing(site.path, *site.function):  # it runs on import, or in another process
            near |= {test for test in self.seconds if test.startswith("tests/test_operations.py")}
        sets = [self.executing(site.path, site.start[0], site.end[0]), self.executing(site.path, *site.function), near]
        groups, members = [], set[str]()
        for tests in sets:
            ordered = sorted(tests - members, key=lambda test: (self.seconds[test], test))
            members |= tests
            bounds = [0, *(bound for bound in BATCHES if bound < len(ordered)), len(ordered)]
            groups += [ordered[a:b] for a, b in itertools.pairwise(bounds) if b > a]
        return groups


# --------------------------------------------------------------------------------------------------- a run


@dataclass(frozen=True)
class Result:
    """The outcome for a mutant: the test that noticed it, if any, and the number of tests."""

    name: str
    family: str
    noticed_by: str
    tests: int


class Check:
    """A run of mutants in several copies of the tree, with results in a file.

    Parameters
    ----------
    map : Map
        Of the default tests.
    file : path
        Of the results, a line of JSON for each.
    """

    def __init__(self, map: Map, file: Path) -> None:
        self.map, self.file = map, file

    @cached_property
    def results(self) -> dict[str, Result]:
        """The results so far, by the names of the mutants; the last one counts."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return {result.name: result for result in (Result(**json.loads(line)) for line in lines)}

    def _judge(self, site: Site, trees: Queue[Tree]) -> Result:
        tree, by, count = trees.get(), "", 0
        try:
            for group in self.map.groups(site):
                count += len(group)
                by = by or tree.noticing(site, group, self.map.seconds)
                if by:
                    break
        finally:
            trees.put(tree)
        return Result(str(site), site.family, by, count)

    def run(self, sites: Sequence[Site], jobs: int) -> None:
        """Run mutants, and write each result."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix="mutation-", ignore_cleanup_errors=True) as scratch,
            ThreadPoolExecutor(jobs) as pool,
        ):
            trees: Queue[Tree] = Queue()
            for k in range(jobs):
                trees.put(Tree.copied(Path(scratch, str(k))))
            futures = [pool.submit(self._judge, site, trees) for site in sites]
            try:
                for future in tqdm(as_completed(futures), "mutants", total=len(futures)):
                    self._note(future.result())
            except BaseException:  # an interruption, for example: pending mutants are not started
                pool.shutdown(cancel_futures=True)
                raise

    def _note(self, result: Result) -> None:
        self.results[result.name] = result
        with self.file.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        if not result.noticed_by:
            tqdm.write(f"survived {result.tests} tests: {result.name}")

    def summary(self, sites: Sequence[Site]) -> str:
        """Return the share that was noticed, in all and of each family, and the names of survivors."""
        results = [self.results[str(site)] for site in sites if str(site) in self.results]
        total, noticed = Counter(r.family for r in results), Counter(r.family for r in results if r.noticed_by)
        lines = [f"{family:10} {noticed[family]} of {total[family]} noticed" for family in total]
        lines.append(f"{'all':10} {noticed.total()} of {total.total()} noticed ({noticed.total() / max(total.total(), 1):.1%})")
        return "\n".join([*lines, *(f"survived {r.tests} tests: {r.name}" for r in results if not r.noticed_by)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Sample mutants, run them, and print the share detected by the default tests."""
    folder = Path(tempfile.gettempdir(), "compgraph-mutation")
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at a time")
    parser.add_argument("--family", choices=sorted(FAMILIES), help="only mutants of this family")
    parser.add_argument("--only", type=int, metavar="N", help="only the Nth mutant of the sample, from 0")
    parser.add_argument("--list", action="store_true", help="print the sample, and run nothing")
    parser.add_argument("--executed", action="store_true", help="sample only lines that a test of the map executes")
    parser.add_argument("--again", action="store_true", help="run survivors of an earlier run again")
    parser.add_argument("--map", type=Path, default=folder / "map", help="coverage of the default tests; made if missing")
    parser.add_argument("--results", type=Path, default=folder / "results.jsonl", help="results so far are reused")
    parser.add_argument(
        "--tests", default="", help="arguments of pytest for a new map of some tests: 'tests/compgraph/guards -k sin'"
    )
    options = parser.parse_args(arguments)

    map = None
    if options.executed or not options.list:
        map = Map(options.map) if options.map.exists() else Map.by_run(options.map, options.jobs, shlex.split(options.tests))
    sites = all_sites()
    if options.family:
        sites = {options.family: sites[options.family]}
    if options.executed and map:
        sites = {family: [site for site in family_sites if map.is_executed(site)] for family, family_sites in sites.items()}
    chosen = list(enumerate(sampled(sites, options.count, options.seed)))
    if options.only is not None:
        chosen = chosen[options.only : options.only + 1]
    if options.list or map is None:
        print(*(f"{k} {site.family}: {site}" for k, site in chosen), sep="\n")
        print({family: len(family_sites) for family, family_sites in sites.items()})
        return
    check = Check(map, options.results)
    selection = [site for _, site in chosen]
    check.run(
        [s for s in selection if (r := check.results.get(str(s))) is None or (options.again and not r.noticed_by)], options.jobs
    )
    print(check.summary(selection))


if __name__ == "__main__":
    main()
