"""Build a design once for a simulator; find it again by content.

``build(simulator, verilog, top)`` compiles Verilog for Icarus or Verilator into a cache directory whose name is a hash
of everything that decides the result: the Verilog text, the simulator's version, the flags, the C++ main. A build is
made in a temporary directory beside its final place and renamed when it is whole, under a file lock, so that parallel
test processes build once and an interrupted build is never taken for a finished one.

The cache lies in the user's cache directory; ``STEP_HW_CACHE`` or the ``cache`` argument puts it elsewhere.
"""

import fcntl
import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache as memoize
from pathlib import Path

import platformdirs

from .errors import BuildError, SimulatorError
from .process import run_group

__all__ = ["SIMULATORS", "Build", "build", "cache_directory", "find_simulator", "installed"]

_HERE = Path(__file__).parent
VPI_MAIN = _HERE / "vpi_main.cpp"
_KEEP_DAYS = 30

_GATHERED_BYTES = 1 << 20
"""C++ compiled in one piece, about. A file costs half a second of CPU for its headers before its first line, and
Verilator writes dozens, most of them of a few lines."""

#: What ``make`` gets per optimisation level: OPT_FAST for the code of every cycle, OPT_SLOW for start-up code.
_OPT = {"quick": ("-O0", "-O0"), "fast": ("-O2", "-O1"), "max": ("-O3", "-O1")}


@dataclass(frozen=True)
class _Simulator:
    name: str
    programs: tuple[str, ...]
    version_command: tuple[str, ...]
    version_pattern: str
    oldest: tuple[int, int]
    install: str


SIMULATORS = {
    "icarus": _Simulator(
        name="icarus",
        programs=("iverilog", "vvp"),
        version_command=("iverilog", "-V"),
        version_pattern=r"Icarus Verilog version (\d+)\.(\d+)",
        oldest=(11, 0),
        install="apt install iverilog (Debian 12 has 11.0), or build https://github.com/steveicarus/iverilog",
    ),
    "verilator": _Simulator(
        name="verilator",
        programs=("verilator", "make", "g++"),
        version_command=("verilator", "--version"),
        version_pattern=r"Verilator (\d+)\.(\d+)",
        oldest=(5, 6),
        install="apt install verilator make g++ (Debian 12 has 5.006), or build https://github.com/verilator/verilator",
    ),
}


@dataclass(frozen=True)
class Build:
    """A compiled design.

    ``executable`` is the Verilated program, or the file that ``vvp`` runs; ``trace`` says whether it can write
    waveforms; ``vpi`` whether cocotb can be attached; ``cached`` whether this call found it ready.
    """

    simulator: str
    top: str
    directory: Path
    executable: Path
    trace: bool
    vpi: bool
    version: str
    cached: bool


@memoize
def _version_text(command: tuple[str, ...], path: str) -> str:
    # `path` is the PATH searched: part of the key, so that a test that changes it is not told an old answer.
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False)
    return done.stdout + done.stderr


def find_simulator(name: str) -> str:
    """Version of simulator ``name`` as text such as ``"5.006"``; `SimulatorError` if it is missing or too old."""
    if name not in SIMULATORS:
        raise SimulatorError(f"simulator: {name!r} vs one of {', '.join(SIMULATORS)}")
    simulator = SIMULATORS[name]
    path = os.environ.get("PATH", "")
    missing = [program for program in simulator.programs if shutil.which(program, path=path) is None]
    if missing:
        raise SimulatorError(
            f"simulator {name}: program{'s' if len(missing) > 1 else ''} {', '.join(missing)} not found on PATH",
            fix=simulator.install,
        )
    match = re.search(simulator.version_pattern, _version_text(simulator.version_command, path))
    if match is None:
        raise SimulatorError(
            f"simulator {name}: `{' '.join(simulator.version_command)}` prints no version", fix=simulator.install
        )
    found = (int(match[1]), int(match[2]))
    if found < simulator.oldest:
        width = 3 if name == "verilator" else 1
        oldest = f"{simulator.oldest[0]}.{simulator.oldest[1]:0{width}d}"
        raise SimulatorError(
            f"simulator {name}: version {match[1]}.{match[2]} vs at least {oldest}", fix=simulator.install
        )
    return f"{match[1]}.{match[2]}"


