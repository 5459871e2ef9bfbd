# %% [markdown]
# # 11 · A prefix LM from scratch
#
# **How can one small model read its prompt in both directions and still write from left to right?**
#
# - **You will** count who may look at whom; put labels on the target alone; train a model of a hundred thousand
#   parameters in seconds, see where in a text it is sure, let it write and look into its attention; find a leak that
#   hides in nine cells of a mask, and see what it does to a model; and compare one stack of layers with an encoder and
#   a decoder.
# - **You need** notebook 01 (masks), and to have met cross entropy (notebook 02).
# - **Time**: 30 minutes to read, 60 with the exercises; runs in about half a minute on two cores.
#
# The source is a chapter: M. Brenndoerfer, *Prefix Language Modeling* (2025). It builds such a model in PyTorch, and so
# do we. It prints its results; we measure ours and put them beside.

# %%
# In Colab, once: %pip install -q magnet-lab
import inspect
import math
import textwrap
from functools import partial

import torch
from torch.nn.functional import cross_entropy

import magnet_lab as ml
from magnet_lab.attention import attention_mask, receptive_field
from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.relatives.prefix_lm import data, experiments, masks, model, training
from magnet_lab.viz import show
from magnet_lab.viz.picture import Picture
from magnet_lab.viz.results import LINES

start(None)  # no ready model here: all of them are trained on the spot

# %% [markdown]
# ## The picture
# You ask a model to go on with a text. What you typed, the **prefix**, is there as a whole: nothing is gained by hiding
# its end from its beginning. What is still to be written, the **target**, has to be causal. So the first part of the
# text gets one mask and the rest another. Here are the chapter's three modes, for six tokens of which three are prefix.

# %%
words = ["to", " be", " or", " not", " to", " be"]
row = torch.ones(1, 6, dtype=torch.long)
span_ids = {name: masks.mode_span_ids(name, row, 3) for name in masks.MODES}
modes = {name: ids[0].tolist() for name, ids in span_ids.items()}
show("modes", words, modes, title="Six tokens, three modes")

# %% [markdown]
# The right one is the prefix LM. Its three regions:
#
# - **prefix to prefix**: a full square. ` be` sees ` or`, which stands after it.
# - **target to prefix**: a full rectangle. Each word that is written knows the whole prompt.
# - **target to target**: a triangle. Nobody sees a word that is not written yet.
# - and in the corner at the top right, **prefix to target**: nothing. Keep an eye on this corner.
#
# ### By hand
# Count the pairs that may look. Both ways: $6 \cdot 6$. Causal: $1 + 2 + 3 + 4 + 5 + 6$. With a prefix of three: three
# rows of 3, then rows of 4, 5 and 6.

# %%
print("both ways", 6 * 6)
print("causal   ", 1 + 2 + 3 + 4 + 5 + 6)
print("prefix   ", 3 * 3 + 4 + 5 + 6)

# %% [markdown]
# ### As a loop, over the regions


# %%
def by_loop(length, prefix_length):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        for key in range(length):
            if key < prefix_length:  # prefix to prefix, target to prefix
                mask[query, key] = True
            elif query >= prefix_length:  # target to target
                mask[query, key] = key <= query
    return mask


print("pairs:", int(by_loop(6, 3).sum()))

# %% [markdown]
# ### Without a loop, and the library's line
# In the terms of notebook 01 the prefix is *context* (0) and the target is *one span at the end* (1). There is no need
# for a new mask at all: the one rule of this project makes it. Without a loop the rule is one line; the library's line
# is `attention_mask`. We compare all three for every length up to eight and every prefix.


# %%
def at_once(ids):
    place = torch.arange(len(ids))
    return (ids == 0)[None, :] | ((ids[:, None] == ids) & (place <= place[:, None]))


pairs = [(n, k) for n in range(1, 9) for k in range(n + 1)]
same = 0
for n, k in pairs:
    ids = masks.mode_span_ids("prefix", torch.ones(1, n), k)
    library = attention_mask(ids)[0, 0]
    same += torch.equal(by_loop(n, k), library) and torch.equal(
        at_once(ids[0]), library
    )
print(f"loop, no loop and library agree for {same} of {len(pairs)} masks")

