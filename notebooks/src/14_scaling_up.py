# %% [markdown]
# # 14 · Scaling up
#
# **What changes between five million parameters and seven billion, and what does not?** The idea, the masks and the
# objectives stay. What changes is arithmetic: where the memory goes, how long a step takes, and what to do when one GPU
# is not enough.
#
# - **You will** count the memory and the operations of a training step by hand, let the project count them, and see that
#   the two agree.
# - **You need** 05 (joint training, LoRA). No GPU: nothing here is computed, everything is counted.
# - **Time**: 15 minutes to read, 25 with the exercises; about a minute to run on two cores.

# %%
# In Colab, once: %pip install -q magnet-lab
import dataclasses

import torch

from magnet_lab.course.start import start
from magnet_lab.training import plan
from magnet_lab.training import recipe as recipes
from magnet_lab.viz import palette
from magnet_lab.viz.picture import Picture

start(None)

# %% [markdown]
# ## One dial
# The recipe of the paper (Appendix A) is a file like any other. The model's name is the only line that says "seven
# billion".

# %%
paper = recipes.load("paper")
print(paper.model, "·", paper.batch, "rows of", paper.length, "tokens ·", paper.phases)

# %% [markdown]
# ## Where the memory goes
# Four things lie in a GPU's memory during training:
#
# | | bytes for each … | how many |
# | --- | --- | --- |
# | frozen weights, bfloat16 | 2 | every parameter |
# | trained weights, float32 | 4 | only LoRA's |
# | their gradients and Adam's two averages, float32 | 12 | only LoRA's |
# | activations kept for the backward pass | | grows with batch × length × layers |
#
# By hand, for LLaMA-2-7B. A block has four attention matrices and three of the MLP; then there are the embedding and
# the head over the vocabulary.

# %%
shape = plan.SHAPES["llama-2-7b"]
d, inner, layers = (
    shape[name] for name in ("hidden_size", "intermediate_size", "num_hidden_layers")
)
parameters = layers * (4 * d * d + 3 * d * inner) + 2 * shape["vocab_size"] * d
print(
    f"{parameters / 1e9:.2f} billion parameters, {2 * parameters / 1e9:.1f} GB in bfloat16"
)

# %% [markdown]
# LoRA puts two thin matrices beside each of the seven: one of $r \times d_{in}$, one of $d_{out} \times r$, so
# $r\,(d_{in} + d_{out})$ numbers each.

# %%
r = paper.lora.r
lora = layers * (4 * r * (d + d) + 3 * r * (d + inner))
print(f"{lora / 1e6:.1f} million trained parameters: {lora / parameters:.2%} of all")
print(f"{16 * lora / 1e9:.2f} GB for them, their gradients and Adam's averages")

# %% [markdown]
# If every weight were trained, these 16 bytes would be there for each of the 6.7 billion.

# %%
print(f"{16 * parameters / 1e9:.0f} GB, before a single activation")

# %% [markdown]
# ## The library's line
# `plan` runs the recipe's own step on tensors that have a shape and no data, and counts what autograd keeps and what is
# multiplied. It knows no formula of an architecture, so it can check ours.


# %%
def needs(**changes):
    """What the paper's recipe needs with these changes; a quarter of a minute each."""
    return plan.plan(dataclasses.replace(paper, **changes))


planned = needs()
print(
    f"frozen weights {planned.weights / 1e9:.2f} GB, by hand {2 * parameters / 1e9:.2f}"
)
head = 2 * d * d  # SSCL's projection head, thrown away after the training
print(
    f"trained        {planned.trained / 1e9:.2f} GB, by hand {16 * (lora + head) / 1e9:.2f}"
)
print(f"activations    {planned.activations / 1e9:.1f} GB")