def installed(name: str) -> str | None:
    """None when simulator ``name`` can be used, else the reason why not."""
    try:
        find_simulator(name)
    except SimulatorError as error:
        return str(error)
    return None


def cache_directory(cache: str | os.PathLike | None = None) -> Path:
    """Directory of all builds: ``cache``, else ``$STEP_HW_CACHE``, else the user's cache directory."""
    chosen = cache or os.environ.get("STEP_HW_CACHE") or platformdirs.user_cache_dir("step-hw")
    return Path(chosen).expanduser().resolve()


def _sources(verilog: Mapping[str, str] | Sequence[str | os.PathLike]) -> dict[str, str]:
    """File name -> text, in the order given (which is the order of compilation)."""
    if isinstance(verilog, Mapping):
        sources = dict(verilog)
    else:
        sources = {}
        for path in map(Path, verilog):
            if path.name in sources:
                raise BuildError(f"two Verilog files are named {path.name}; give them different names")
            try:
                sources[path.name] = path.read_text()
            except OSError as error:
                raise BuildError(f"Verilog file {path} cannot be read: {error.strerror}") from error
    if not sources:
        raise BuildError("no Verilog to build: the file list is empty")
    for name in sources:
        if Path(name).name != name:
            raise BuildError(f"Verilog file name {name!r} has a directory in it; give a bare name such as 'top.v'")
    return sources


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released by the kernel when the process dies, however it dies
        yield


def _fail(simulator: str, top: str, log: str) -> BuildError:
    lines = log.strip().splitlines()
    wrong = [line for line in lines if re.search(r"error", line, re.IGNORECASE)]
    shown = wrong[:8] or lines[-8:]
    return BuildError(f"{simulator} could not compile {top}:\n  " + "\n  ".join(shown))


def _run(command: Sequence[str | os.PathLike], cwd: Path, simulator: str, top: str) -> None:
    done = run_group(command, cwd=cwd, log=cwd / "build.log")
    if done.returncode != 0:
        raise _fail(simulator, top, done.output)


def _build_icarus(work: Path, sources: list[str], top: str, defines: Mapping[str, str | int], trace: bool) -> str:
    (work / "commands.f").write_text("+timescale+1ns/1ps\n")
    command = ["iverilog", "-g2012", "-o", "design.vvp", "-s", top, "-f", "commands.f"]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    command += sources
    if trace:
        # Icarus dumps what a module of ours asks it to; the path comes at run time, and without it nothing is dumped.
        (work / "step_waves.v").write_text(
            "module step_waves;\n  reg [8*4096-1:0] path;\n"
            '  initial if ($value$plusargs("trace_file=%s", path)) begin\n'
            f"    $dumpfile(path);\n    $dumpvars(0, {top});\n  end\nendmodule\n"
        )
        command += ["-s", "step_waves", "step_waves.v"]
    _run(command, work, "icarus", top)
    return "design.vvp"


def _runtime_objects(work: Path, store: Path, *, save: bool) -> None:
    """Carry the objects of Verilator's own runtime (the same for every design) from build to build: 10 s each saved."""
    if save:
        if store.exists():
            return
        with tempfile.TemporaryDirectory(dir=store.parent) as temporary:
            whole = Path(temporary) / "objects"
            whole.mkdir()
            for item in sorted(work.glob("verilated*.o")):
                shutil.copy(item, whole / item.name)
            try:
                whole.rename(store)
            except OSError:  # another build was first
                pass
    elif store.exists():
        for item in sorted(store.iterdir()):
            shutil.copy(item, work / item.name)  # a fresh time stamp: newer than the sources, so make keeps it