# %%
for name, ids in span_ids.items():
    mask = attention_mask(ids)
    print(f"{name:15} span_ids = {ids[0].tolist()}  pairs: {int(mask.sum())}")

# %% [markdown]
# ## Twenty-four, or thirty-three?
# The chapter prints 36 and 21 for the first two modes, and **33** for the third, where we count 24. Whence the nine?
#
# Its equation (next section) lets a target token know the prefix and the target *before* it, and nearly all of its text
# says the same as our picture. In one sentence it adds that a prefix token "can also attend to all target positions",
# and its code blocks the future in the rows of the target only. This is an easy slip to make: one thinks of the rows
# that write, and the rows of the prefix write nothing. `masks.printed_mask` keeps it, so that it can be studied.

# %%
ids = span_ids["prefix"]
printed = masks.printed_mask(ids)[0, 0]
sound = attention_mask(ids)[0, 0]
print("pairs:", int(printed.sum()), " in the corner:", int((printed & ~sound).sum()))
show("mask", printed, words, modes["prefix"], title="as the chapter's code has it")

# %% [markdown]
# Nine cells in the corner: three prefix tokens see three target tokens. Does it matter? The rows of the target are as
# they should be, and only they are asked for a token. With **one** layer it does not matter. With **two**, a target
# token reads what the prefix has read, and the prefix has read the future:

# %%
reached = receptive_field(printed, layers=2)
title = "the same after two layers: ○ is heard of through others"
show("mask", printed, words, modes["prefix"], reach=reached, title=title)

# %%
for layers in (1, 2, 3):
    for name, mask in (("sound", sound), ("printed", printed)):
        later = receptive_field(mask, layers)[3:].triu(4)  # targets after the query
        print(f"layers: {layers}, {name:7}: targets that hear of later ones: "
              f"{int(later.sum())} pairs")  # fmt: skip

# %% [markdown]
# From the second layer on every target token can know what it is about to be asked for. We come back to it with trained
# models, under *What would break?* Until then the mask is the sound one.
#
# ## Loss on the target alone
# The chapter's objective, for $n$ tokens of which $k$ are prefix:
#
# $$L = -\sum_{t=k+1}^{n} \log p(x_t \mid x_1 \dots x_k, x_{k+1} \dots x_{t-1})$$
#
# The sum begins at $k + 1$: nobody asks for the prefix, which is given in use as well. (It could not be asked for:
# there each token sees the next.) As in every decoder, the output at $l$ speaks of the token at $l + 1$. So the *last
# prefix token* is asked for the first target. **By hand**, `Know|ledge` with four letters of prefix: place 3 (`w`) is
# asked for `l`, place 4 for `e`, …, the last place for nothing. −100 means "nothing" to PyTorch. **As a loop** and
# **without one**:

# %%
characters = data.Characters("Knowledge")
ids, k = characters.encode("Knowledge"), 4
loop = [
    int(ids[place + 1]) if k <= place + 1 < len(ids) else -100
    for place in range(len(ids))
]
line = torch.full_like(ids, -100)
line[k - 1 : -1] = ids[k:]
print("loop   ", loop)
print("at once", line.tolist())

# %% [markdown]
# **The library's line** is `data.split`: rows, the span ids of their masks, and labels.

# %%
batch = data.split(ids[None], torch.tensor([k]))
print("library", batch.labels[0].tolist())
print("equal: ", loop == line.tolist() == batch.labels[0].tolist())
for place, letter in enumerate("Knowledge"):
    label = int(batch.labels[0, place])
    asked = characters.decode([label]) if label != -100 else "·"
    print(f"{letter} (span {int(batch.span_ids[0, place])}) is asked for {asked}")

# %% [markdown]
# ## The model
# A Transformer of the usual kind: embeddings for tokens and places, a few layers of attention and feed-forward, a head.
# All that makes it a prefix LM is the mask, which enters in one line of the attention. Here is that part of the
# library; look for `mask`:

# %%
code = inspect.getsource(model.Attention.forward)
body = code.split('"""')[-1]  # without its docstring
print(textwrap.dedent(body))

# %% [markdown]
# How large is it? The chapter says 670,184 parameters for a vocabulary of 1,000, 128 numbers a token, two layers and
# 128 places. **By hand**, part by part; $h$ is the number of numbers a token, and every linear layer has weights and a
# bias:

# %%
v, h, places, layers = 1000, 128, 128, 2
embeddings = v * h + places * h + 2 * h  # tokens, places, a norm
attention = 4 * (h * h + h)  # query, key, value, out
feed_forward = (h * 4 * h + 4 * h) + (4 * h * h + h)
block = attention + feed_forward + 2 * (2 * h)  # and two norms
head = h * v + v
print("by hand", embeddings + layers * block + head)
print("library", model.parameter_count(model.PrefixLM(v)))

# %% [markdown]
# ## Training
# The chapter's text is five proverbs. It is split into characters, a row is 48 of them from a random place, and each
# row is cut at a random point, so that the model gets used to prefixes of many lengths.

# %%
TEXT, CHARACTERS = experiments.TEXT, experiments.CHARACTERS
print(data.CHAPTER_TEXT)
guess = math.log(len(CHARACTERS.letters))
print(f"\n{len(TEXT)} characters, {len(CHARACTERS.letters)} different ones; "
      f"guessing costs ln {len(CHARACTERS.letters)} = {guess:.4f} nats")  # fmt: skip

# %% [markdown]
# **By hand**, the first five steps: draw rows, cut them, one pass, the loss of the target, one step of AdamW.

# %%
generator = torch.Generator().manual_seed(0)
torch.manual_seed(0)
small = model.PrefixLM(len(CHARACTERS.letters), hidden=64).train()
optimizer = torch.optim.AdamW(small.parameters(), lr=1e-3)
by_hand = []
for _ in range(5):
    rows = data.windows(TEXT, 8, 48, generator)
    batch = data.split(rows, data.random_splits(8, 48, generator))
    scores = small(batch.input_ids, batch.span_ids)
    loss = cross_entropy(scores.transpose(1, 2), batch.labels)  # -100 is left out
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    by_hand.append(loss.item())

# %% [markdown]
# **The library's line** does the same, 500 times as in the chapter. Its first five losses must be ours.

# %%
learnt, losses = experiments.learn_chapter("prefix", 0, 500)
print("by hand", [round(value, 4) for value in by_hand])
print("library", [round(value, 4) for value in losses[:5]])
last = sum(losses[-20:]) / 20
print(f"{model.parameter_count(learnt):,} parameters; mean of the last 20 losses "
      f"{last:.3f}, a fall of {1 - last / losses[0]:.1%}")  # fmt: skip

# %%
curves = {"prefix LM": losses, "guessing": [guess] * len(losses)}
show("losses", curves, title="500 steps on five proverbs")

# %% [markdown]
# The loss begins a little above that of guessing and falls by far more than 85 %; the chapter reports 88.9 %. Mind what
# that means. The text has about two hundred characters, and every one of them has been trained on. This model has
# *learnt five proverbs by heart*. It is a fine way to see the parts at work; it says nothing about new text.
#
# ## Where in the target is it sure?
# The chapter measures the loss by place in the target, and expects the first places to be the easiest, because they
# have the prefix right before them. We measure it over all prefixes of 14 to 33 characters (those it was trained with)
# and many starting points. Beside it the same model trained *causally* on the same targets, with the same seed.

# %%
twin, _ = experiments.learn_chapter("causal", 0, 500)
ROWS = experiments.ASKED  # stretches of 48 characters, from every fourth place


def by_place(who, cut):
    found = []
    for k in range(14, 34):
        lengths = torch.full((len(ROWS),), k)
        losses = training.token_losses(who, cut(ROWS, lengths))
        found.append(losses.mean(dim=0)[k - 1 : k + 13])
    return torch.stack(found).mean(dim=0).tolist()


# %%
both = {
    "prefix": by_place(learnt, data.split),
    "causal": by_place(twin, data.causal_split),
}
for name, values in both.items():
    print(f"{name}: first {values[0]:.2f}, 2nd to 5th {sum(values[1:5]) / 4:.2f}, "
          f"10th to 14th {sum(values[9:]) / 5:.2f}")  # fmt: skip

