"""Finds a user's program: ``PROGRAM.py[:function]`` with ``--set name=value`` parameters."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from examples.data import random_tensors
from step_lang import Program, StepError
from step_lang.errors import BadParameter, ProgramError

__all__ = ["ProgramFile", "parse_settings", "parse_value"]

_TEXTS = {int: "an int", float: "a number", bool: "true or false", str: "a text", type(None): "nothing"}
"""Types of parameters that a command line can give, as messages name them."""


def parse_value(text: str) -> Any:
    """An int, a float or a boolean if ``text`` reads like one, else ``text``."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``["batch=64", "name=x"]`` -> ``{"batch": 64, "name": "x"}``, values by `parse_value`.

    Raises `BadParameter` for a pair without ``=``.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise BadParameter(f"--set {pair}: {pair!r} vs name=value")
        settings[name] = parse_value(text)
    return settings


@dataclass
class ProgramFile:
    """A Python file that holds a program builder.

    path, function : the file and the builder's name (default ``build``)
    parameters : what ``--set`` gave
    beside : text of the modules in the file's folder that were imported so far, by path below it
    """

    path: Path
    function: str
    parameters: dict[str, Any] = field(default_factory=dict)
    module: ModuleType | None = None
    beside: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, text: str, parameters: Mapping[str, Any] | None = None) -> ProgramFile:
        """Import ``PROGRAM.py[:function]``. Raises `ProgramError` when the file or the function is missing."""
        path_text, _, function = text.partition(":")
        path = Path(path_text)
        if not path.is_file():
            raise ProgramError(
                f"program file: {path_text!r} vs an existing Python file", fix="give PROGRAM.py or PROGRAM.py:function"
            )
        self = cls(path, function or "build", dict(parameters or {}))
        self.module = self._import()
        if not callable(getattr(self.module, self.function, None)):
            found = vars(self.module).get(self.function)
            names = sorted(n for n, v in vars(self.module).items() if inspect.isfunction(v) and not n.startswith("_"))
            raise ProgramError(
                f"function '{self.function}' in {path.name}: {'not found' if found is None else repr(found)} vs "
                f"one of {', '.join(names) or 'none'}"
            )
        return self

    def _import(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"step_program_{self.path.stem}", self.path)
        if spec is None or spec.loader is None:
            raise ProgramError(f"program file: {self.path.name!r} vs a file ending in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            with self._folder():
                spec.loader.exec_module(module)
        except StepError:
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # what the user's file raises is the user's to read, without our traceback
            raise ProgramError(
                f"{self.path.name} does not import: {type(error).__name__}: {error}", source=_line_in(error, self.path)
            ) from error
        return module

    @contextmanager
    def _folder(self) -> Iterator[None]:
        """The file's folder is where modules are found too, and what is imported from there is kept in ``beside``."""
        folder = self.path.parent.resolve()
        known = set(sys.modules)
        sys.path.append(str(folder))  # last: a file beside it that is called copy.py must not hide Python's own
        writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # no __pycache__ in the user's folder
        try:
            yield
        finally:
            sys.dont_write_bytecode = writes_bytecode
            sys.path.remove(str(folder))
        for name in sorted(set(sys.modules) - known):
            for below in (f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py"):
                # Of what is installed, only the name of a module could be that of a file here.
                if str(getattr(sys.modules[name], "__file__", None)) == str(folder / below):
                    self.beside[below] = (folder / below).read_text()

    def build(self, **override: Any) -> Program:
        """The program for the given parameters. Raises `BadParameter` for a parameter that the builder does not take,
        or whose type is not what the builder's annotation says."""
        builder = getattr(self.module, self.function)
        parameters = {**self.parameters, **override}
        self._check(builder, parameters)
        self._check_types(builder, parameters)
        program = self._call(builder, **parameters)
        if not isinstance(program, Program):
            raise ProgramError(f"{self.function}() of {self.path.name} returns: {type(program).__name__} vs a Program")
        return program

    def tensors(self, program: Program, seed: int = 0, **override: Any) -> dict[str, np.ndarray]:
        """Off-chip inputs: the file's ``inputs(program, seed=...)`` if it has one, else random tensors. ``override`` is
        what the program was built with on top of the parameters."""
        maker = getattr(self.module, "inputs", None)
        return random_tensors(program, seed) if maker is None else self._mapping(maker, program, seed, override)

    def stream_inputs(self, program: Program, seed: int = 0, **override: Any) -> dict[str, Any]:
        """Values of the program's input streams: the file's ``streams(program, seed=...)`` if it has one."""
        maker = getattr(self.module, "streams", None)
        return {} if maker is None else self._mapping(maker, program, seed, override)

    def sweep(self, name: str) -> list[dict[str, Any]]:
        """The parameter sets that the file lists under ``SWEEPS[name]``."""
        sweeps = getattr(self.module, "SWEEPS", {})
        if not isinstance(sweeps, Mapping):
            raise BadParameter(f"SWEEPS of {self.path.name}: {type(sweeps).__name__} vs a dict of lists by name")
        if name not in sweeps:
            raise BadParameter(
                f"sweep of {self.path.name}: {name!r} vs one of {', '.join(sorted(map(str, sweeps))) or 'none'}",
                fix="list parameter sets in SWEEPS = {name: [{...}, ...]} of the program file",
            )
        listed = sweeps[name]
        if not isinstance(listed, Sequence) or not all(isinstance(point, Mapping) for point in listed):
            raise BadParameter(f"sweep '{name}' of {self.path.name}: {listed!r} vs a list of dicts of parameters")
        points = [dict(point) for point in listed]
        if not points:
            raise BadParameter(f"sweep '{name}' of {self.path.name}: no parameter sets vs at least one")
        return points

    def check_parameters(self, names: Iterable[str]) -> None:
        """Raise `BadParameter` for a name that the builder does not take."""
        self._check(getattr(self.module, self.function), names)

    def _call(self, function: Callable, *arguments: Any, **named: Any) -> Any:
        """What a function of the file returns; what it raises becomes a `ProgramError` with the file's line."""
        try:
            with self._folder():
                return function(*arguments, **named)
        except StepError as error:
            if error.source is None:  # a function's mistake, which knows no operator
                error.source = _line_in(error, self.path)
            raise
        except (Exception, SystemExit) as error:
            raise ProgramError(
                f"{function.__name__}() of {self.path.name} fails: {type(error).__name__}: {error}",
                source=_line_in(error, self.path),
            ) from error

    def _mapping(self, maker: Callable, program: Program, seed: int, override: Mapping[str, Any]) -> dict[str, Any]:
        # Parameters of the builder that the maker asks for by name, such as the path of a trace.
        wanted = inspect.signature(maker).parameters
        given = {name: value for name, value in {**self.parameters, **override}.items() if name in wanted}
        made = self._call(maker, program, **{**given, "seed": seed})
        if not isinstance(made, Mapping):
            raise ProgramError(
                f"{maker.__name__}() of {self.path.name} returns: {type(made).__name__} vs a dict by name"
            )
        return dict(made)

    def _check_types(self, builder: Callable, parameters: Mapping[str, Any]) -> None:
        try:
            hints = typing.get_type_hints(builder)
        except Exception:  # annotations are the user's; one that means nothing says nothing of a parameter
            return
        for name, value in parameters.items():
            wanted = _kinds(hints.get(name))
            if wanted is None or type(value) in wanted or (float in wanted and type(value) is int):
                continue
            told = " or ".join(text for kind, text in _TEXTS.items() if kind in wanted and kind is not type(None))
            raise BadParameter(f"parameter '{name}' of {self.function}() in {self.path.name}: {value!r} vs {told}")

    def _check(self, builder: Callable, parameters: Iterable[str]) -> None:
        accepted = inspect.signature(builder).parameters
        if any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
            return
        for name in parameters:
            if name not in accepted:
                raise BadParameter(
                    f"parameter of {self.function}() in {self.path.name}: {name!r} vs one of {', '.join(accepted)}"
                )


def _kinds(hint: Any) -> frozenset[type] | None:
    """The types of an annotation such as ``int | None`` of `_TEXTS`, None for any other annotation."""
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    members = typing.get_args(hint) if union else (hint,)
    return frozenset(members) if all(isinstance(m, type) and m in _TEXTS for m in members) else None


def _line_in(error: BaseException, path: Path) -> str | None:
    """``file.py:12`` of the innermost frame of ``error`` in ``path``."""
    found, trace = None, error.__traceback__
    whole = path.resolve()  # Python names a module's file by its absolute path, whatever was given
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == whole:
            found = f"{path}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