def _gather(objects: Path) -> list[str]:
    """Gather Verilator's C++ files into few, those optimised alike together: what ``make`` is told to compile instead.

    What it may not be told is left as it is: a version of Verilator that lists its files in another way builds slowly.
    """
    listed = (objects / "Vtop_classes.mk").read_text()
    told = []
    for speed in ("FAST", "SLOW"):
        names: list[str] = []
        for kind in ("CLASSES", "SUPPORT"):
            found = re.search(rf"^VM_{kind}_{speed} \+= \\\n((?:\t\w+ \\\n)*)", listed, re.M)
            if found is None:
                return []
            names += re.findall(r"\w+", found[1])
        pieces: list[list[str]] = [[]]
        size = 0
        for name in names:
            if size > _GATHERED_BYTES:
                pieces, size = [*pieces, []], 0
            pieces[-1].append(name)
            size += (objects / f"{name}.cpp").stat().st_size
        gathered = [f"gathered_{speed.lower()}_{i}" for i in range(len(pieces))]
        for name, piece in zip(gathered, pieces):
            (objects / f"{name}.cpp").write_text("".join(f'#include "{included}.cpp"\n' for included in piece))
        told += [f"VM_CLASSES_{speed}={' '.join(gathered)}", f"VM_SUPPORT_{speed}="]
    return told