# %%
figure = ml.viz.palette.card(6.4, 3.2)
axes = figure.add_subplot()
for (name, values), style in zip(both.items(), LINES[:2], strict=True):
    axes.plot(range(1, 15), values, label=name, **style)
axes.set_xlabel("place in the target")
axes.set_ylabel("loss (nats)")
axes.legend()
lines = [f"{name}: {[round(v, 2) for v in values]}" for name, values in both.items()]
Picture(figure, "loss (nats) by place in the target, from 1\n" + "\n".join(lines))

# %% [markdown]
# In both models the first place is the hardest, and it gets easier from there: the opposite of what the chapter
# expects. A guess at the reason: in a text that is known by heart every further character tells better where one is.
#
# And the prefix that is read in both directions does not help here; the causal twin's line is the lower one. One seed
# proves nothing; `magnet-lab reproduce prefixlm-text` asks the same of five. One thing is certain, though. The first
# target is read from a *prefix* token's output, and how often is such an output asked for anything?

# %%
generator = torch.Generator().manual_seed(0)
lengths = data.random_splits(1000, 48, generator)
rows = data.windows(TEXT, 1000, 48, generator)
asked = data.split(rows, lengths).labels != -100
from_prefix = asked & (torch.arange(48) == lengths[:, None] - 1)
print(f"labels read from a prefix token: {from_prefix.sum() / asked.sum():.1%}")

# %% [markdown]
# So the first target is the place that was practised least.
#
# ## It writes
# Generation is a loop: the likeliest next character is taken and put behind the text. The prefix stays what it is, and
# what is written joins the target. The first three prompts are the chapter's; they are shorter than any prefix that was
# trained with. The last one is not.

# %%
for prompt in experiments.PREFIXES:
    print(repr(experiments.go_on(learnt, prompt)))

# %% [markdown]
# Is the length of the prompt to blame? Four examples cannot tell, so we count: how many of the next 15 characters are
# written right, from forty-three starting points, for prefixes of several lengths?

# %%
for k in (5, 9, 14, 19, 24, 29, 33):
    share = experiments.written_right(learnt, ROWS[:, : k + 15], k)
    print(f"prefix of {k:2}: {share:6.1%} right {'█' * round(40 * share)}"
          f"{'' if k >= 14 else '  (never trained with)'}")  # fmt: skip

# %% [markdown]
# Yes. Below the lengths of the training hardly anything is right, and the shortest that was trained stands in between.
# A model does what it was asked to do: who wants short prompts has to draw short prefixes.
#
# ## What it looks at
# The weights of the first head in the first layer, on one of its rows, with 14 characters of prefix. A weight is drawn
# from dark to light; grey is what the mask blocks.

# %%
row, k = ROWS[:1, :24], 14
ids = masks.mode_span_ids("prefix", torch.ones_like(row), k)
with torch.no_grad():
    weights = learnt.read(row, ids)[1]  # a tensor a layer: (1, heads, query, key)
letters = [CHARACTERS.decode([i]) for i in row[0]]
seen = attention_mask(ids)[0, 0]
content = (weights[0][0, 0], seen, letters, ids[0].tolist())
show("attention", *content, title="layer 1, head 1")

# %% [markdown]
# The L of the mask is plain to see: light and dark in the left block and in the triangle, grey in the corner above and
# right of them. One head of one row is an anecdote. The chapter reads two things out of such a picture: a prefix token
# spreads its attention broadly, and a target token looks "heavily" at the prefix. Both can be counted, over all heads
# and rows. *Evenness* is 1 where all that is seen gets the same weight. The share of the prefix is set beside what it
# would be if all that is seen got the same.

# %%
for layer in (1, 2):
    print(f"layer {layer}")
    for name, value in experiments.attention(layer, 0, 500, "prefix").items():
        print(f"  {name:30} {value:.2f}")

# %% [markdown]
# The first claim can be seen: in both layers the prefix tokens' weights are somewhat more even. The second cannot: a
# target token gives the prefix *less* than its share, and more to the target so far. A guess at the reason: in a text
# known by heart the last few characters tell what comes next.
#
# ## What would break?
# Back to the corner of nine cells. On the proverbs one could not tell a leak from a good memory: all of them can be
# learnt by heart, with or without peeping. To see it we need rows of which *nothing* can be known: eight letters, drawn
# evenly, fresh ones in every batch. The best that any honest model can do is to guess, $\ln 8$ nats. Whoever does
# better has seen the answer.
#
# Three models: the sound mask; the chapter's printed mask; the printed mask with a single layer. Rows are cut as in the
# chapter's loop, so that no row of the prefix is asked for anything.

