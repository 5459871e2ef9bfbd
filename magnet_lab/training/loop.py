"""The training loop: all objectives in one step (Equation 5), on one process or several.

Everything that is random in a step, its rows, spans, hidden tokens, pairs and dropout, follows from the recipe's seed
and the step's number. So a run that was killed goes on as if nothing had happened, and several processes share a batch
without a word: each makes the whole batch's views and takes its part.

Each loss is divided by the number of its targets in the *whole* batch before its gradient is added up. Micro-batches
and processes therefore change nothing but the order of a sum.
"""

import dataclasses
import json
import math
import time
from importlib.metadata import version
from pathlib import Path

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch import LongTensor, Tensor
from tqdm import tqdm

from magnet_lab import encoding, views
from magnet_lab.attention import bidirectional
from magnet_lab.data import pairs, rows
from magnet_lab.data.rows import Corpus
from magnet_lab.decoder import hidden_states, pad, vocabulary_scores
from magnet_lab.model import Magnet, best_device
from magnet_lab.objectives import ProjectionHead, info_nce, mntp_loss, msg_loss, mtp_loss
from magnet_lab.training import checkpoint
from magnet_lab.training.recipe import Phase, Recipe, dump

LOSSES = {"mntp": mntp_loss, "msg": msg_loss, "mtp": mtp_loss}


