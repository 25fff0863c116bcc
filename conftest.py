"""What every test run shares: quick C++ builds, and a model that is compiled once."""

import os
import subprocess
import sys

import pytest

# Whole programs are compiled for speed of simulation by default; what tests run is over in a second.
os.environ.setdefault("STEP_HW_OPT", "quick")


_BEATS = "from sim.prediction import warm_up; warm_up()"
_TILES = """from examples import softmax
from sim.tile import predict
from sim.tile.engine import serve_all_kinds
serve_all_kinds()
predict(softmax.build())"""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config, specs):
    """Compile the models' engines into their cache before there are workers, which would each compile them."""
    compiling = [subprocess.Popen([sys.executable, "-c", code], cwd=config.rootpath) for code in (_BEATS, _TILES)]
    for process in compiling:
        process.wait()  # a test says better what is wrong with it


@pytest.fixture(scope="session", autouse=True)
def one_engine_of_logical_tiles():
    """Tests follow programs of all kinds: do not compile the first one's operators first."""
    from sim.tile.engine import serve_all_kinds

    serve_all_kinds()
