"""The native module of quantd's local(): quantd_core._native; and the command quantctl.

The package quantd has all Python code that uses the module.
"""

import os
import sys

__version__ = "0.1.0"


def quantctl() -> None:
    """The command: becomes the program that this package contains."""
    program = os.path.join(os.path.dirname(__file__), "bin", "quantctl")
    if not os.access(program, os.X_OK):
        sys.exit("quantctl: this quantd-core was built without gRPC and CLI11, which quantctl needs; client/python-core/README.md names the packages")
    os.execv(program, [program, *sys.argv[1:]])
