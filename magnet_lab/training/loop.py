"""The training loop: all objectives in one step (Equation 5), on one process or several.

Everything that is random in a step, its rows, spans, hidden tokens, pairs and dropout, follows from the recipe's seed
and the step's number. So a run that was killed goes on as if nothing had happened, and several processes share a batch
without a word: each makes the whole batch's views and takes its part.

Each loss is divided by the number of its targets in the *whole* batch before its gradient is added up. Micro-batches
and processes therefore change nothing but the order of a sum.
"""

import contextlib
import dataclasses
import itertools
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch import LongTensor, Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from tqdm import tqdm

from magnet_lab import encoding, views
from magnet_lab.attention import bidirectional
from magnet_lab.data import pairs, rows
from magnet_lab.data.rows import Corpus
from magnet_lab.decoder import hidden_states, pad, vocabulary_scores
from magnet_lab.model import Magnet, best_device
from magnet_lab.objectives import ProjectionHead, info_nce, mntp_loss, msg_loss, mtp_loss
from magnet_lab.training import checkpoint, result, scratch
from magnet_lab.training.recipe import Lora, Optimizer, Phase, Recipe, dump

LOSSES = {"mntp": mntp_loss, "msg": msg_loss, "mtp": mtp_loss}
GROUP = 32  # sentences in one forward pass