# %%
LETTERS, LENGTH, HALF = 8, 12, 6


def learn(rule, layers):
    make = partial(model.PrefixLM, LETTERS, 64, layers=layers, rule=rule)

    def draw(generator):
        rows = data.random_rows(16, LENGTH, LETTERS, generator)
        return data.printed_split(rows, data.random_splits(16, LENGTH, generator))

    return training.fit(make, draw, 300, seed=0, lr=3e-3)


# %%
learners = {
    "sound, 2 layers": learn(attention_mask, 2),
    "printed, 2 layers": learn(masks.printed_mask, 2),
    "printed, 1 layer": learn(masks.printed_mask, 1),
}
curves = {name: losses for name, (_, losses) in learners.items()}
show("losses", curves, title="random letters: guessing costs 2.08 nats")

# %% [markdown]
# Only one of the three gets below the line of guessing. Nobody has taught it anything: there is nothing to be taught.
# What looks like success is the corner of nine cells, two layers deep; with one layer the same mask stays where it
# should. Now let them write. In training's pass all of a row is there; in writing nothing stands after the place that
# is asked.

# %%
fresh = data.random_rows(256, LENGTH, LETTERS, torch.Generator().manual_seed(1))
lengths = torch.full((len(fresh),), HALF)
test = data.printed_split(fresh, lengths)


def right_in_pass(who):
    with torch.no_grad():
        best = who(test.input_ids, test.span_ids).argmax(dim=-1)
    return float((best == test.labels)[test.labels != -100].float().mean())


def right_in_writing(who):
    best = [
        training.next_scores(who, fresh[:, :place], HALF).argmax(dim=-1)
        for place in range(HALF, LENGTH)
    ]
    return float((torch.stack(best, dim=1) == fresh[:, HALF:]).float().mean())


# %%
print(f"guessing: loss {math.log(LETTERS):.2f}, right {1 / LETTERS:.0%}")
for name, (who, _) in learners.items():
    in_pass = float(training.token_losses(who, test).nanmean())
    with torch.no_grad():
        in_writing = float(training.losses_in_writing(who, fresh, HALF).mean())
    print(f"{name:18} in training's pass: loss {in_pass:.2f}, {right_in_pass(who):4.0%} right"
          f"   in writing: loss {in_writing:.2f}, {right_in_writing(who):4.0%} right")  # fmt: skip

# %% [markdown]
# This is the signature of a leak: far better than possible in training, *worse than a guess* in use. The model has
# learnt to look up the answer, and when it writes there is none. With the sound mask both columns are the same, and
# both are honest.
#
# There is a second price. If the prefix sees the target, all that the prefix has computed changes with every character
# that is written, and has to be computed anew. If it does not, keys and values of the prefix can be kept. We exchange
# the target behind one and the same prefix, in an untrained model, and see how far the prefix's states move:

# %%
for name, rule in (("sound", attention_mask), ("printed", masks.printed_mask)):
    print(f"{name:8} prefix states move by {experiments.moved(rule):.4f}")

# %% [markdown]
# ## One stack or two?
# The other way to build a prefix LM is an **encoder-decoder** (T5): an encoder reads the prefix in both directions; a
# decoder writes, and in every layer looks at the encoder's last states by *cross-attention*.
#
# | | decoder only | encoder-decoder |
# | --- | --- | --- |
# | who keeps prefix and target apart | the mask | two stacks of layers |
# | a target token reads of the prefix | each layer that layer's states | in every layer the encoder's last states |
# | weights for reading and writing | the same | different ones |
# | the prefix, while it writes | kept, if the mask is sound | kept |
#
# Parameters, with the chapter's sizes (128 numbers a token, a vocabulary of 1,000):

# %%
for name, made in {
    "decoder only, 2 layers": model.PrefixLM(1000),
    "encoder-decoder, 2 + 2 layers": model.EncoderDecoder(1000),
    "encoder-decoder, 1 + 1 layers": model.EncoderDecoder(1000, layers=1),
}.items():
    print(f"{name:30} {model.parameter_count(made):>9,}")

