"""Small models with random weights, in the folders that sentence-transformers itself writes."""

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

_CORPUS = [
    "The ferry leaves at dawn. It carries salt, timber and, on Fridays, the post.",
    "Die Fähre fährt früh. Sie trägt Salz und Holz – und freitags die Post.",
    "渡轮黎明出发。它运盐和木材。🦊🐢",
    "search_document: search_query: passage: query: <|endoftext|> [SEP] [CLS]",
]


def byte_level_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer, whose words begin with their space, trained on a few lines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        model_max_length=512,
    )


def modernbert(vocabulary: int, *, seed: int = 0) -> ModernBertModel:
    """A ModernBERT of three layers, two of them local, with random weights."""
    torch.manual_seed(seed)
    config = ModernBertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        global_attn_every_n_layers=3,
        local_attention=16,
        max_position_embeddings=512,
        pad_token_id=3,
        cls_token_id=1,
        sep_token_id=2,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.2,
        initializer_cutoff_factor=4.0,
    )
    return ModernBertModel(config).eval()


def save_folder(
    path: Path,
    *,
    network: torch.nn.Module | None = None,
    window: int = 64,
    pooling: str = "mean",
    include_prompt: bool = True,
    dense: int | None = None,
    normalize: bool = True,
    prompts: dict[str, str] | None = None,
) -> Path:
    """Write a sentence-transformers folder with a byte-level tokenizer."""
    tokenizer = byte_level_tokenizer()
    network = network or modernbert(len(tokenizer))
    inner = path / "inner"
    network.save_pretrained(inner)
    tokenizer.save_pretrained(inner)
    width = network.config.hidden_size
    modules = [Transformer(str(inner), max_seq_length=window), Pooling(width, pooling, include_prompt=include_prompt)]
    if dense:
        torch.manual_seed(1)
        modules.append(Dense(width, dense))
    if normalize:
        modules.append(Normalize())
    folder = path / "model"
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save_pretrained(str(folder))
    return folder
