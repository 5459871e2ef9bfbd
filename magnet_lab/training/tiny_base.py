"""Make the bundled `tiny` base model: a tokenizer and a small Llama, trained from nothing on simple stories.

    python -m magnet_lab.training.tiny_base --stories stories.jsonl --out magnet_lab/models/tiny

Plain causal language modelling, as for any decoder: MAGNET starts only after this. A file is JSON lines with a
`text` field; `file.jsonl:3` makes its stories three times as likely as those of a file without a number.
"""

import argparse
import copy
import json
import math
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, get_cosine_schedule_with_warmup

VOCABULARY = 4096
HELD_OUT = 0.03  # share of the stories that is never trained on


def read_stories(path: Path) -> list[str]:
    """The `text` of every line of a JSON-lines file, as one paragraph: line breaks teach a small model little."""
    with path.open(encoding="utf-8") as lines:
        return [" ".join(json.loads(line)["text"].split()) for line in lines]


def train_tokenizer(stories: list[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer: any text can be written in it, and `_` (the mask token) is one token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=1024
    )


def tiny_config() -> LlamaConfig:
    """5.5 million parameters: 11 MB in bfloat16, small enough to ship and to train on a laptop."""
    return LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )


def windows(stream: torch.Tensor, rows: int, length: int, generator: torch.Generator) -> torch.Tensor:
    """Random stretches of the token stream, `(rows, length)`."""
    starts = torch.randint(len(stream) - length, (rows,), generator=generator)
    return torch.stack([stream[start : start + length] for start in starts])


@torch.no_grad()
def held_out_loss(model: LlamaForCausalLM, stream: torch.Tensor, length: int) -> float:
    """Mean next-token loss (nats) over the held-out stories."""
    model.eval()
    rows = stream[: len(stream) // length * length].view(-1, length)
    losses = [model(input_ids=batch, labels=batch).loss.item() * len(batch) for batch in rows.split(16)]
    model.train()
    return sum(losses) / len(rows)


def main() -> None:
    """Read the stories, make the tokenizer, train, and save both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", nargs="+", required=True, help="JSON-lines files, each path or path:weight")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)

    sources, weights = [], []
    for source in args.stories:
        path, _, weight = source.rpartition(":") if source.rpartition(":")[2].isdigit() else (source, "", "1")
        sources.append(read_stories(Path(path)))
        weights.append(float(weight))
    tokenizer = train_tokenizer([story for stories in sources for story in stories])
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(args.out)

    streams, held_out = [], []
    for stories in sources:
        ids = [ids + [tokenizer.eos_token_id] for ids in tokenizer(stories)["input_ids"]]
        kept = max(1, int(len(ids) * (1 - HELD_OUT)))
        streams.append(torch.tensor([token for story in ids[:kept] for token in story]))
        held_out.append(torch.tensor([token for story in ids[kept:] for token in story]))
        print(f"{len(ids):,} stories, {len(streams[-1]):,} tokens to train on")

    model = LlamaForCausalLM(tiny_config())
    print(f"{model.num_parameters():,} parameters")
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=args.lr,
        betas=(0.9, 0.95),
    )
    schedule = get_cosine_schedule_with_warmup(optimizer, args.steps // 25, args.steps)
    shares = torch.tensor(weights) * torch.tensor([float(len(stream)) for stream in streams])
    model.train()
    progress = tqdm(range(1, args.steps + 1))
    for step in progress:
        rows = torch.multinomial(shares, args.batch, replacement=True, generator=generator).bincount(
            minlength=len(streams)
        )
        batch = torch.cat([windows(s, int(n), args.length, generator) for s, n in zip(streams, rows, strict=True) if n])
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 10 == 0:
            progress.set_postfix(perplexity=f"{math.exp(loss.item()):.1f}")
        if step % args.save_every == 0 or step == args.steps:
            losses = [held_out_loss(model, stream, args.length) for stream in held_out if len(stream) > args.length]
            tqdm.write(f"step {step}: held-out perplexity " + " ".join(f"{math.exp(loss):.2f}" for loss in losses))
            prompt = tokenizer("Once upon a time", return_tensors="pt")["input_ids"]
            story = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=60, do_sample=False)
            tqdm.write(tokenizer.decode(story[0], skip_special_tokens=True))
            # A copy in bfloat16 is what ships; training goes on in float32.
            copy.deepcopy(model).to(torch.bfloat16).save_pretrained(args.out)


if __name__ == "__main__":
    main()