# %% [markdown]
# With as many layers in each half it is far larger: a second stack, and cross-attention in every decoder layer. With as
# many layers in all, only the cross-attention comes on top. Which one writes better is a question for a measurement and
# not for a table: `magnet-lab reproduce prefixlm-sorting` trains them to put letters in order, several seeds each.
#
# Both must obey the same rule. We exchange a row's last token and look at the scores of all places before it:

# %%
row = fresh[:1]
other = row.clone()
other[0, -1] = (row[0, -1] + 1) % LETTERS
ids = masks.mode_span_ids("prefix", torch.ones_like(row), HALF)
for kind in (model.PrefixLM, model.EncoderDecoder):
    made = kind(LETTERS, 64).eval()
    with torch.no_grad():
        moved = (made(row, ids) - made(other, ids))[0, HALF - 1 : -1].abs().max()
    print(f"{kind.__name__:15} scores before the last place move by {float(moved):.4f}")

# %% [markdown]
# ## Three modes in one batch
# UniLM trains one model in all three modes. Since a mode is nothing but span ids, a batch can hold all of them, and one
# pass serves them. A `▢` is a character that was hidden; it is asked for one place before it, as in notebook 02, so
# that an output means the same thing in every mode.

# %%
generator = torch.Generator().manual_seed(0)
rows = data.windows(TEXT, 3, 20, generator)
lengths = data.random_splits(3, 20, generator)
batch = data.in_all_modes(rows, lengths, CHARACTERS, generator)
for name, ids, spans, labels in zip(masks.MODES, *vars(batch).values(), strict=True):
    text = CHARACTERS.decode(ids).replace("\n", "⏎")
    print(f"{name:15} {text}  {int((labels != -100).sum())} labels")
    print(" " * 15, "".join(map(str, spans.tolist())), " span ids")

# %% [markdown]
# `magnet-lab reproduce prefixlm-modes` compares such a model with three specialists. Everything of this notebook with
# five seeds and intervals: `magnet-lab reproduce prefixlm-text prefixlm-lengths prefixlm-attention prefixlm-leak`.
#
# ## Turn it yourself
# Move the start of the span: what stands before it is the prefix. Then tick *break the rule*, which is the printed
# mask, and turn the number of layers to 2.

# %% tags=["interactive"]
from magnet_lab import widgets

widgets.mask_explorer(words, mode="prefix", span=(3, 5))

# %% [markdown]
# ## Exercises
# ### 1 · The mask from places alone (●○○, 5 minutes)
# Write the mask without span ids and without a loop: `(length, length)` booleans, True where the query (row) may look
# at the key (column). `prefix_length` may be 0 or `length`. What are the masks in these two cases?
#
# <details><summary>Hint</summary>
#
# Of our four regions, three are "the key is in the prefix" or "the key is not after the query". `|` joins two tables.
#
# </details>


# %%
def prefix_mask(length, prefix_length):
    ### BEGIN SOLUTION
    place = torch.arange(length)
    return (place < prefix_length)[None, :] | (place[None, :] <= place[:, None])
    ### END SOLUTION


# %%
check.prefix_mask(prefix_mask)

# %% [markdown]
# <details><summary>Wait: is this not the printed mask?</summary>
#
# It is not. A prefix token sees keys that are in the prefix or not after itself, and those are in the prefix as well.
# The printed mask asks "is the *query* in the prefix?" where it should ask "is the *key*?".
#
# </details>
#
# ### 2 · Labels for a batch (●●○, 10 minutes)
# Every row has a prefix of its own length. Write the labels: at $l$ the token at $l + 1$ where that is a target, else
# −100. `input_ids` is `(batch, length)`, `prefix_lengths` is `(batch,)`; no loop is needed.
#
# <details><summary>Hint</summary>
#
# `torch.arange(length)` against `prefix_lengths[:, None]` says of each place whether it is a target. Then move one to
# the left.
#
# </details>