def _build_verilator(
    work: Path,
    sources: list[str],
    top: str,
    defines: Mapping[str, str | int],
    *,
    trace: bool,
    vpi: bool,
    main: Path,
    opt: str,
    arguments: Sequence[str],
    public: str,
    jobs: int,
    runtime: Path,
) -> str:
    objects = work / "obj"
    objects.mkdir()
    command: list[str] = ["verilator", "--cc", "--exe", "--top-module", top, "--prefix", "Vtop", "--Mdir", "obj"]
    command += ["-o", "design", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--timescale", "1ns/1ps"]
    command += ["--no-timing", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--output-split", "20000"]
    # Wide concatenations and copies word by word: 4 times faster than the library calls for a tile of 8,192 bits.
    command += ["--expand-limit", "1024"]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    if trace:
        command += ["--trace-fst", "--trace-underscore", "-CFLAGS", "-DSTEP_TRACE=1"]
    else:
        command += ["-CFLAGS", "-DSTEP_TRACE=0"]
    if vpi:
        from cocotb_tools import config

        # A payload of tiles is wider than the 2048 bits that Verilator's VPI passes as text by default.
        command += ["-CFLAGS", "-DVL_VALUE_STRING_MAX_WORDS=4096"]
        command += ["--vpi", "-LDFLAGS", f"-Wl,-rpath,{config.libs_dir} -L{config.libs_dir} -lcocotbvpi_verilator"]
        if public == "all":
            command += ["--public-flat-rw"]
        else:
            # Ports of the top are all that a bench needs; making every signal public costs most optimisations.
            (work / "public.vlt").write_text(f'`verilator_config\npublic_flat_rw -module "{top}" -var "*"\n')
            command += ["public.vlt"]
    shutil.copy(main, work / "main.cpp")
    command += [*arguments, str(work / "main.cpp"), *sources]
    _run(command, work, "verilator", top)
    _runtime_objects(objects, runtime, save=False)
    fast, slow = _OPT[opt]
    make = [
        "make",
        "-C",
        "obj",
        "-f",
        "Vtop.mk",
        f"-j{jobs}",
        f"OPT_FAST={fast}",
        f"OPT_SLOW={slow}",
        "OPT_GLOBAL=-O2",
        *_gather(objects),
        "design",
    ]
    _run(make, work, "verilator", top)
    _runtime_objects(objects, runtime, save=True)
    (objects / "design").rename(work / "design")
    shutil.rmtree(objects)  # 95% of the bytes, and nobody reads them
    return "design"


def build(
    simulator: str,
    verilog: Mapping[str, str] | Sequence[str | os.PathLike],
    top: str,
    *,
    vpi: bool = True,
    main: str | os.PathLike | None = None,
    defines: Mapping[str, str | int] | None = None,
    trace: bool | None = None,
    opt: str = "quick",
    public: str = "ports",
    arguments: Sequence[str] = (),
    jobs: int = 2,
    cache: str | os.PathLike | None = None,
) -> Build:
    """Compile ``verilog`` (file name -> text, or paths) with module ``top`` as its top.

    Parameters
    ----------
    simulator:
        ``"icarus"`` or ``"verilator"``.
    vpi:
        Attach cocotb (Verilator; Icarus always can).
    main:
        C++ main for Verilator; default is the cocotb main. Only for ``vpi=False`` is another one needed.
    trace:
        Compile waveform support in; default: the environment's ``STEP_HW_WAVES``.
    opt:
        C++ effort: ``"quick"`` for unit benches, ``"fast"`` and ``"max"`` for long runs.
    public:
        ``"ports"`` lets cocotb see the top module's signals, ``"all"`` every signal (slower).
    arguments:
        More arguments for ``verilator``.

    Raises `SimulatorError` (missing, too old) or `BuildError` (does not compile, directory not writable).
    """
    version = find_simulator(simulator)
    if opt not in _OPT:
        raise BuildError(f"opt: {opt!r} vs one of {', '.join(_OPT)}")
    if public not in ("ports", "all"):
        raise BuildError(f"public: {public!r} vs 'ports' or 'all'")
    if trace is None:
        trace = os.environ.get("STEP_HW_WAVES", "0") not in ("", "0")
    if simulator == "icarus":
        vpi, main_path = True, None
    else:
        main_path = Path(main) if main is not None else VPI_MAIN
    defines = dict(defines or {})
    sources = _sources(verilog)

    facts: dict[str, object] = {
        "simulator": simulator,
        "version": version,
        "top": top,
        "defines": sorted((name, str(value)) for name, value in defines.items()),
        "trace": trace,
        "sources": list(sources.items()),
    }
    if main_path is not None:
        facts |= {"vpi": vpi, "opt": opt, "public": public, "arguments": list(arguments), "main": main_path.read_text()}
        if vpi:
            from cocotb_tools import config

            facts["cocotb"] = str(config.libs_dir)  # it is linked in by path
    facts["recipe"] = _recipe()
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]

    root = cache_directory(cache)
    final = root / "builds" / f"{simulator}-{top[:60]}-{key}"
    executable = final / ("design.vvp" if simulator == "icarus" else "design")

    def whole(cached: bool) -> Build:
        return Build(simulator, top, final, executable, trace, vpi, version, cached)

    if executable.exists():
        _touch(final)
        return whole(True)
    try:
        for part in ("builds", "locks", "runtime"):
            (root / part).mkdir(parents=True, exist_ok=True)
        lock = _locked(root / "locks" / f"{key}.lock")
        with lock:
            if executable.exists():
                return whole(True)
            work = Path(tempfile.mkdtemp(prefix=".building-", dir=root / "builds"))
            try:
                for name, text in sources.items():
                    (work / name).write_text(text)
                if main_path is None:
                    _build_icarus(work, list(sources), top, defines, trace)
                else:
                    runtime = hashlib.sha256(f"{facts['recipe']} {version} {trace} {vpi} {opt}".encode()).hexdigest()[
                        :12
                    ]
                    _build_verilator(
                        work,
                        list(sources),
                        top,
                        defines,
                        trace=trace,
                        vpi=vpi,
                        main=main_path,
                        opt=opt,
                        arguments=arguments,
                        public=public,
                        jobs=jobs,
                        runtime=root / "runtime" / runtime,
                    )
                work.rename(final)
                _clear_old(root / "builds")
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise BuildError(
            f"build directory {root}: {error.strerror or error} ({error.filename or root})",
            fix="set STEP_HW_CACHE to a directory that can be written",
        ) from error
    return whole(False)


@memoize
def _recipe() -> str:
    """Hash of how we build: a change of flags below must not find builds made with the old ones."""
    text = "".join(inspect.getsource(function) for function in (_build_icarus, _build_verilator, _gather))
    return hashlib.sha256(f"{text}{_OPT}{_GATHERED_BYTES}".encode()).hexdigest()


def _clear_old(builds: Path) -> None:
    """Remove builds that nobody used for a month, and what killed builds left behind a day ago."""
    now = time.time()
    for directory in builds.iterdir():
        days = 1 if directory.name.startswith(".building-") else _KEEP_DAYS
        try:
            if now - directory.stat().st_mtime > days * 86400:
                shutil.rmtree(directory, ignore_errors=True)
        except FileNotFoundError:  # another process was faster
            pass


def _touch(directory: Path) -> None:
    """Note the last use, for `_clear_old`; a read-only cache is fine."""
    try:
        os.utime(directory)
    except OSError:
        pass
