# SPDX-License-Identifier: Apache-2.0
"""Tiny members of public model families, with random weights.

Each has at least two layers, a width of at least 64, and the class and attention
that its library picks by itself. Nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

#: What the sizes of a configuration are called, and tiny ones. A family takes those
#: of the names that it has.
_TINY: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 64,
    "d_model": 64,
    "n_embd": 64,
    "dim": 64,
    "embed_dim": 64,
    "embedding_size": 64,
    "projection_dim": 64,
    "word_embed_proj_dim": 64,
    "num_hidden_layers": 2,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "intermediate_size": 128,
    "hidden_dim": 128,
    "ffn_dim": 128,
    "d_ff": 128,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "head_dim": 16,
    "d_kv": 16,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 128,
    "n_positions": 128,
    "image_size": 32,
    "patch_size": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

#: Convolutions before the encoder of a model of speech.
_SPEECH = {
    "conv_dim": (64, 64),
    "conv_kernel": (10, 3),
    "conv_stride": (5, 2),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
_PYRAMID = {"depths": [1, 1], "num_heads": [2, 4], "patch_size": 4, "window_size": 4}
_STAGES = {"depths": [1, 1], "hidden_sizes": [64, 128]}
#: Several stages of the transformers that shrink the image.
_FOUR = {
    "depths": [1, 1, 1, 1],
    "hidden_sizes": [64, 64, 128, 128],
    "num_attention_heads": [1, 2, 2, 4],
}
_VIDEO = {"num_frames": 4, "tubelet_size": 2}
#: Attention whose keys and values are products of narrow matrices.
_LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 32,
    "q_lora_rank": 32,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
_SSM = {
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_d_state": 16,
    "mamba_chunk_size": 8,
}

#: Kind of model -> ``model_type`` -> what differs from _TINY.
TRANSFORMERS: dict[str, dict[str, dict[str, Any]]] = {
    "decoder": {
        "llama": {},
        "granite": {},
        "qwen2": {},
        "qwen3": {},
        "mistral": {"sliding_window": 8},
        "gemma": {},
        "gemma2": {"sliding_window": 8},
        "gemma3_text": {"sliding_window": 8},
        "phi": {},
        "phi3": {},
        "gpt2": {},
        "gpt_neox": {},
        "gpt_bigcode": {},
        "gptj": {"rotary_dim": 16},
        "opt": {},
        "bloom": {},
        "mpt": {},
        "stablelm": {},
        "starcoder2": {},
        "olmo2": {},
        "cohere": {},
        "glm4": {},
        "smollm3": {},
        "exaone4": {"sliding_window": 8},
        "helium": {},
        "nemotron": {},
        "persimmon": {},
        "ernie4_5": {},
        "hunyuan_v1_dense": {},
        "apertus": {},
        "bitnet": {},
        "arcee": {},
        "biogpt": {},
        "codegen": {"rotary_dim": 16},
        "cohere2": {"sliding_window": 8},
        "diffllama": {},
        "falcon": {},
        "glm": {},
        "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
        "olmo": {},
        "olmo3": {"sliding_window": 8},
        "seed_oss": {},
        "vaultgemma": {"sliding_window": 8},
        "xglm": {},
    },
    "experts": {
        "mixtral": {},
        "qwen3_moe": {},
        "granitemoe": {},
        "olmoe": {},
        "gpt_oss": {"sliding_window": 8},
        "phimoe": {},
        "jetmoe": {},
        "deepseek_v3": {**_LATENT},
        "ernie4_5_moe": {},
        "granitemoeshared": {},
        "hunyuan_v1_moe": {},
        "qwen2_moe": {},
    },
    "state space": {
        "mamba": {},
        "falcon_mamba": {},
        "mamba2": {
            "num_heads": 8,
            "expand": 2,
            "n_groups": 1,
            "state_size": 16,
            "chunk_size": 8,
        },
        "granitemoehybrid": {"layer_types": ["mamba", "attention"], **_SSM},
        "bamba": {"attn_layer_indices": [1], **_SSM},
        "rwkv": {"attention_hidden_size": 64},
        "lfm2": {"layer_types": ["conv", "full_attention"]},
        "falcon_h1": {"mamba_d_ssm": 128, **_SSM},
        "jamba": {
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "use_mamba_kernels": False,
        },
        "qwen3_next": {
            "layer_types": ["linear_attention", "full_attention"],
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
        },
        "recurrent_gemma": {
            "block_types": ["recurrent", "attention"],
            "lru_width": 64,
            "attention_window_size": 8,
        },
    },
    "encoder": {
        "bert": {},
        "roberta": {},
        "distilbert": {},
        "albert": {},
        "electra": {},
        "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        "modernbert": {"local_attention": 8},
        "mpnet": {},
        "roformer": {},
        "convbert": {},
        "mobilebert": {"embedding_size": 64, "intra_bottleneck_size": 64},
        "esm": {"position_embedding_type": "rotary"},
    },
    "encoder-decoder": {
        "t5": {},
        "mt5": {},
        "bart": {},
        "pegasus": {},
        "marian": {},
        "m2m_100": {},
        "blenderbot": {},
    },
    "vision": {
        "vit": {},
        "deit": {},
        "beit": {},
        "dinov2": {},
        "ijepa": {},
        "swin": {**_PYRAMID},
        "convnext": {**_STAGES, "num_stages": 2, "patch_size": 4},
        "resnet": {**_STAGES},
        "segformer": {**_FOUR},
        "poolformer": {**_FOUR, "pool_size": 3},
        "videomae": {**_VIDEO},
    },
    "audio": {
        "wav2vec2": {**_SPEECH},
        "hubert": {**_SPEECH},
        "whisper": {"max_source_positions": 32, "max_target_positions": 64},
        "audio-spectrogram-transformer": {
            "max_length": 64,
            "num_mel_bins": 32,
            "frequency_stride": 8,
            "time_stride": 8,
        },
    },
    "multimodal": {
        "clip": {},
        "siglip": {},
        "vilt": {"modality_type_vocab_size": 2, "max_image_length": -1},
        "llava": {"image_token_index": 5, "vision_feature_layer": -1},
        "blip": {"image_text_hidden_size": 64},
    },
}

#: timm's names of architectures, and what makes them small.
TIMM: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "deit3_small_patch16_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "beit_base_patch16_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "eva02_tiny_patch14_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "cait_xxs24_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "xcit_nano_12_p16_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "mobilevit_xxs": {},
    "pvt_v2_b0": {},
    "levit_128s": {},
    "edgenext_xx_small": {},
    "mnasnet_small": {},
    "swin_tiny_patch4_window7_224": {
        "embed_dim": 64,
        "depths": (1, 1),
        "num_heads": (2, 4),
        "window_size": 4,
    },
    "convnext_atto": {"depths": (1, 1, 1, 1), "dims": (64, 64, 64, 64)},
    "resnet18": {"layers": [1, 1, 1, 1], "channels": (64, 64, 64, 64)},
    "resnext50_32x4d": {"layers": [1, 1, 1, 1], "channels": (64, 64, 64, 64)},
    "regnetx_002": {},
    "efficientnet_b0": {},
    "mobilenetv2_100": {},
    "mobilenetv3_small_100": {},
    "ghostnet_100": {},
    "densenet121": {"block_config": (2, 2), "growth_rate": 32},
    "repvgg_a0": {},
}

#: ibm-fms's architectures and variants, and what makes them small.
_FMS = {"nlayers": 2, "emb_dim": 64, "nheads": 4, "src_vocab_size": 128}
FMS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("micro", {**_FMS, "max_expected_seq_len": 64, "kvheads": 2}),
    "granite": ("8b", {**_FMS, "max_expected_seq_len": 64, "kvheads": 2}),
    "gpt_bigcode": ("ibm.20b", {**_FMS, "max_expected_seq_len": 64}),
    "mixtral": (
        "8x7b",
        {
            "nlayers": 2,
            "dim": 64,
            "nheads": 4,
            "kvheads": 2,
            "src_vocab_size": 128,
            "hidden_dim": 128,
            "num_experts": 4,
            "max_expected_seq_len": 64,
        },
    ),
    "mistral": ("7b", {**_FMS, "max_expected_seq_len": 64, "kvheads": 2}),
    "roberta": ("base", {**_FMS, "max_pos": 64, "hidden_grow_factor": 2.0}),
    "bert": ("base", {**_FMS, "max_pos": 64, "hidden_grow_factor": 2.0}),
}

#: Those that train a step, too.
TRAINED = frozenset(
    [
        *("llama", "granite", "qwen3", "gemma2", "gpt2", "opt", "bloom", "phi3"),
        *("mixtral", "gpt_oss", "mamba", "bert", "roberta", "distilbert", "electra"),
        *("modernbert", "t5", "bart", "vit", "convnext", "resnet", "swin", "wav2vec2"),
        *("clip", "timm/vit_tiny_patch16_224"),
        *("qwen2", "mistral", "gemma", "gpt_neox", "stablelm", "starcoder2", "olmo2"),
    ]
)


@dataclass(frozen=True)
class Entry:
    """A model: how to make it with its inputs, on the CPU in fp32."""

    name: str
    kind: str
    make: Callable[[], tuple[Any, dict[str, Any]]] = field(repr=False)

    def steps(self, wanted: Sequence[str]) -> list[str]:
        """Those that it takes; "training" is for TRAINED."""
        return [s for s in wanted if s != "training" or self.name in TRAINED]


def prepare() -> None:
    """What has to be done before the libraries are imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