class Trainer:
    """One run of a recipe into a folder.

    Attributes:
        lab: the model in training, usable as any `Magnet`.
        parameters: what is trained, by name: the adapter's weights, and the projection head's.
    """

    def __init__(
        self,
        recipe: Recipe,
        out: Path | str,
        *,
        tracker: str | None = None,
        lab: Magnet | None = None,
        compiled: bool = False,
    ):
        """
        Args:
            tracker: a tracker of Accelerate, such as "tensorboard".
            lab: a base model that is loaded already, in place of the one that the recipe names.
            compiled: put the blocks through `torch.compile`: a minute at the start, faster steps from then on. On a CPU
                it needs a C++ compiler.
        """
        self.recipe, self.out = recipe, Path(out)
        checkpoint.check_writable(self.out)
        half = recipe.precision == "bfloat16"
        self.accelerator = Accelerator(
            cpu=best_device().type == "cpu",  # processes on CPUs find each other only if it is said
            log_with=tracker,
            project_dir=str(self.out),
        )
        torch.manual_seed(recipe.seed)  # of the first weights
        self.lab = lab or self._base(torch.bfloat16 if half and recipe.lora else torch.float32)
        self.trained = self.lab.model
        if recipe.lora is not None:
            self.trained = get_peft_model(self.lab.model, lora_config(recipe.lora))
        if recipe.shard and self.accelerator.num_processes > 1:
            share_out(self.lab.model)
        if compiled:
            for block in self.lab.model.get_decoder().layers:
                block.compile(dynamic=True)
        if recipe.activation_checkpointing:
            self.lab.model.gradient_checkpointing_enable({"use_reentrant": False})
            self.lab.model.enable_input_require_grads()
        self.tokens, self.speed = 0, 0.0  # of the last step: how many, and how many a second
        self.head = None
        if recipe.contrast is not None and recipe.contrast.projection:
            self.head = ProjectionHead(self.lab.model.config.get_text_config().hidden_size).to(self.accelerator.device)
        named = {name: parameter for name, parameter in self.trained.named_parameters() if parameter.requires_grad}
        if self.head is not None:
            named |= {f"head.{name}": parameter for name, parameter in self.head.named_parameters()}
        self.parameters = named
        settings = recipe.optimizer
        vectors = [parameter for parameter in named.values() if parameter.ndim < 2]  # norms and biases: not decayed
        matrices = [parameter for parameter in named.values() if parameter.ndim >= 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=settings.lr,
            betas=tuple(settings.betas),
            eps=settings.eps,
        )
        tokenizer = self.lab.tokenizer
        self.rows = rows.rows(recipe.corpus, tokenizer, recipe.length)
        contrast = recipe.contrast
        self.pairs = None
        if contrast is not None:
            source = Corpus(contrast.paths) if contrast.paths else recipe.corpus
            self.pairs = pairs.read(contrast.positives, source, shortest=contrast.shortest, seed=recipe.seed)
        self.sentence_ends = views.sentence_end_tokens(tokenizer) if recipe.spans.sentence_share else None
        if tracker:
            # As text: TensorBoard takes no settings within settings.
            self.accelerator.init_trackers("magnet_lab", config={"recipe": dump(recipe)})

    def _base(self, dtype: torch.dtype) -> Magnet:
        """The model that training starts from."""
        recipe = self.recipe
        if recipe.scratch is None:
            return Magnet.from_pretrained(recipe.model, adapter=None, device=self.accelerator.device, dtype=dtype)
        with self.accelerator.main_process_first():
            tokenizer = scratch.tokenizer(recipe.corpus, recipe.scratch, self.out)
        return Magnet(scratch.model(recipe.scratch, tokenizer).to(self.accelerator.device), tokenizer)

    def run(self) -> Path:
        """Train to the end, from the last checkpoint where there is one; returns the folder of the result."""
        done, main = self.resume(), self.accelerator.is_main_process
        progress = tqdm(total=self.recipe.steps, initial=done, disable=not main, unit="step", smoothing=0.1)
        with progress:
            for losses in self.steps(done):
                progress.update()
                shown = {name: f"{loss:.3f}" for name, loss in losses.items()}
                progress.set_postfix(shown | {"tok/s": f"{self.speed:.0f}"})
        self._save_result(self.out, self.recipe)
        self.accelerator.end_training()
        return self.out

    def resume(self) -> int:
        """Take up the last checkpoint, where there is one; returns how many steps are done."""
        found = checkpoint.latest(self.out)
        return checkpoint.restore(found, dump(self.recipe), self.parameters, self.optimizer) if found else 0

    def save(self, done: int) -> None:
        """Leave a checkpoint after so many steps."""
        self._on_main(checkpoint.save, self.out, done, dump(self.recipe), self.parameters, self.optimizer)

    def steps(self, done: int) -> Iterator[dict[str, float]]:
        """The steps that are left after `done`, with all that belongs to them: log, samples, checkpoints, and at the
        end of each phase the adapter as it leaves it (LLM2Vec's after MNTP, for one). Yields the losses (nats) of each.

        Whoever closes it before its end leaves a checkpoint.
        """
        recipe = self.recipe
        ends = list(itertools.accumulate(phase.steps for phase in recipe.phases))
        try:
            while done < recipe.steps:
                start = time.perf_counter()
                losses = self.step(done)
                done += 1
                self.speed = self.tokens / (time.perf_counter() - start)
                self._record(done, losses)
                if recipe.samples and done % recipe.samples_every == 0:
                    self._show_samples(done)
                if done % recipe.save_every == 0 or done == recipe.steps:
                    self.save(done)
                if done in ends[:-1]:
                    number = ends.index(done) + 1
                    until_here = dataclasses.replace(recipe, phases=recipe.phases[:number])
                    self._save_result(self.out / f"phase-{number}", until_here)
                yield losses
        except GeneratorExit:
            self.save(done)
            raise

    def step(self, number: int) -> dict[str, float]:
        """One optimizer step, counted from 0; returns the losses (nats) before it."""
        phase, place = self.recipe.phase(number)
        if place == 0:  # averages of other losses' gradients are no guide
            self.optimizer.state.clear()
        torch.manual_seed(_mix(self.recipe.seed, number))  # dropout
        self.trained.train()
        losses, self.tokens = {}, 0
        if phase.mntp or phase.msg or phase.mtp:
            losses |= self._masked_and_missing(number, phase)
        if phase.sscl:
            losses["sscl"] = self._contrastive(number, phase.sscl)
        for parameter in self.parameters.values():
            if parameter.grad is not None:
                parameter.grad = self.accelerator.reduce(parameter.grad, "sum")
        settings = self.recipe.optimizer
        if settings.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), settings.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.lr * course(place, phase.steps, settings)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.trained.eval()
        return losses

    def _masked_and_missing(self, number: int, phase: Phase) -> dict[str, float]:
        """MNTP and MSG (and MTP) from one forward pass; adds their gradients, returns their values."""
        recipe = self.recipe
        input_ids, tokens = self.rows.batch(number, recipe.batch, recipe.seed)
        self.tokens += int(tokens.sum())
        made = self.views(input_ids, tokens, number)
        labels = {"mntp": made.mntp_labels, "msg": made.msg_labels}
        if phase.mtp:
            labels["mtp"] = views.same_token_labels(input_ids, made.selected)
        weights = {name: getattr(phase, name) for name in labels if getattr(phase, name)}
        targets = {name: int((labels[name] != views.NO_LABEL).sum()) for name in weights}
        if recipe.averaging == "printed":  # Equation 2 divides by N·L, Equation 4 by N alone
            targets = {name: len(input_ids) if name == "msg" else input_ids.numel() for name in targets}
        values = dict.fromkeys(weights, 0.0)
        by_length = tokens.sum(dim=1).argsort(stable=True)  # so that little of a micro-batch is padding
        mine = by_length[self.accelerator.process_index :: self.accelerator.num_processes]
        for part in mine.split(recipe.micro_batch or recipe.batch):
            longest = int(tokens[part].sum(dim=1).max())

            def here(tensor: Tensor, part=part, longest=longest) -> Tensor:
                return tensor[part, :longest].to(self.lab.device)

            with self.autocast(), short_attention(self.lab.device, longest):
                part_labels = {name: here(labels[name]) for name in weights}
                states = hidden_states(self.lab.model, here(made.input_ids), here(made.span_ids))
                # The head over the vocabulary is the widest matrix of all: only where there is something to predict.
                asked = torch.stack([label != views.NO_LABEL for label in part_labels.values()]).any(dim=0)
                scores = vocabulary_scores(self.lab.model, states[asked])
            total = scores.new_zeros((), dtype=torch.float32)
            for name, weight in weights.items():
                loss = LOSSES[name](scores, part_labels[name][asked], divide_by=targets[name])
                values[name] += float(loss.detach())
                total = total + weight * loss
            total.backward()
        return {name: self._sum(value) for name, value in values.items()}

    def views(self, input_ids: LongTensor, tokens: Tensor, number: int) -> views.Views:
        """The views of a batch, the same in every process."""
        spans = self.recipe.spans
        ends = torch.isin(input_ids, self.sentence_ends) & tokens.bool() if self.sentence_ends is not None else None
        return views.make_views(
            input_ids,
            tokens,
            tokenizer=self.lab.tokenizer,
            generator=torch.Generator().manual_seed(_mix(self.recipe.seed, number)),
            mask_share=self.recipe.mask_share,
            max_spans=spans.at_most,
            shortest=spans.shortest,
            longest=spans.longest,
            causal_share=spans.causal_share,
            sentence_share=spans.sentence_share,
            sentence_ends=ends,
        )

    def _contrastive(self, number: int, weight: float) -> float:
        """SSCL over the whole batch's pairs; adds its gradient, returns its value.

        The loss needs all vectors at once, and its gradient all activations. So the vectors are made first, the loss
        is differentiated with respect to them, and each group of sentences takes its vectors' gradient from there.
        Where memory does not hold the activations of all groups, each is run a second time for that (GradCache);
        dropout falls alike in both runs.
        """
        contrast, processes = self.recipe.contrast, self.accelerator.num_processes
        batch = pairs.batch(self.pairs, number, contrast.batch, self.recipe.seed)
        mine = batch[self.accelerator.process_index :: processes]
        columns = list(zip(*mine, strict=True))  # sentences, what means the same and perhaps hard negatives
        made = [self._contrast_ids(text) for column in columns for text in column]
        self.tokens += processes * sum(len(ids) for ids, _, _ in made)
        # Sentences of like length stand together, so that little of a pass is padding.
        order = torch.tensor([len(ids) for ids, _, _ in made]).argsort()
        groups = order.split(contrast.chunk or GROUP)

        def vectors(index: int) -> Tensor:
            torch.manual_seed(_mix(self.recipe.seed, number, index, self.accelerator.process_index))
            return self.sentence_vectors([made[place] for place in groups[index].tolist()])

        with torch.set_grad_enabled(not contrast.chunk):
            kept = [vectors(index) for index in range(len(groups))]
        own = torch.cat(kept).detach()[order.argsort()]
        everyone = self.accelerator.gather(own).requires_grad_()
        anchors, *others = everyone.view(processes, len(columns), len(mine), -1).transpose(0, 1).flatten(1, 2)
        loss = info_nce(anchors, torch.cat(others), temperature=contrast.temperature)
        (gradient,) = torch.autograd.grad(weight * loss, everyone)
        gradient = gradient.view(processes, len(own), -1)[self.accelerator.process_index]
        for index, group in enumerate(groups):
            (vectors(index) if contrast.chunk else kept[index]).backward(gradient[group])
        return float(loss.detach())

    def autocast(self):
        """The recipe's precision for the forward passes inside. Accelerate's own is one for a whole Python process."""
        return torch.autocast(self.lab.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")

    def _contrast_ids(self, text: str) -> tuple[list[int], int, int]:
        """A sentence's ids as `encode` makes them, cut to the recipe's length, and where its vector is read."""
        contrast = self.recipe.contrast
        options = (self.lab.tokenizer, text, encoding.DEFAULT_INSTRUCTION, contrast.pooling)
        ids, start, stop = encoding.sentence_ids(*options)
        if (cut := len(ids) - contrast.length) > 0:
            ids, start, stop = encoding.sentence_ids(*options, cut=cut)
        return ids, start, stop

    def sentence_vectors(self, made: list[tuple[list[int], int, int]]) -> Tensor:
        """Vectors of sentences, from `_contrast_ids`, through the projection head, with gradient: `(n, hidden)`."""
        input_ids, tokens = (tensor.to(self.lab.device) for tensor in pad([ids for ids, _, _ in made]))
        short = short_attention(self.lab.device, input_ids.shape[1])
        with self.autocast(), short, attention_dropout(self.lab.model, self.recipe.contrast.attention_dropout):
            states = hidden_states(self.lab.model, input_ids, bidirectional(tokens)).float()
        pooled = torch.stack([row[start:stop].mean(dim=0) for row, (_, start, stop) in zip(states, made, strict=True)])
        return pooled if self.head is None else self.head(pooled)

    def _sum(self, value: float) -> float:
        return float(self.accelerator.reduce(torch.tensor(value, device=self.accelerator.device), "sum"))

    def _record(self, step: int, losses: dict[str, float]) -> None:
        if self.accelerator.is_main_process:
            with (self.out / "log.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps({"step": step, **losses, "tokens_per_second": round(self.speed)}) + "\n")
        self.accelerator.log(losses, step=step)

    def _show_samples(self, step: int) -> None:
        for text in self.recipe.samples:  # by every process: each may hold a part of the weights
            with torch.compiler.set_stance("force_eager"):  # a cache that grows would be compiled anew at every token
                made = self.lab.infill(text).text if "[blank" in text else text + self.lab.generate(text)
            if self.accelerator.is_main_process:
                tqdm.write(f"{step}: {made}")

    def _save_result(self, out: Path, recipe: Recipe) -> None:
        self._on_main(result.save_adapter if recipe.lora else result.save_model, out, recipe, self.trained)

    def _on_main(self, do, *arguments) -> None:
        """Done by one process; the others wait for it."""
        if self.accelerator.is_main_process:
            do(*arguments)
        self.accelerator.wait_for_everyone()


def lora_config(lora: Lora) -> LoraConfig:
    """As PEFT takes it."""
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear",  # of the decoder's blocks; the head over the vocabulary is left out
        task_type="CAUSAL_LM",
    )


def share_out(model) -> None:
    """Leave each process a part of every block's frozen weights; a block is whole only while it computes.

    The adapter stays whole everywhere: it is small, and its gradients are added up by the loop.
    """
    from torch.distributed.fsdp import fully_shard

    for block in model.get_decoder().layers:
        trained = {parameter for parameter in block.parameters() if parameter.requires_grad}
        fully_shard(block, reshard_after_forward=True, ignored_params=trained)


def short_attention(device: torch.device, length: int):
    """Plain products for the attention of short rows on a CPU: there PyTorch's fused attention is slow backwards under
    a mask, and what it saves is memory, of which short rows take little."""
    plain = device.type == "cpu" and length <= 256
    return sdpa_kernel(SDPBackend.MATH) if plain else contextlib.nullcontext()


@contextlib.contextmanager
def attention_dropout(model, share: float):
    """Dropout of the attention's weights while this lasts: the noise that sets two views of a sentence apart."""
    layers = [module for module in model.modules() if hasattr(module, "attention_dropout")]
    before = [layer.attention_dropout for layer in layers]
    for layer in layers:
        layer.attention_dropout = share or layer.attention_dropout
    try:
        yield
    finally:
        for layer, value in zip(layers, before, strict=True):
            layer.attention_dropout = value


def course(step: int, steps: int, settings: Optimizer) -> float:
    """The share of the learning rate at a step of a phase, counted from 0: up, then level, then down."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    start = max(settings.warmup, steps - round(steps * settings.decay))  # of the fall
    if settings.schedule == "constant" or step < start:
        return 1.0
    done = (step - start) / (steps - start)
    return 1 - done if settings.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2


def _mix(*numbers: int) -> int:
    """One seed from several numbers, far apart for neighbours."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 6364136223846793005 + number + 1442695040888963407) % 2**63
    return mixed
