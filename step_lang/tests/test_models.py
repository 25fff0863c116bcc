"""Presets of models: their numbers give the parameters that their makers state; mistakes in a file are told."""

from __future__ import annotations

import re

import pytest

from examples import swiglu
from examples.models import load_models, model, models
from step_lang import BadParameter

TEXT = """source = "somewhere"
layers = 2
hidden = 8
experts = 4
top_k = 2
intermediate = 16
heads = 4
kv_heads = 2
head_dim = 4
vocabulary = 10
billions = 0.1
"""

LATENT = {"deepseek-v2-lite", "deepseek-v3"}
"""Models whose attention has compressed weights, which their presets do not."""


def written(tmp_path, text, name="own"):
    path = tmp_path / "models.toml"
    path.write_text(f'["{name}"]\n{text}')
    return path


@pytest.mark.parametrize("name", models())
def test_the_numbers_add_up(name):
    """Biases, norms and what is no transformer layer are left out: at most 2%; uncompressed attention: 3%."""
    found = models()[name]
    assert found.parameters == pytest.approx(found.billions * 1e9, rel=0.03 if name in LATENT else 0.02)
    assert re.match(r"[\w-]+/[\w.-]+", found.source)


def test_there_are_models_of_each_kind():
    assert len(models()) >= 12
    assert any(m.experts == 1 for m in models().values()) and any(m.shared_experts for m in models().values())
    assert any(m.dense_layers for m in models().values()) and any(m.queries == 8 for m in models().values())
    # The layers of the paper's figures.
    paper = [model(name) for name in ("mixtral-8x7b", "qwen3-30b-a3b")]
    assert [(m.experts, m.top_k, m.hidden, m.intermediate) for m in paper] == [(8, 2, 4096, 14336), (128, 8, 2048, 768)]


def test_a_file_of_one_s_own(tmp_path):
    found = model(str(written(tmp_path, TEXT)))
    assert (found.name, found.queries, found.shared_experts) == ("own", 2, 0)
    assert found.parameters == 2 * 10 * 8 + 2 * (8 * 4 * 2 * 6 + 4 * 3 * 8 * 16 + 8 * 4)


@pytest.mark.parametrize("change, message", [
    (("layers = 2\n", ""), "model 'own' without layers vs the keys source, layers"),
    (("layers", "layer"), "model 'own' without layers"),
    (("layers = 2", "layers = 2\ndepth = 3"), "model 'own' with unknown depth vs the keys"),
    (("layers = 2", "layers = 0"), "model 'own': layers: 0 vs an int of at least 1"),
    (("layers = 2", "layers = 2.0"), "model 'own': layers: 2.0 vs an int"),
    (("layers = 2", "layers = true"), "model 'own': layers: True vs an int"),
    (("top_k = 2", "top_k = 5"), "model 'own': top_k: 5 vs at most the 4 experts"),
    (("kv_heads = 2", "kv_heads = 3"), "model 'own': kv_heads: 3 vs a divisor of the 4 heads"),
    (("layers = 2", "layers = 2\ndense_layers = 1"), "model 'own': dense_layers: 1 vs .* with dense_intermediate"),
    (('"somewhere"', '""'), "model 'own': source: '' vs a text"),
    (("billions = 0.1", "billions = 0"), "model 'own': billions: 0 vs a number above 0"),
    (("layers = 2", "layers = "), "vs a TOML file"),
])
def test_wrong_files(tmp_path, change, message):
    path = written(tmp_path, TEXT.replace(*change))
    with pytest.raises(BadParameter, match=message):
        load_models(path)


def test_swiglu_of_a_model():
    program = swiglu.build(model="llama-3-8b", batch=32, tile_b=16, compute_bw=4096)
    assert program.tensors["w_up"].shape == (4096, 14336)
    assert program.operator("load_x").output.shape == (2, 224) and program.operator("gate_silu").compute_bw == 4096
    assert swiglu.build().tensors["w_up"].shape == (256, 512)


def test_wrong_names(tmp_path):
    with pytest.raises(BadParameter, match=r"model: 'mixtral' vs mixtral-8x7b, .*llama-3-70b; fix: or the path"):
        model("mixtral")
    with pytest.raises(BadParameter, match=r"models '.*none.toml' vs a TOML file|'.*none.toml' vs a TOML file"):
        model(str(tmp_path / "none.toml"))
    path = tmp_path / "two.toml"
    path.write_text(f"[a]\n{TEXT}\n[b]\n{TEXT}")
    with pytest.raises(BadParameter, match="2 models vs one"):
        model(str(path))
    path.write_text("a = 3")
    with pytest.raises(BadParameter, match="a = 3 vs a table"):
        model(str(path))
