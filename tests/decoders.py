"""Small random decoders of the families that the masks must work for, and tokenizers of both common kinds."""

import json

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

FAMILIES = {
    "llama": LlamaConfig,
    "mistral": MistralConfig,
    "qwen2": Qwen2Config,
    "qwen3": Qwen3Config,
    "gemma3": Gemma3TextConfig,
    "olmo2": Olmo2Config,
}
BACKENDS = ("eager", "sdpa")
VOCABULARY = 97


def random_decoder(family: str = "llama", implementation: str = "sdpa", **changes) -> PreTrainedModel:
    """A four-layer model with random weights, the same for the same arguments."""
    config = FAMILIES[family](
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 256,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        }
        | changes
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=implementation, dtype=torch.float32).eval()
    for parameter in model.parameters():  # the usual initial weights are so small that a leak would hide in rounding
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.1)
    return model


def sentencepiece_tokenizer(corpus: list[str]) -> PreTrainedTokenizerFast:
    """A tokenizer as LLaMA-2's: `▁` for a space, one put before a text, BOS added, bytes for what it does not know."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    special = ["<unk>", "<s>", "</s>"]
    trained.train_from_iterator(corpus, trainers.BpeTrainer(special_tokens=special, show_progress=False))
    state = json.loads(trained.to_str())["model"]
    pieces = special + [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += [piece for piece in state["vocab"] if piece not in special]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: number for number, piece in enumerate(pieces)},
            merges=[tuple(merge) for merge in state["merges"]],
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", split_special_tokens=True
    )
