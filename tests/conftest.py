"""Options, markers and profiles of the whole suite.

What it is: the ``--run-slow`` and ``--profile`` options. What comes in: the command line. What goes out: slow tests
skipped unless asked for, hypothesis profiles, the ``suite_profile`` fixture. What must not be here: fixtures of one layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from support.daemon import DaemonProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW_TIMEOUT_S = 300  # a slow test starts real processes; a hang still ends before CI's patience does

settings.register_profile(
    "ci",
    derandomize=True,  # a red run must be red again
    max_examples=60,
    deadline=None,  # nothing may depend on the machine's speed
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("ci"), derandomize=False, max_examples=2000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memd")
    group.addoption(
        "--run-slow", action="store_true", help="run the tests marked slow too (real processes, real fsync)"
    )
    group.addoption(
        "--profile",
        choices=("ci", "long"),
        default="ci",
        help="ci: fixed seeds and short runs; long: random seeds and long runs, for a person who waits",
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(config.getoption("--profile"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run_slow = config.getoption("--run-slow")
    run_model = "model" in str(config.getoption("markexpr"))
    for item in items:
        if item.get_closest_marker("model") is not None and not run_model:
            item.add_marker(pytest.mark.skip(reason="a real model: run with -m model"))
        if item.get_closest_marker("slow") is None:
            continue
        if not run_slow:
            item.add_marker(pytest.mark.skip(reason="slow: run with --run-slow"))
        elif item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))


@pytest.fixture(scope="session")
def suite_profile(pytestconfig: pytest.Config) -> str:
    """``ci`` or ``long``: how much of itself a slow test should run."""
    return str(pytestconfig.getoption("--profile"))


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    """A scratch home with a daemon that is not started yet; it is gone with all it left when the test ends."""
    with DaemonProcess() as process:
        yield process
        print(process.log())  # noqa: T201 - pytest shows it beside a failure
