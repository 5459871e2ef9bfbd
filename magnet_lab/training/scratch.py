"""A small Llama made from nothing: a tokenizer of the corpus's own, and weights that nothing has trained yet.

What a run from scratch trains is a decoder like any other: causal, with no objective but the next token. In the terms
of this project every token is a span token (`causal_share: 1`, `msg: 1`). MAGNET starts only after this.
"""

from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from magnet_lab.data.rows import Corpus, texts


@dataclass
class Architecture:
    """The shape of a Llama; input and output embeddings are tied."""

    vocabulary: int = 4096
    hidden: int = 256
    inner: int = 704
    layers: int = 6
    heads: int = 8
    key_value_heads: int = 4
    positions: int = 1024


def tokenizer(corpus: Corpus, architecture: Architecture, folder: Path) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of the corpus, kept in a folder: any text can be written in it, and `_`, which hides
    a token, is one token."""
    if not (folder / "tokenizer.json").is_file():
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=architecture.vocabulary,
            special_tokens=["<s>", "</s>", "<pad>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        made.train_from_iterator(texts(corpus), trainer)
        made.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
        PreTrainedTokenizerFast(
            tokenizer_object=made,
            bos_token="<s>",
            eos_token="</s>",
            pad_token="<pad>",
            model_max_length=architecture.positions,
        ).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def model(architecture: Architecture, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Weights as transformers draws them, from PyTorch's random state."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=architecture.hidden,
            intermediate_size=architecture.inner,
            num_hidden_layers=architecture.layers,
            num_attention_heads=architecture.heads,
            num_key_value_heads=architecture.key_value_heads,
            max_position_embeddings=architecture.positions,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