class Trainer:
    """One run of a recipe into a folder.

    Attributes:
        lab: the model in training, usable as any `Magnet`.
        parameters: what is trained, by name: the adapter's weights, and the projection head's.
    """

    def __init__(self, recipe: Recipe, out: Path | str, *, tracker: str | None = None, lab: Magnet | None = None):
        """`lab`: a base model that is loaded already, in place of the one that the recipe names."""
        self.recipe, self.out = recipe, Path(out)
        half = recipe.precision == "bfloat16"
        self.accelerator = Accelerator(
            cpu=best_device().type == "cpu",  # processes on CPUs find each other only if it is said
            mixed_precision="bf16" if half else "no",
            log_with=tracker,
            project_dir=str(self.out),
        )
        self.lab = lab or Magnet.from_pretrained(
            recipe.model,
            adapter=None,
            device=self.accelerator.device,
            dtype=torch.bfloat16 if half else torch.float32,
        )
        torch.manual_seed(recipe.seed)  # of the adapter's first weights
        self.adapter = get_peft_model(
            self.lab.model,
            LoraConfig(
                r=recipe.lora.r,
                lora_alpha=recipe.lora.alpha,
                lora_dropout=recipe.lora.dropout,
                target_modules="all-linear",  # of the decoder's blocks; the head over the vocabulary is left out
                task_type="CAUSAL_LM",
            ),
        )
        if recipe.activation_checkpointing:
            self.lab.model.gradient_checkpointing_enable({"use_reentrant": False})
            self.lab.model.enable_input_require_grads()
        self.head = None
        if recipe.contrast is not None and recipe.contrast.projection:
            self.head = ProjectionHead(self.lab.model.config.get_text_config().hidden_size).to(self.accelerator.device)
        named = {name: parameter for name, parameter in self.adapter.named_parameters() if parameter.requires_grad}
        if self.head is not None:
            named |= {f"head.{name}": parameter for name, parameter in self.head.named_parameters()}
        self.parameters = named
        settings = recipe.optimizer
        self.optimizer = torch.optim.AdamW(
            named.values(),
            lr=settings.lr,
            betas=tuple(settings.betas),
            eps=settings.eps,
            weight_decay=settings.weight_decay,
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

    def run(self) -> Path:
        """Train to the end, from the last checkpoint where there is one; returns the folder of the adapter."""
        recipe, step = self.recipe, 0
        if found := checkpoint.latest(self.out):
            step = checkpoint.restore(found, dump(recipe), self.parameters, self.optimizer)
        progress = tqdm(
            total=recipe.steps, initial=step, disable=not self.accelerator.is_main_process, unit="step", smoothing=0.1
        )
        with progress:
            while step < recipe.steps:
                start = time.perf_counter()
                losses = self.step(step)
                step += 1
                speed = recipe.batch * recipe.length / (time.perf_counter() - start)
                progress.update()
                progress.set_postfix({name: f"{loss:.3f}" for name, loss in losses.items()} | {"tok/s": f"{speed:.0f}"})
                self._record(step, losses, speed)
                if recipe.samples and step % recipe.samples_every == 0:
                    self._show_samples(step)
                if step % recipe.save_every == 0 or step == recipe.steps:
                    self._on_main(checkpoint.save, self.out, step, dump(recipe), self.parameters, self.optimizer)
        self._on_main(save_adapter, self.out, recipe, self.adapter)
        self.accelerator.end_training()
        return self.out

    def step(self, number: int) -> dict[str, float]:
        """One optimizer step, counted from 0; returns the losses (nats) before it."""
        phase = self.recipe.phase(number)
        torch.manual_seed(_mix(self.recipe.seed, number))  # dropout
        self.adapter.train()
        losses = {}
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
            group["lr"] = settings.lr * course(number, self.recipe)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.adapter.eval()
        return losses

    def _masked_and_missing(self, number: int, phase: Phase) -> dict[str, float]:
        """MNTP and MSG (and MTP) from one forward pass; adds their gradients, returns their values."""
        recipe = self.recipe
        input_ids, tokens = self.rows.batch(number, recipe.batch, recipe.seed)
        made = self.views(input_ids, tokens, number)
        labels = {"mntp": made.mntp_labels, "msg": made.msg_labels}
        if phase.mtp:
            labels["mtp"] = views.same_token_labels(input_ids, made.selected)
        weights = {name: getattr(phase, name) for name in labels if getattr(phase, name)}
        targets = {name: int((labels[name] != views.NO_LABEL).sum()) for name in weights}
        if recipe.averaging == "printed":  # Equation 2 divides by N·L, Equation 4 by N alone
            targets = {name: len(input_ids) if name == "msg" else input_ids.numel() for name in targets}
        values = dict.fromkeys(weights, 0.0)
        mine = torch.arange(recipe.batch)[self.accelerator.process_index :: self.accelerator.num_processes]
        for part in mine.split(recipe.micro_batch or recipe.batch):
            with self.accelerator.autocast():
                part_labels = {name: labels[name][part].to(self.lab.device) for name in weights}
                states = hidden_states(
                    self.lab.model, made.input_ids[part].to(self.lab.device), made.span_ids[part].to(self.lab.device)
                )
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
        is differentiated with respect to them, and each chunk takes its vectors' gradient from there. Where a chunk is
        not all there is, it is run a second time for that (GradCache); dropout falls alike in both runs.
        """
        contrast, processes = self.recipe.contrast, self.accelerator.num_processes
        batch = pairs.batch(self.pairs, number, contrast.batch, self.recipe.seed)
        mine = batch[self.accelerator.process_index :: processes]
        texts = [first for first, _ in mine] + [second for _, second in mine]
        size = contrast.chunk or len(texts)
        chunks = [texts[start : start + size] for start in range(0, len(texts), size)]

        def vectors(index: int) -> Tensor:
            torch.manual_seed(_mix(self.recipe.seed, number, index, self.accelerator.process_index))
            return self.sentence_vectors(chunks[index])

        with torch.set_grad_enabled(len(chunks) == 1):
            made = [vectors(index) for index in range(len(chunks))]
        own = torch.cat(made).detach()
        everyone = self.accelerator.gather(own).requires_grad_()
        of_process = everyone.view(processes, 2, len(mine), -1)
        anchors, candidates = of_process[:, 0].flatten(0, 1), of_process[:, 1].flatten(0, 1)
        loss = info_nce(anchors, candidates, temperature=contrast.temperature)
        (gradient,) = torch.autograd.grad(weight * loss, everyone)
        gradient = gradient.view(processes, len(own), -1)[self.accelerator.process_index]
        for index, part in enumerate(gradient.split(size)):
            (made[index] if len(chunks) == 1 else vectors(index)).backward(part)
        return float(loss.detach())

    def sentence_vectors(self, texts: list[str]) -> Tensor:
        """Vectors of sentences as `encode` makes them, through the projection head, with gradient: `(n, hidden)`."""
        contrast, made = self.recipe.contrast, []
        for text in texts:
            ids = encoding.sentence_ids(self.lab.tokenizer, text, encoding.DEFAULT_INSTRUCTION, contrast.pooling)
            if (cut := len(ids[0]) - contrast.length) > 0:
                ids = encoding.sentence_ids(
                    self.lab.tokenizer, text, encoding.DEFAULT_INSTRUCTION, contrast.pooling, cut=cut
                )
            made.append(ids)
        input_ids, tokens = (tensor.to(self.lab.device) for tensor in pad([ids for ids, _, _ in made]))
        with self.accelerator.autocast():
            states = hidden_states(self.lab.model, input_ids, bidirectional(tokens)).float()
        pooled = torch.stack([row[start:stop].mean(dim=0) for row, (_, start, stop) in zip(states, made, strict=True)])
        return pooled if self.head is None else self.head(pooled)

    def _sum(self, value: float) -> float:
        return float(self.accelerator.reduce(torch.tensor(value, device=self.accelerator.device), "sum"))

    def _record(self, step: int, losses: dict[str, float], speed: float) -> None:
        if self.accelerator.is_main_process:
            self.out.mkdir(parents=True, exist_ok=True)
            with (self.out / "log.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps({"step": step, **losses, "tokens_per_second": round(speed)}) + "\n")
        self.accelerator.log(losses, step=step)

    def _show_samples(self, step: int) -> None:
        for text in self.recipe.samples:
            if self.accelerator.is_main_process:
                tqdm.write(f"{step}: {self.lab.infill(text).text}")

    def _on_main(self, do, *arguments) -> None:
        """Done by one process; the others wait for it."""
        if self.accelerator.is_main_process:
            do(*arguments)
        self.accelerator.wait_for_everyone()


def course(step: int, recipe: Recipe) -> float:
    """The share of the learning rate at a step, counted from 0: up over the warm-up, then as the schedule says."""
    settings = recipe.optimizer
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    if settings.schedule == "constant":
        return 1.0
    done = (step - settings.warmup) / max(1, recipe.steps - settings.warmup)
    return 1 - done if settings.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2


def save_adapter(out: Path, recipe: Recipe, adapter) -> None:
    """The result: a plain PEFT adapter in bfloat16, and how it was made."""
    state = {
        name: parameter.detach().to(torch.bfloat16)
        for name, parameter in adapter.state_dict().items()
        if "lora_" in name
    }
    adapter.peft_config["default"].base_model_name_or_path = recipe.model
    adapter.save_pretrained(out, state_dict=state, save_embedding_layers=False)
    packages = ("torch", "transformers", "peft", "magnet-lab")
    made = {"recipe": dataclasses.asdict(recipe), "versions": {package: version(package) for package in packages}}
    (out / "magnet_config.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    (out / "README.md").write_text(_card(recipe, made["versions"]), encoding="utf-8")
    (out / "adapter_model.safetensors").chmod(0o644)  # safetensors writes for the owner alone


def _card(recipe: Recipe, versions: dict[str, str]) -> str:
    """A model card in place of PEFT's empty one: what this is, how it was made, how it is used."""
    phases = "\n".join(
        f"| {phase.steps} | {phase.mntp:g} | {phase.sscl:g} | {phase.msg:g} | {phase.mtp:g} |"
        for phase in recipe.phases
    )
    return (
        "---\nlibrary_name: peft\ntags: [magnet, lora, infilling, sentence-embeddings]\n---\n"
        f"# A MAGNET adapter for {recipe.model}\n\n"
        f"LoRA (r = {recipe.lora.r}, alpha = {recipe.lora.alpha}), trained by magnet_lab on "
        f"{', '.join(Path(path).name for path in recipe.corpus.paths)}: {recipe.steps} steps of {recipe.batch} rows of "
        f"{recipe.length} tokens, learning rate {recipe.optimizer.lr:g} ({recipe.optimizer.schedule}).\n\n"
        f"| steps | MNTP | SSCL | MSG | MTP |\n| --- | --- | --- | --- | --- |\n{phases}\n\n"
        "The whole recipe is in `magnet_config.json`. Made with "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + f".\n\n```python\nimport magnet_lab as ml\n\nlab = ml.Magnet.from_pretrained({recipe.model!r}, adapter=...)\n"
        'lab.infill("Tom had a red ball. [blank] He was very sad.")\n```\n'
    )


def _mix(*numbers: int) -> int:
    """One seed from several numbers, far apart for neighbours."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 6364136223846793005 + number + 1442695040888963407) % 2**63
    return mixed