# %% [markdown]
# Two matrices of $d \times d$ are trained beside LoRA: the projection head of SSCL. The activations outweigh
# all else, and they are the part that we can choose: they grow with the rows that go through *at once*.
#
# ## Fewer rows at once
# Gradients add up. A batch of 32 rows may go through as two of 16 or four of 8: the sum is the same (notebook 05 shows
# it), the memory is not. The recipe's `micro_batch` says how many go through at once.
#
# The contrastive batch cannot be cut so: each pair is compared with all others. There the vectors are made in chunks, the
# loss is differentiated with respect to the vectors, and each chunk goes through a second time to take its gradient from
# there (GradCache). The recipe's `chunk` says how many sentences that are.

# The recipe says both. What would it need with neither, and with one of them?

# %%
whole = dataclasses.replace(paper.contrast, chunk=None)
rows_cut, both_cut = f"rows, {paper.micro_batch}", "both: the recipe"
tried = {
    "nothing": needs(micro_batch=None, contrast=whole),
    rows_cut: needs(contrast=whole),
    f"sentences, {paper.contrast.chunk}": needs(micro_batch=None),
    both_cut: planned,
}
print(f"{'cut':16} {'memory':>9}  fits")
for name, need in tried.items():
    gpus = [
        gpu for gpu, has in plan.PROCESSORS.items() if has.memory * 1e9 > need.memory
    ]
    print(f"{name:16} {need.memory / 1e9:6.1f} GB  {', '.join(gpus) or 'none'}")


# %%
def memory_picture(plans, title):
    """A bar for each plan, made of what lies in memory; a dashed line where a GPU is full."""
    looks = {
        "weights": palette.SEES.background,
        "trained": palette.REACHED.background,
        "activations": palette.CONTEXT.light.background,
    }
    figure = palette.card(7.2, 0.45 * len(plans) + 1.6)
    axes, lines = figure.add_subplot(), [title]
    for row, (name, need) in enumerate(plans.items()):
        sizes = {part: getattr(need, part) / 1e9 for part in looks}
        lines.append(f"{name}: " + ", ".join(f"{k} {v:.1f}" for k, v in sizes.items()))
        left = 0.0
        for part, size in sizes.items():
            label = part if row == 0 else None
            axes.barh(row, size, left=left, color=looks[part], ec="#111", label=label)
            left += size
    for gpu in ("l4", "a100"):
        full = plan.PROCESSORS[gpu].memory
        axes.axvline(full, color=palette.INK, linestyle="--", linewidth=1)
        axes.text(full, -0.62, f" {gpu}: {full:g} GB", fontsize=9, va="bottom")
    axes.set_yticks(range(len(plans)), list(plans))
    axes.set(ylim=(len(plans) - 0.5, -1.0), xlabel="GB")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        frameon=False,
        fontsize=9,
        ncols=3,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.25),
    )
    figure.suptitle(title, fontsize=12)
    return Picture(figure, "\n".join(lines))


memory_picture(tried, "What is cut, and what lies in memory then")

# %% [markdown]
# Compare the first three lines: to cut one kind of batch alone brings next to nothing. The run needs what its worst moment
# needs. That is a batch of rows in phase 1, and a batch of pairs in phase 2, and the two are about equally large:

# %%
print(f"rows:  {paper.batch} of {paper.length} = {paper.batch * paper.length:,} tokens")
sentences = 2 * paper.contrast.batch  # each with its paraphrase
tokens = sentences * paper.contrast.length
print(f"pairs: {sentences} of {paper.contrast.length} = {tokens:,} tokens")

# %% [markdown]
# Only both together bring the run down: the last line. To find the worst moment first is most of the art. (`magnet-lab plan
# paper --micro-batch 8 --gpu a100` tries other numbers.)
#
# What does the second pass over the chunks cost?

# %%
more = tried[both_cut].operations[1] / tried[rows_cut].operations[1]
print(f"operations of phase 2, with chunks against without: {more:.2f}")

# %% [markdown]
# ## How long a step takes
# A matrix product of a token with a weight costs two operations for each number of the matrix. The forward pass uses each
# weight once. The backward pass uses it once more, to bring the gradient further down; a *trained* matrix would be used
# a third time, for its own gradient, but ours are frozen.