# --- transformers ----------------------------------------------------------------


def _sizes(default: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a tiny configuration; ``default`` says which names exist."""
    chosen = {
        name: value
        for name, value in _TINY.items()
        if hasattr(default, name)
        and not isinstance(getattr(type(default), name, None), property)
    }
    # Several numbers, where a family has one per stage, are its own affair.
    chosen = {
        name: value
        for name, value in chosen.items()
        if not isinstance(getattr(default, name), (list, tuple))
        or name in changes
        or name == "image_size"
    }
    for name in getattr(default, "sub_configs", {}):
        part = getattr(default, name, None)
        if part is not None:
            chosen[name] = {
                "model_type": part.model_type,
                **_sizes(part, {}),
            }
    return {**chosen, **changes}


def _transformer(model_type: str, changes: dict[str, Any]) -> tuple[Any, dict]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    config_class = transformers.CONFIG_MAPPING[model_type]
    config = config_class(**_sizes(config_class(), changes))
    mappings = (
        "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
        "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
        "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
        "MODEL_FOR_CAUSAL_LM_MAPPING",
        "MODEL_FOR_MASKED_LM_MAPPING",
        "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
        "MODEL_MAPPING",
    )
    for name in mappings:
        mapping = getattr(transformers, name)
        if config_class in mapping:
            break
    model_class = mapping[config_class]
    if isinstance(model_class, (tuple, list)):
        model_class = model_class[0]
    torch.manual_seed(0)
    model = model_class(config).eval()
    return model, _inputs(config, model)


def _tokens(rows: int, columns: int, seed: int) -> Any:
    """Tokens that mean nothing special; those below 8 may."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    return torch.randint(8, 128, (rows, columns), generator=generator)


def _noise(*shape: int) -> Any:
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def _inputs(config: Any, model: Any) -> dict[str, Any]:
    main = model.main_input_name
    if main == "input_features":
        return {
            "input_features": _noise(2, config.num_mel_bins, 64),
            "decoder_input_ids": _tokens(2, 9, 1),
        }
    if main == "input_values":
        mels = getattr(config, "num_mel_bins", None)
        return {"input_values": _noise(2, 64, mels) if mels else _noise(2, 800)}
    images = _noise(2, 3, 32, 32)
    if main == "pixel_values" and not hasattr(config, "text_config"):
        return {"pixel_values": images if not _is_video(config) else _video(images)}
    given = {"input_ids": _tokens(2, 17, 0)}
    if hasattr(config, "vision_config") or config.model_type == "vilt":
        given["pixel_values"] = images
    if (token := getattr(config, "image_token_id", None)) is not None:
        # A token for each patch of the image.
        given["input_ids"] = _tokens(2, 24, 0)
        given["input_ids"][:, 2:18] = token
    if config.is_encoder_decoder:
        given["decoder_input_ids"] = _tokens(2, 9, 1)
    return given


def _is_video(config: Any) -> bool:
    return hasattr(config, "tubelet_size")


def _video(images: Any) -> Any:
    return images[:, None].expand(2, 4, 3, 32, 32).contiguous()


# --- timm and ibm-fms ------------------------------------------------------------


def _timm(name: str, changes: dict[str, Any]) -> tuple[Any, dict]:
    import timm
    import torch

    torch.manual_seed(0)
    sized = {"img_size": 64} if _takes_size(name) else {}
    model = timm.create_model(name, num_classes=16, **sized, **changes).eval()
    inputs = {"x": _noise(2, 3, 64, 64)}
    _normalize(model, inputs)
    return model, inputs


def _normalize(model: Any, inputs: dict[str, Any]) -> None:
    """Gives batch norms the statistics of the inputs.

    With those of new modules, deep convolutional networks return almost nothing.
    """
    import torch

    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    for norm in norms:
        norm.train().momentum = 1.0
    with torch.no_grad():
        model(**inputs)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.eval().momentum = momentum


def _takes_size(name: str) -> bool:
    families = ("vit", "deit", "beit", "eva", "cait", "xcit", "swin", "levit")
    return name.startswith(families)


def _fms(architecture: str, variant: str, changes: dict[str, Any]) -> tuple[Any, dict]:
    import torch
    from fms.models import get_model

    torch.manual_seed(0)
    model = get_model(architecture, variant, **changes).eval()
    # Some of its classes leave them as they were allocated.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.05)
            else:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
    return model, {"x": _tokens(2, 17, 0)}


def entries() -> list[Entry]:
    """All, in the order in which they run."""
    found = [
        Entry(name, kind, lambda n=name, c=changes: _transformer(n, c))
        for kind, members in TRANSFORMERS.items()
        for name, changes in members.items()
    ]
    found += [
        Entry(f"timm/{name}", "timm", lambda n=name, c=changes: _timm(n, c))
        for name, changes in TIMM.items()
    ]
    found += [
        Entry(f"fms/{name}", "ibm-fms", lambda n=name, v=v, c=c: _fms(n, v, c))
        for name, (v, c) in FMS.items()
    ]
    return found
