"""Open models by their numbers: sizes of their layers, from ``models.toml``, which names the sources."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from step_lang.errors import BadParameter

__all__ = ["Model", "load_models", "model", "models", "sizes"]


@dataclass(frozen=True)
class Model:
    """A transformer whose layers are attention and a mixture of experts with SwiGLU (dense: one expert).

    Attributes
    ----------
    source : where the numbers are from.
    layers : of which the first ``dense_layers`` have one SwiGLU of ``dense_intermediate`` in place of experts.
    hidden : D, columns of a token.
    experts, top_k, intermediate : experts of a layer, how many a token has, and F of one.
    shared_experts : experts that every token has besides.
    heads, kv_heads, head_dim : query heads, those of keys and values that they share, and their columns.
    vocabulary : tokens; ``tied_embedding``: the output matrix is the embedding.
    billions : parameters that its makers state.
    """

    name: str
    source: str
    layers: int
    hidden: int
    experts: int
    top_k: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    billions: float
    shared_experts: int = 0
    dense_layers: int = 0
    dense_intermediate: int = 0
    tied_embedding: bool = False

    def __post_init__(self) -> None:
        least = {"shared_experts": 0, "dense_layers": 0, "dense_intermediate": 0}
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if entry.type == "int" and (type(value) is not int or value < least.get(entry.name, 1)):
                self._wrong(entry.name, value, f"an int of at least {least.get(entry.name, 1)}")
            if entry.type == "str" and not (isinstance(value, str) and value):
                self._wrong(entry.name, value, "a text")
        if type(self.tied_embedding) is not bool:
            self._wrong("tied_embedding", self.tied_embedding, "true or false")
        if isinstance(self.billions, bool) or not isinstance(self.billions, (int, float)) or self.billions <= 0:
            self._wrong("billions", self.billions, "a number above 0")
        if self.top_k > self.experts:
            self._wrong("top_k", self.top_k, f"at most the {self.experts} experts")
        if self.heads % self.kv_heads:
            self._wrong("kv_heads", self.kv_heads, f"a divisor of the {self.heads} heads")
        if self.dense_layers > self.layers or bool(self.dense_layers) != bool(self.dense_intermediate):
            self._wrong("dense_layers", self.dense_layers, f"at most {self.layers} layers, and with dense_intermediate")

    def _wrong(self, key: str, value: object, allowed: str) -> None:
        raise BadParameter(f"model '{self.name}': {key}: {value!r} vs {allowed}")

    @property
    def queries(self) -> int:
        """Query heads that share a head of keys and values."""
        return self.heads // self.kv_heads

    @property
    def parameters(self) -> int:
        """Weights: embedding, output matrix, attention, experts and their routers."""
        attention = self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        expert = 3 * self.hidden * self.intermediate
        router = self.hidden * self.experts if self.experts > 1 else 0
        moe = (self.experts + self.shared_experts) * expert + router
        dense = 3 * self.hidden * self.dense_intermediate
        embedding = self.vocabulary * self.hidden * (1 if self.tied_embedding else 2)
        return embedding + self.layers * attention + self.dense_layers * dense + (self.layers - self.dense_layers) * moe


def load_models(path: str | Path) -> dict[str, Model]:
    """Models of a TOML file, by name: one table each, keys as the fields of `Model`. Raises `BadParameter`."""
    try:
        document = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadParameter(f"models: '{path}' vs a TOML file ({error})") from None
    known = {entry.name: entry.default for entry in dataclasses.fields(Model) if entry.name != "name"}
    needed = [name for name, default in known.items() if default is dataclasses.MISSING]
    found = {}
    for name, table in document.items():
        if not isinstance(table, Mapping):
            raise BadParameter(f"models '{path}': {name} = {table!r} vs a table of a model's numbers")
        missing = [key for key in needed if key not in table]
        unknown = [key for key in table if key not in known]
        if missing or unknown:
            what = f"without {', '.join(missing)}" if missing else f"with unknown {', '.join(unknown)}"
            raise BadParameter(f"models '{path}': model '{name}' {what} vs the keys {', '.join(known)}")
        found[name] = Model(name=name, **table)
    return found


@cache
def models() -> Mapping[str, Model]:
    """The models of ``models.toml`` by name."""
    return load_models(Path(__file__).with_name("models.toml"))


def model(name: str) -> Model:
    """The model of that name, or the only one of a TOML file of that path. Raises `BadParameter`, which names all."""
    if isinstance(name, str) and name.endswith(".toml"):
        own = list(load_models(name).values())
        if len(own) != 1:
            raise BadParameter(f"models '{name}': {len(own)} models vs one")
        return own[0]
    if not isinstance(name, str) or name not in models():
        raise BadParameter(f"model: {name!r} vs {', '.join(models())}",
                           fix="or the path of a .toml file with its numbers")
    return models()[name]


def sizes(name: str, given: Mapping[str, Any], small: Mapping[str, int]) -> dict[str, Any]:
    """Sizes of a program: those ``given`` and not None, else the model's of the same name, or without a model (``name``
    empty) the ``small`` ones."""
    default = dataclasses.asdict(model(name)) | {"queries": model(name).queries} if name else small
    return {key: default.get(key, small.get(key)) if value is None else value for key, value in given.items()}