# %%
tokens = paper.batch * paper.length
blocks = layers * (4 * d * d + 3 * d * inner)
by_hand = 2 * 2 * blocks * tokens
print(f"{tokens:,} tokens a step, {by_hand / 1e12:.0f} TFLOP by hand in the blocks")
print(f"{planned.operations[0] / 1e12:.0f} TFLOP by the plan, phase 1")

# %% [markdown]
# The plan counts attention, LoRA and the head as well. The head is wide, 32,000 words, and so it runs **only where there
# is a label**: on hidden and on span tokens, not on all.

# %%
gpu = plan.PROCESSORS["h200"]
for number, (operations, phase) in enumerate(
    zip(planned.operations, paper.phases, strict=True), start=1
):
    seconds = operations / (gpu.rate * gpu.reached)
    print(
        f"phase {number}: {seconds:.1f} s a step, {seconds * phase.steps / 60:.0f} min"
    )

# %% [markdown]
# That is at 40 % of what the maker states, a guess until somebody measures it: `magnet-lab bench train` does, and prints
# the share that was reached.
#
# ## What would break?
# Without LoRA: what if every weight were trained? Then 16 bytes lie there for each of them.


# %%
def parameters_of(shape):
    """Blocks (with fewer keys and values than queries, where the model has that), embedding, head."""
    d, inner = shape["hidden_size"], shape["intermediate_size"]
    narrow = d * shape["num_key_value_heads"] // shape["num_attention_heads"]
    block = 2 * d * d + 2 * d * narrow + 3 * d * inner
    vocabulary = shape["vocab_size"] * d
    copies = 1 if shape.get("tie_word_embeddings") else 2
    return shape["num_hidden_layers"] * block + copies * vocabulary


for name, its_shape in plan.SHAPES.items():
    count = parameters_of(its_shape)
    print(
        f"{name:10} {count / 1e6:7,.0f} M   frozen {2 * count / 1e9:6.2f} GB   "
        f"all trained {16 * count / 1e9:6.2f} GB"
    )

# %% [markdown]
# Compare the last column with a laptop's memory, and with the GPUs of our list (`plan.PROCESSORS`). And each task would have
# a copy of all weights, where adapters share one.
#
# ## Several GPUs
# ```
# accelerate launch -m magnet_lab.training paper              # each has the weights, each takes a part of the batch
# ```
# - Every process draws the same views from the seed and the step's number, and takes its part. What has to be sent are the
#   gradients of what is trained: LoRA, and SSCL's head.
# - SSCL's negatives are gathered from all processes, *with* their gradient: a pair on one GPU is a negative on the other.
#   So the sentence vectors are sent as well.
# - Where not even the weights fit, `shard: true` leaves each process a part of every block; a block is whole only while
#   it computes.

# %%
print(f"LoRA's gradients in float32: {4 * lora / 1e6:.0f} MB a step")
print(f"in phase 2, those of SSCL's head:   {4 * 2 * d * d / 1e6:.0f} MB")
print(f"and its sentence vectors:           {4 * sentences * d / 1e6:.1f} MB")
print(f"all weights, for comparison: {2 * parameters / 1e6:,.0f} MB in bfloat16")

# %% [markdown]
# ## What does not change
# | | `tiny` | `small` | `llama-2-7b` |
# | --- | --- | --- | --- |
# | masks, views, objectives | the same | the same | the same |
# | command | `magnet-lab train tiny` | `magnet-lab train small` | `magnet-lab train paper` |
# | adapter | a PEFT folder | a PEFT folder | a PEFT folder |
#
# What does change is what may be claimed. A result at one scale is a hint about another, no more; `magnet-lab results` says
# of which model each measured number is.

# %% [markdown]
# ## Exercises
# ### 1 · Trained by LoRA (●○○, 5 minutes)
# How many numbers does LoRA train in one matrix of `rows × columns` with rank `r`?
#
# <details><summary>Hint</summary>
#
# Two matrices: one has `r` rows, the other `r` columns.
#
# </details>


