"""What the tests share: the chart, rendered by helm as a user would."""

import chart
import pytest


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write the chart's list of flags instead of comparing with it")


@pytest.fixture
def render(tmp_path):
    def begin(values=None, **arguments):
        return chart.check_all(chart.template(values, folder=tmp_path, **arguments).stdout)

    return begin
