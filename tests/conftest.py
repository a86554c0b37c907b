"""Every annotated shape of the package is checked while the tests run; nothing reaches a hub.

GSPO_NO_SKIP=1 makes a skipped test a failure that shows its reason: on the machine that decides,
a test that could not run is not a test that passed.
"""

import os
import signal
from collections.abc import Generator

import hypothesis
import pytest
from jaxtyping import install_import_hook

import tests.shape_checker  # noqa: F401 - the hook finds it by name

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share the cores; set before torch reads it

# Whoever starts the tests in the background of a script starts them deaf to Ctrl-C, which some test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# On a busy machine a test may take longer than it should; that is no fault of what it tests.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

install_import_hook("gspo", "tests.shape_checker.check")


def pytest_configure(config: pytest.Config) -> None:
    """A plugin sees all tests; hooks of this file would miss the examples below src."""
    if os.environ.get("GSPO_NO_SKIP") == "1":
        config.pluginmanager.register(NoSkip())


class NoSkip:
    """A skipped test fails, and shows why it was skipped."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """One phase of one test."""
        report = yield
        if not hasattr(report, "wasxfail"):
            self.fail(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A whole file, skipped while it was imported."""
        report = yield
        self.fail(report)
        return report

    def fail(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was skipped under GSPO_NO_SKIP=1: {reason}"