# %%
def trained_by_lora(rows, columns, r):
    ### BEGIN SOLUTION
    return r * columns + rows * r
    ### END SOLUTION


# %%
from peft import LoraConfig, get_peft_model

layer = torch.nn.Sequential(torch.nn.Linear(40, 24, bias=False))
adapted = get_peft_model(layer, LoraConfig(r=4, target_modules=["0"]))
truth = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
try:
    yours = trained_by_lora(24, 40, 4)
    print("as PEFT counts" if yours == truth else f"PEFT counts {truth}, you {yours}")
except NotImplementedError:
    print("trained_by_lora is yours to write")

# %% [markdown]
# ### 2 · Does it fit? (●●○, 5 minutes)
# `tried` above holds four plans by name. Return the names of those that fit into `memory` GB.
#
# <details><summary>Hint</summary>
#
# `tried[name].memory` is in bytes.
#
# </details>


# %%
def that_fit(memory):
    ### BEGIN SOLUTION
    return [name for name, need in tried.items() if need.memory < memory * 1e9]
    ### END SOLUTION


# %%
truth = {gb: [n for n in tried if tried[n].memory / 1e9 < gb] for gb in (24, 80, 141)}
try:
    wrong = [gb for gb, names in truth.items() if set(that_fit(gb)) != set(names)]
    print(f"not yet: look at {wrong[0]} GB" if wrong else "right")
except NotImplementedError:
    print("that_fit is yours to write")

# %% [markdown]
# ### 3 · Longer rows (●●●, 10 minutes)
# Products with weights depend on the number of tokens alone. In attention each token is compared with every other of its
# row, twice (scores, then values). Return attention's share of a block's operations in the forward pass, for rows of
# `length` tokens: $4 \, \ell \, d$ operations a token in attention, two for each weight of the block.
#
# <details><summary>Hint</summary>
#
# A block has `4 * d * d + 3 * d * inner` weights.
#
# </details>


# %%
def attention_share(length, d, inner):
    ### BEGIN SOLUTION
    attention = 4 * length * d
    return attention / (attention + 2 * (4 * d * d + 3 * d * inner))
    ### END SOLUTION


# %%
try:
    for length in (128, 512, 4096, 32_768):
        print(f"{length:6} tokens: {attention_share(length, d, inner):.1%}")
    small_case = attention_share(1, 1, 1)
    print("right" if abs(small_case - 4 / 18) < 1e-9 else "not yet: by hand 4 of 18")
except NotImplementedError:
    print("attention_share is yours to write")

# %% [markdown]
# Look at the second line, the paper's 512 tokens. A mask changes nothing but attention, so whatever it costs is a part of
# that share. Operations are not seconds, though: notebook 09 has a stopwatch beside each mask.
#
# ## Summary
# - With LoRA the frozen weights and the activations fill the memory; gradients and Adam hardly count.
# - Rows and sentences at once are the dials for memory; the result does not depend on them.
# - Two passes over frozen weights, not three: a step costs four operations for each parameter and token.
# - What the head over the vocabulary costs depends on the labels alone.
#
# ## Do you know now?
# 1. Why does LoRA save so little of the activations' memory?
# 2. Why can the contrastive batch not be cut into micro-batches?
# 3. What is sent between GPUs in a step?
#
# <details><summary>Answers</summary>
#
# 1. The gradient has to travel down through all blocks to reach the adapters of the first, and needs what each block
#    kept on the way.
# 2. Each pair's loss looks at all others of the batch. Its vectors can be made in chunks, but not its loss.
# 3. Gradients of the adapter and of SSCL's head, and the sentence vectors of SSCL with theirs. No weights, unless they are shared out.
#
# </details>
#
# **This is the last notebook.** From here: `magnet-lab plan`, `magnet-lab train`, and a text of your own. **In the app**: the
# page *Results*, where every measured number stands beside the paper's, with the model that it is of (`magnet-lab app`).
