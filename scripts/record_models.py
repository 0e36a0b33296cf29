# SPDX-License-Identifier: Apache-2.0
"""Record the descriptors of six models below python/tests/model_ops.

usage: record_models.py [--output FOLDER] [MODEL ...]

Each is recorded twice: from a tiny configuration that runs on the device, where values
give the ranges that inputs are drawn from, and from a configuration of the size that
its authors publish on the meta device, without weights. The models' code is that of
transformers, which has to be installed: .venv/bin/python -m pip install transformers
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch_spyre.testing import recorder

OUTPUT = Path(__file__).resolve().parent.parent / "python" / "tests" / "model_ops"

_TINY_DECODER = {
    "vocab_size": 128,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
_GRANITE_FACTORS = {
    "embedding_multiplier": 12.0,
    "attention_multiplier": 0.0078125,
    "residual_multiplier": 0.22,
    "logits_scaling": 16.0,
}
#: Model -> (class of transformers, model_type, tiny values, full-size values). Layers
#: of one kind are equal: of a full-size model two of each kind are enough.
MODELS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "llama": (
        "AutoModelForCausalLM",
        "llama",
        _TINY_DECODER,
        {
            "vocab_size": 128256,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 2,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
        },
    ),
    "granite": (
        "AutoModelForCausalLM",
        "granite",
        {**_TINY_DECODER, **_GRANITE_FACTORS},
        {
            "vocab_size": 49159,
            "hidden_size": 4096,
            "intermediate_size": 12800,
            "num_hidden_layers": 2,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            **_GRANITE_FACTORS,
        },
    ),
    "granite-hybrid": (
        "AutoModelForCausalLM",
        "granitemoehybrid",
        {
            **_TINY_DECODER,
            "layer_types": ["mamba", "attention"],
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 128,
            "mamba_n_heads": 8,
            "mamba_d_head": 32,
            "mamba_d_state": 32,
            "mamba_n_groups": 1,
            "mamba_chunk_size": 64,
            "mamba_expand": 2,
        },
        {
            "vocab_size": 100352,
            "hidden_size": 1536,
            "intermediate_size": 512,
            "num_hidden_layers": 2,
            "layer_types": ["mamba", "attention"],
            "num_attention_heads": 12,
            "num_key_value_heads": 4,
            "num_local_experts": 64,
            "num_experts_per_tok": 6,
            "shared_intermediate_size": 1024,
            "mamba_n_heads": 48,
            "mamba_d_head": 64,
            "mamba_d_state": 128,
            "mamba_n_groups": 1,
            "mamba_chunk_size": 256,
            "mamba_expand": 2,
        },
    ),
    "gpt-oss": (
        "AutoModelForCausalLM",
        "gpt_oss",
        {
            **_TINY_DECODER,
            "head_dim": 32,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        {
            "vocab_size": 201088,
            "hidden_size": 2880,
            "intermediate_size": 2880,
            "num_hidden_layers": 2,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "num_local_experts": 32,
            "num_experts_per_tok": 4,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "bert": (
        "AutoModelForMaskedLM",
        "bert",
        {k: v for k, v in _TINY_DECODER.items() if k != "num_key_value_heads"},
        {
            "vocab_size": 30522,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 2,
            "num_attention_heads": 12,
        },
    ),
    "vit": (
        "AutoModelForImageClassification",
        "vit",
        {
            "hidden_size": 128,
            "intermediate_size": 192,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 32,
            "patch_size": 8,
        },
        {
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 2,
            "num_attention_heads": 12,
            "image_size": 224,
            "patch_size": 16,
        },
    ),
}


def make(name: str, size: str, device: str = "cpu") -> tuple[Any, dict[str, Any]]:
    """A model in fp16 and its inputs: batch 1, 16 tokens, 512 (8 with experts)."""
    import transformers

    auto, kind, tiny, full = MODELS[name]
    values = tiny if size == "tiny" else full
    config = transformers.AutoConfig.for_model(kind, **values)
    # Experts of all tokens at once: which ones are chosen is no shape then.
    if hasattr(config, "num_local_experts"):
        config._experts_implementation = "batched_mm"
    torch.manual_seed(7)
    with torch.device("meta" if device == "meta" else "cpu"):
        model = getattr(transformers, auto).from_config(
            config,
            dtype=torch.float16,
            attn_implementation="sdpa" if kind != "gpt_oss" else "eager",
        )
        if kind == "vit":
            side = config.image_size
            inputs = {"pixel_values": torch.rand(1, 3, side, side).half()}
        else:
            # What chooses experts for all tokens at once copies them for each.
            full = 8 if hasattr(config, "num_local_experts") else 512
            length = 16 if size == "tiny" else full
            inputs = {"input_ids": torch.randint(0, config.vocab_size, (1, length))}
            # Without a cache, the masks of some models depend on positions.
            if "CausalLM" in auto:
                inputs["use_cache"] = kind in ("llama", "granite")
    return model.to(device).eval(), recorder.move(inputs, device)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FOLDER")
    options = parser.parse_args()
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"no model is called {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    for name in options.models or MODELS:
        for size, device in (("tiny", "spyre"), ("full", "meta")):
            try:
                model, inputs = make(name, size, device)
                with recorder.record(f"{name}-{size}") as recording:
                    recorder.call(model, inputs)
            except ImportError as error:
                sys.exit(f"record_models: transformers is missing: {error}")
            folder = options.output / size
            folder.mkdir(parents=True, exist_ok=True)
            recording.write(folder / f"{name}.yaml")
            print(f"{size}/{name}.yaml: {recording.summary()}", flush=True)


if __name__ == "__main__":
    main()
