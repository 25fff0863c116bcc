"""What every test run shares: quick C++ builds, and a model that is compiled once."""

import os
import subprocess
import sys

import pytest

# Whole programs are compiled for speed of simulation by default; what tests run is over in a second.
os.environ.setdefault("STEP_HW_OPT", "quick")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config, specs):
    """Compile the model's engine into its cache before there are workers, which would each compile it."""
    command = [sys.executable, "-c", "from sim.prediction import warm_up; warm_up()"]
    subprocess.run(command, cwd=config.rootpath, check=False)  # a test says better what is wrong with it
