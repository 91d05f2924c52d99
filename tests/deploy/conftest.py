"""What the tests share: the chart, rendered by helm as a user would."""

import chart
import pytest


@pytest.fixture
def render(tmp_path):
    def begin(values=None, **arguments):
        return chart.check_all(chart.template(values, folder=tmp_path, **arguments).stdout)

    return begin
