"""Small networks of many architectures, with random weights."""

import torch
import transformers

_SHAPE = {
    "vocab_size": 400,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 600,
    "pad_token_id": 1,
    "initializer_range": 0.2,
}
_LOCAL = ["sliding_attention", "full_attention", "sliding_attention"]
# Class prefix of transformers, and what differs from the shape above.
ARCHITECTURES: dict[str, tuple[str, dict[str, object]]] = {
    "bert": ("Bert", {}),
    "roberta": ("Roberta", {}),
    "xlm-roberta": ("XLMRoberta", {}),
    "camembert": ("Camembert", {}),
    "electra": ("Electra", {}),
    "distilbert": ("DistilBert", {"dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4}),
    "albert": ("Albert", {}),
    "modernbert": (
        "ModernBert",
        {"local_attention": 16, "global_attn_every_n_layers": 3, "initializer_cutoff_factor": 4.0},
    ),
    "nomic_bert": ("NomicBert", {}),
    "gte": ("Gte", {}),
    "jina_embeddings_v3": ("JinaEmbeddingsV3", {}),
    "eurobert": ("EuroBert", {"num_key_value_heads": 2}),
    "gemma3": (
        "Gemma3Text",
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "use_bidirectional_attention": True,
            "sliding_window": 24,
            "layer_types": _LOCAL,
        },
    ),
    "mpnet": ("MPNet", {}),
    "deberta-v2": ("DebertaV2", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
}
DYNAMIC = {"max_position_embeddings": 40, "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e3}}


def make_network(architecture: str, **changes: object) -> torch.nn.Module:
    """Make a network in evaluation mode; the same one each time."""
    prefix, differences = ARCHITECTURES[architecture]
    shape = {**_SHAPE, **differences, **changes}
    if architecture == "modernbert":
        shape.update(cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3)
    torch.manual_seed(0)
    config = getattr(transformers, f"{prefix}Config")(**shape)
    return getattr(transformers, f"{prefix}Model")(config).eval()
