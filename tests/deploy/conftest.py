"""What the tests share: the chart, rendered by helm as a user would."""


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write the chart's list of flags instead of comparing with it")