# %%
def prefix_labels(input_ids, prefix_lengths):
    ### BEGIN SOLUTION
    target = torch.arange(input_ids.shape[1]) >= prefix_lengths[:, None]
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = torch.where(target[:, 1:], input_ids[:, 1:], -100)
    return labels
    ### END SOLUTION


# %%
check.prefix_labels(prefix_labels)

# %% [markdown]
# ### 3 · What reaches whom (●●○, 10 minutes)
# Write `reach(mask, layers)`: what can influence a query after so many layers? `mask` is `(length, length)` booleans.
# One of the cases of the check is the printed mask. (If you have done it in notebook 01, do it again without looking.)
#
# <details><summary>Hint</summary>
#
# Two layers: `mask @ mask`, with numbers in place of booleans, is above 0 where there is a path through a third token.
#
# </details>


# %%
def reach(mask, layers):
    ### BEGIN SOLUTION
    reached = mask
    for _ in range(layers - 1):
        reached = (reached.float() @ mask.float()) > 0
    return reached
    ### END SOLUTION


# %%
check.reach(reach)

# %% [markdown]
# ### 4 · Count without drawing (●●○, 10 minutes)
# A reviewer wants to check masks of 4,096 tokens by their number of pairs. Write it as a formula of $n$ and $k$,
# without a tensor: first for the sound mask, then for the printed one. Return both.
#
# <details><summary>Hint</summary>
#
# Begin with the causal mask, $n(n + 1) / 2$. The prefix adds the upper half of its square, without the diagonal. The
# printed mask adds a rectangle more.
#
# </details>


# %%
def count_pairs(n, k):
    ### BEGIN SOLUTION
    sound = n * (n + 1) // 2 + k * (k - 1) // 2
    return sound, sound + k * (n - k)
    ### END SOLUTION


# %%
try:
    wrong = []
    for n, k in pairs:
        ids = masks.mode_span_ids("prefix", torch.ones(1, n), k)
        counted = int(attention_mask(ids).sum()), int(masks.printed_mask(ids).sum())
        if tuple(count_pairs(n, k)) != counted:
            wrong.append(
                f"n = {n}, k = {k}: counted {counted}, yours {count_pairs(n, k)}"
            )
    print(wrong[0] if wrong else "right for all of them; 4,096 tokens, half of them "
          f"prefix: {count_pairs(4096, 2048)}")  # fmt: skip
except NotImplementedError:
    print("count_pairs is yours to write")

# %% [markdown]
# ## Summary
# - A prefix LM is one span at the end: the prefix is context, the target is causal. 24 pairs for six tokens and three
#   of prefix.
# - The loss is on the target alone; its first token is asked of the prefix's last one.
# - The prefix must not see the target. If it does, one layer hides it, and two layers leak: a splendid loss, and a
#   model that is worse than a guess when it writes.
# - What a small text teaches is that text. Count, over many places and heads, before you believe what one picture says.
# - An encoder-decoder does by two stacks what the mask does in one, for more parameters.
#
# ## Do you know now?
# 1. Six tokens, a prefix of five: how many pairs?
# 2. Why is the prefix itself never asked for?
# 3. A colleague's prefix LM has one layer and the printed mask. Does it leak? In which case would the answer be
#    another?
# 4. Your loss on fresh random letters is far below $\ln 8$. What do you know?
# 5. Why can keys and values of the prefix be kept under the sound mask, and not under the printed one?
# 6. How does MAGNET's infilling differ from a prefix LM, in span ids?
#
# <details><summary>Answers</summary>
#
# 1. 5 · 5 + 6 = 31.
# 2. In it each token sees the next one, so the answer would be there to copy; and in use it is given.
# 3. Not as long as only rows of the target are asked. If the first target is asked of the last *prefix* token, that row
#    sees it directly, even with one layer.
# 4. That the answer is seen through the mask: nothing else can be known about such letters.
# 5. Under the sound mask the prefix's states depend on the prefix alone. Under the other they change with the target.
# 6. The span stands in the middle, and there may be several: 0 0 1 1 0 2 2 0 in place of 0 0 0 1 1 1.
#
# </details>
#
# **Go on** with 12, pseudo-masks: several ways to fill the same text, in one pass. **In the app**: the page *Masks*,
# with the mask *prefix*; *Break the rule* there is the corner of this notebook (`magnet-lab app`).
