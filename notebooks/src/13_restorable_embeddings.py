# %% [markdown]
# # 13 · Restorable embeddings
#
# **How much of a sentence fits into one vector, and how must a decoder look at it to get the sentence back?**
#
# - **You will** make one vector of a sentence in two ways; see why cross attention to a single vector gives the same
#   answer to every question; build the gating layer by hand, with its running sum; train four small models that restore
#   short sentences; measure what came back with a ROUGE of your own; and damage a vector to see what it held.
# - **You need** notebook 00, and to have met attention. Notebook 03 helps.
# - **Time**: 35 minutes to read, 70 with the exercises; runs in under a minute on two cores.
#
# The source is *RE: A Study for Restorable Embeddings* (anonymous submission): Sections 3 and 4. The models here are small and
# trained on the spot.

# %%
# In Colab, once: %pip install -q magnet-lab
import math
from collections import Counter
from itertools import pairwise

import torch

from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.data.rows import Corpus, texts
from magnet_lab.relatives.restorable import training
from magnet_lab.relatives.restorable.decoders import READERS, Decoder, Gating
from magnet_lab.relatives.restorable.encoder import Encoder
from magnet_lab.relatives.restorable.layers import Shape, Words
from magnet_lab.relatives.restorable.metrics import rouge, rouge_l, rouge_n
from magnet_lab.relatives.restorable.texts import (
    make_tokenizer,
    passages,
    tokenized,
)
from magnet_lab.viz import palette
from magnet_lab.viz.picture import Picture

start(None)

# %% [markdown]
# ## The picture
# An **encoder** reads a sentence in both directions and gives every token a state, a row of numbers. Then all rows become
# **one**, called $e_{repr}$. A **decoder** has to write the sentence again from this one row. What is not in it is lost.

# %%
VOCABULARY = 400
train_stories = list(texts(Corpus(["plain-stories.txt"])))
held_out_stories = list(texts(Corpus(["plain-stories-held-out.txt"])))
tokenizer = make_tokenizer(train_stories, VOCABULARY)


def short_sentences(stories):
    """Sentences of 4 to 9 tokens, all in the vocabulary, each once."""
    rows = {one: tokenizer.encode(one) for one in passages(stories, 1)}
    unknown = tokenizer.unk_token_id
    return [
        one for one, row in rows.items() if 4 <= len(row) <= 9 and unknown not in row
    ]


seen = short_sentences(train_stories)
new = [one for one in short_sentences(held_out_stories) if one not in set(seen)]
train, test = tokenized(tokenizer, seen), tokenized(tokenizer, new)
print(len(train), "sentences to train on and", len(test), "new ones, such as:")
print(*test.texts[:3], sep="\n")

# %%
shape = Shape(vocabulary=VOCABULARY)
torch.manual_seed(0)
encoder = Encoder(shape, Words(shape))
input_ids, tokens = test.rows([0])
with torch.no_grad():
    states = encoder.states(input_ids, tokens)
    vector = encoder(input_ids, tokens)


# %%
def heat(rows, names, title, unit="value", height=0.26):
    """Rows of numbers as a picture; in text their shape and sizes."""
    figure = palette.card(7.4, 1.3 + height * len(rows))
    axes = figure.add_subplot()
    most = float(rows.abs().max())
    drawn = axes.imshow(
        rows, cmap=palette.WEIGHTS, vmin=-most, vmax=most, aspect="auto"
    )
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_xlabel("element")
    axes.set_title(title)
    figure.colorbar(drawn, label=unit)
    lines = [
        f"{name:>9} {row.norm():8.2f}" for name, row in zip(names, rows, strict=True)
    ]
    return Picture(figure, f"{title}\n{'':9} length of the row\n" + "\n".join(lines))


# %%
names = tokenizer.convert_ids_to_tokens(input_ids[0].tolist())
rows = torch.cat([states[0], vector])[:, :48]
heat(
    rows, [*names, "e_repr"], "States of the tokens, and one vector (48 elements of 96)"
)

# %% [markdown]
# ## One vector for a sentence
# **Classification token** (Equation 1): put a token `[CLS]` before the sentence and take its state; all that it knows of the
# others it must fetch by attention. **Mean pooling** (Equation 2): add up the states of all $T$ tokens and divide by $\sqrt T$:
#
# $$e_{repr} = W \left(\sum_{i=1}^{T} h(x_i) \,/ \sqrt T\right)$$
#
# By hand, with states of two numbers for three tokens:

# %%
h = torch.tensor([[1.0, 2.0], [3.0, -1.0], [2.0, 2.0]])
print("sum      ", [1 + 3 + 2, 2 - 1 + 2])
print("pooled   ", [round(6 / math.sqrt(3), 3), round(3 / math.sqrt(3), 3)])

# %% [markdown]
# As a loop over the sentences of a batch, and without a loop. In a batch short sentences are padded, so $T$ is not the width:
# padding must neither be added nor counted.


# %%
def pooled_by_loop(states, tokens):
    found = []
    for state, token in zip(states, tokens, strict=True):
        own = [row for row, real in zip(state, token, strict=True) if real]
        found.append(sum(own) / math.sqrt(len(own)))
    return torch.stack(found)


def pooled(states, tokens):
    total = (states * tokens[:, :, None]).sum(dim=1)
    return total / tokens.sum(dim=1, keepdim=True).sqrt()


# %%
input_ids, tokens = test.rows(range(20))
with torch.no_grad():
    states = encoder.states(input_ids, tokens)
    loop, at_once = pooled_by_loop(states, tokens), pooled(states, tokens)
    library = encoder(input_ids, tokens)
    print("lengths:", tokens.sum(dim=1).tolist())
    print("equal:", torch.allclose(loop, at_once, atol=1e-5))
    print("equal:", torch.allclose(encoder.project(loop), library, atol=1e-4))

# %% [markdown]
# Why the root? It is called mean pooling, and is no mean. Take states that are independent of each other and see how long the
# vector is, by each of three divisors:

# %%
dice = torch.Generator().manual_seed(0)
print("tokens       sum   sum / √T   sum / T")
for count in (1, 4, 16, 64):
    states = torch.randn(200, count, 96, generator=dice) / 96**0.5
    total = states.sum(dim=1).norm(dim=-1).mean()
    print(f"{count:6} {total:9.2f} {total / count**0.5:10.2f} {total / count:9.2f}")

# %% [markdown]
# The sum grows with the sentence, the mean fades away, and with the root the vector keeps its size. A decoder that gets
# vectors of one size has one thing less to learn.
#
# ## Four ways to look at a vector
# The decoder writes from left to right; at each position it has a *query* $q_i$, what it knows so far. How does it come to see
# $e_{repr}$ (Figure 2)?
#
# | decoder | how |
# | --- | --- |
# | **input** | $e_{repr}$ stands where the first token would, and is seen through self-attention |
# | **cross** | every layer has a cross attention, whose memory is this one vector |
# | **product** | Equation 3 as printed: $q_i + c \cdot e_{repr}$ with $c = q_i \cdot e_{repr}$; no softmax |
# | **gating** | every layer takes from it, element by element, what the text so far asks for |
#
# Cross attention first. A softmax shares out the weight 1 among the keys. With a *single* key there is nothing to share out:

# %%
for score in (-3.0, 0.0, 8.0):
    print(f"score {score:4}: weight", torch.tensor([score]).softmax(dim=0).tolist())

# %% [markdown]
# Whatever the query asks, the answer is the same vector. Now three readers with random weights, 12 random queries and one
# vector. A row of the picture is what one position gets out of it.

# %%
torch.manual_seed(1)
queries, one_vector = torch.randn(1, 12, 96), torch.randn(1, 96)
got = {}
with torch.no_grad():
    for name in ("cross", "product", "gating"):
        got[name] = READERS[name](shape)(queries, one_vector)[0]
figure = palette.card(7.4, 3.0)
for axes, (name, rows) in zip(figure.subplots(1, 3), got.items(), strict=True):
    axes.imshow(rows[:, :32] / rows.abs().max(), cmap=palette.WEIGHTS, aspect="auto")
    axes.set_title(name)
    axes.set_xlabel("element")
figure.axes[0].set_ylabel("position")
ranks = {
    name: int(torch.linalg.matrix_rank(rows, rtol=1e-4)) for name, rows in got.items()
}
Picture(figure, f"directions in which the answers differ: {ranks}")

# %%
for name, rank in ranks.items():
    print(f"{name:8} 12 queries get answers in {rank} independent directions")

# %% [markdown]
# **cross**: one answer for all. **product**: the query chooses *how much*, a factor in each of the 4 heads, and not *which
# elements*. **gating**: every query gets an answer of its own.
#
# ## The gating layer
# Three steps (Equations 4 and 5):
#
# $$\tilde q_i = q_i W_1 \qquad
# \bar q_i = \sum_{j=1}^{i} \tilde q_j \,/ \sqrt i \qquad
# \check q_i = \big(\text{Act}([\bar q_i; e_{repr}] W_2) \odot e_{repr}\big) W_3$$
#
# ### The running sum
# To know what is *still* wanted, a position must know what all positions up to it have asked for: a sum of the past, which
# does not see the future. **By hand**, with queries of one number, 1, 1, 4:

# %%
print([1 / math.sqrt(1), round((1 + 1) / math.sqrt(2), 3), round(6 / math.sqrt(3), 3)])


# %%
def running_by_loop(queries):
    found, total = [], 0
    for i, query in enumerate(queries, start=1):
        total = total + query
        found.append(total / math.sqrt(i))
    return torch.stack(found)


def running_at_once(queries):  # (length, width), one sentence
    count = torch.arange(1, len(queries) + 1)
    return queries.cumsum(dim=0) / count[:, None].sqrt()


numbers = torch.tensor([[1.0], [1.0], [4.0]])
print(running_by_loop(numbers)[:, 0], running_at_once(numbers)[:, 0])
loop, at_once = running_by_loop(queries[0]), running_at_once(queries[0])
print("equal:", torch.allclose(loop, at_once, atol=1e-5))

# %% [markdown]
# (The paper's text says "divided by $i$", its equation $\sqrt i$. We follow the equation.)
#
# ### The gate
# The activation is the *gated ReLU*: split its input into two halves $a$ and $b$, and take $\text{relu}(a) \odot b$. The half $a$ opens
# or shuts, the half $b$ says how much. (The paper prints $W_2$ with $d_{repr}$ columns; two halves need twice as many.) **By
# hand**: vectors of two numbers, $W_1$ and $W_3$ that change nothing, and a $W_2$ that makes
#
# $$a = (\bar q_1 - \bar q_2,\ \bar q_2) \qquad b = e_{repr}$$

# %%
e = [2.0, -1.0]
by_hand = []
for i, (s1, s2) in enumerate([(1, 0), (2, 2), (2, 3)], start=1):  # sums of queries
    q1, q2 = s1 / math.sqrt(i), s2 / math.sqrt(i)
    gate = [max(0, q1 - q2), max(0, q2)]
    by_hand.append([g * b * x for g, b, x in zip(gate, e, e, strict=True)])
    print(f"position {i}: gate {gate[0]:.3f} {gate[1]:.3f}  takes", by_hand[-1])

# %% [markdown]
# At the first position the gate of the first element is open, and the second shut. Then the other way about: the query has
# chosen *which* elements come. **The library's line** is a module, `Gating`; we put our matrices in (as `nn.Linear` has them:
# a row for every output).

# %%
layer = Gating(Shape(d_model=2, d_repr=2))
halves = torch.tensor([[1.0, -1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
with torch.no_grad():
    for linear, weight in (
        (layer.w1, torch.eye(2)),
        (layer.w2, halves),
        (layer.w3, torch.eye(2)),
    ):
        linear.weight.copy_(weight)
    asked = torch.tensor([[[1.0, 0], [1, 2], [0, 1]]])
    library = layer(asked, torch.tensor([e]))
print(library[0])
print("equal:", torch.allclose(library[0], torch.tensor(by_hand)))

# %% [markdown]
# Another gift: nothing here needs $d_{repr}$ to be $d_{model}$. The vector may be wider than the decoder, and hold more.

# %%
wide = Gating(Shape(d_model=96, d_repr=500))
print("500 elements, read at a width of 96:", wide(queries, torch.randn(1, 500)).shape)
try:
    Decoder("cross", Shape(d_repr=500), Words(shape))
except ValueError as error:
    print(error)

# %% [markdown]
# ## How much came back? ROUGE by hand
# ROUGE counts what two texts share: single words (ROUGE-1), pairs of neighbours (ROUGE-2), or the longest row of words that
# stands in both in the same order, gaps allowed (ROUGE-L). Of the share in the one and the share in the other it takes the
# harmonic mean, 2 · shared / (words here + words there).

# %%
original, restored = "the dog ran to the red house", "the red dog ran home"
words, others = original.split(), restored.split()
shared = Counter(words) & Counter(others)
pairs = Counter(pairwise(words)) & Counter(pairwise(others))
print("shared words:", dict(shared))
print("shared pairs:", dict(pairs))
one = 100 * 2 * shared.total() / (7 + 5)
two = 100 * 2 * pairs.total() / (6 + 4)
print(f"ROUGE-1 {one:.2f}  library {rouge_n(original, restored, 1):.2f}")
print(f"ROUGE-2 {two:.2f}  library {rouge_n(original, restored, 2):.2f}")


# %%
def longest(words, others):
    """Words of the longest common row, gaps allowed; slow, and hard to misread."""
    if not words or not others:
        return 0
    if words[0] == others[0]:
        return 1 + longest(words[1:], others[1:])
    return max(longest(words[1:], others), longest(words, others[1:]))


common = longest(words, others)
print("longest common row:", common, "words (the dog ran)")
print(
    f"ROUGE-L {200 * common / (7 + 5):.2f}  library {rouge_l(original, restored):.2f}"
)

# %% [markdown]
# Four of the five restored words are right, and ROUGE-1 likes it. But `red` went to the dog: ROUGE-L, and still more ROUGE-2,
# see that words are not in their places.
#
# ## Training
# Four encoders with their decoders, the encoders from the same first weights, each pair trained for the same few hundred steps to write the
# sentence that it was given (Equation 6). Then they restore sentences that none of them has seen, by beam search.

# %%
STEPS = 500
end = tokenizer.eos_token_id


def restorer(kind, pooling, seed=0):
    torch.manual_seed(seed)
    encoder = Encoder(shape, Words(shape), pooling=pooling)
    decoder = Decoder(kind, shape, encoder.words)
    encode = lambda places: encoder(*train.rows(places))  # noqa: E731
    options = dict(steps=STEPS, batch=16, lr=3e-3, seed=seed)
    training.train_to_restore([encoder], encode, decoder, train, end, **options)
    return encoder, decoder


def tested(encoder, decoder):
    encode = lambda places: encoder(*test.rows(places))  # noqa: E731
    return training.measure(encode, decoder, test, tokenizer)


# %%
kinds = [("input", "mean"), ("cross", "mean"), ("gating", "mean")]
kinds += [("gating", "classification")]
models = {kind: restorer(*kind) for kind in kinds}
results = {kind: tested(*pair) for kind, pair in models.items()}

# %%
print(f"{'decoder':8} {'pooling':15} {'PPL':>6} {'R-1':>6} {'R-2':>6} {'R-L':>6}")
for (kind, pooling), (figures, _) in results.items():
    cells = " ".join(f"{value:6.1f}" for value in figures.values())
    print(f"{kind:8} {pooling:15} {cells}")

# %%
for number in range(0, len(test), len(test) // 6):
    print(test.texts[number])
    for (kind, pooling), (_, written) in results.items():
        print(f"    {kind:7} {pooling:15} {written[number]}")

# %% [markdown]
# Four things to read out of the table and the texts:
#
# - Of the three decoders with mean pooling, gating restores best and input worst, in each of the three ROUGEs; the paper's
#   Table 2 has the same order.
# - The gating decoder with a classification token falls far behind the same decoder with mean pooling. One state has to collect
#   in a few steps of attention what a sum gets for nothing. (How much a longer training would mend is not shown here.)
# - R-2 lies far below R-1 everywhere: words come back earlier than their order.
# - What is wrong is seldom gibberish. Words run in circles, or others are put in that were not there and might have been.
#
# This is one seed and a few seconds of training. Three seeds, with intervals: `magnet-lab reproduce re-table2`.
#
# ## What is in the vector?
# Is it the vector that speaks, or only a decoder that knows what such sentences are like? Three tests with the gating decoder:
# noise of growing size on the vector; a vector of zeros; and the vector of *another* sentence.

# %%
encoder, decoder = models["gating", "mean"]
input_ids, tokens = test.rows(range(len(test)))
with torch.no_grad():
    vectors = encoder(input_ids, tokens)


def written_from(vectors):
    longest = tokens.shape[1] + 8
    ids = training.restore(decoder, vectors, end, longest)
    return tokenizer.batch_decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


def score(vectors, originals=test.texts):
    return rouge(originals, written_from(vectors))["R-L"]


# %%
noise = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))
size = vectors.std()
print("noise     ROUGE-L")
for amount in (0, 0.25, 0.5, 1, 2):
    print(f"{amount:5} {score(vectors + amount * size * noise):11.1f}")
print(f"zeros {score(0 * vectors):11.1f}  which says: {written_from(0 * vectors[:1])}")

# %% [markdown]
# (Noise of 1 is as large as the vector's own numbers.) The less of the vector is left, the less comes back, and from zeros nothing
# does. And from the vector of another sentence?

# %%
others = vectors.roll(1, dims=0)  # everyone gets the vector of the one before
before = [test.texts[-1], *test.texts[:-1]]
print(f"against its own sentence   {score(others):5.1f}")
print(f"against the vector's       {score(others, before):5.1f}")

# %% [markdown]
# The decoder writes what the *vector* says.
#
# ### Long sentences
# A vector has a fixed width, a sentence has not. The same restored sentences, by length:

# %%
lengths = test.tokens.sum(dim=1).tolist()
print(
    "tokens  sentences   "
    + "".join(f"{kind:>10}" for kind, _ in kinds[:3])
    + "  (ROUGE-L)"
)
for low, high in ((4, 7), (8, 8), (9, 9)):
    there = [n for n, length in enumerate(lengths) if low <= length <= high]
    cells = ""
    for kind in kinds[:3]:
        found = [rouge_l(test.texts[n], results[kind][1][n]) for n in there]
        cells += f"{sum(found) / len(found):10.1f}"
    print(f"{low}-{high} {len(there):12}    {cells}")

# %% [markdown]
# Look at the columns of cross and gating: the longest sentences come back worse than the shortest. The range is small here; passages
# of 1, 3 and 5 sentences (the paper's Table 3) are what `magnet-lab reproduce re-table3` compares.
#
# ## The gate at work
# Which elements does each position let through? We look at the gate, $\text{relu}(a)$, while the model restores a sentence. Dark: shut.


# %%
def watched(text, kind="gating"):
    """What enters and leaves the reader of the vector while the true text is written."""
    encoder, decoder = models[kind, "mean"]
    own = tokenized(tokenizer, [text]).rows([0])
    reader, seen = decoder.layers[0].reader, {}
    hooks = [reader.register_forward_hook(lambda m, x, y: seen.update(answers=y[0]))]
    if kind == "gating":
        keep = lambda m, x, y: seen.update(gate=y[0].chunk(2, -1)[0].relu())  # noqa: E731
        hooks.append(reader.w2.register_forward_hook(keep))
    with torch.no_grad():
        decoder(encoder(*own), *own)
    for hook in hooks:
        hook.remove()
    return seen


# %%
def gate_picture(text):
    gate = watched(text)["gate"]
    next_words = tokenizer.convert_ids_to_tokens(tokenizer.encode(text)) + ["(end)"]
    names = [f"→ {word}" for word in next_words]
    figure = palette.card(7.4, 1.3 + 0.26 * len(gate))
    axes = figure.add_subplot()
    drawn = axes.imshow(gate[:, :64], cmap=palette.WEIGHTS, aspect="auto")
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylabel("about to write")
    axes.set_xlabel("element of the vector (64 of 96)")
    figure.colorbar(drawn, label="gate")
    share = (gate > 0).float().mean(dim=1).tolist()
    rows = [f"{n:12} {s:.0%} open" for n, s in zip(names, share, strict=True)]
    return Picture(figure, "\n".join(rows))


gate_picture(test.texts[0])

# %%
stay, alike = [], {"gating": [], "cross": []}
for text in test.texts:
    opened = watched(text)["gate"] > 0
    stay.append(float((opened[1:] == opened[:-1]).float().mean()))
    for kind, found in alike.items():
        answers = watched(text, kind)["answers"]
        found.append(float(torch.cosine_similarity(answers[0], answers[-1], dim=0)))
print(
    f"gates that stay open, or shut, from one word to the next: {sum(stay) / len(stay):.0%}"
)
for kind, found in alike.items():
    print(f"{kind:7} cosine of first and last answer: {sum(found) / len(found):.2f}")

# %% [markdown]
# Two numbers that seem to quarrel. Hardly any gate opens or shuts from one word to the next: the picture is one of stripes. And yet the
# answer at the last position points to quite another direction than the one at the first, where cross attention gives the same
# answer throughout. So after this training the gate works as a dimmer more than as a switch: elements stay open, and *how far*
# they are open, and the half $b$, make the difference.
#
# Choose another sentence (with a kernel there is a list):

# %% tags=["interactive"]
from magnet_lab.widgets.controls import choice, explore

explore(gate_picture, text=choice("sentence", test.texts[:20], test.texts[1]))

# %% [markdown]
# ## What would break?
# The running sum is causal. What if it were a plain sum over *all* positions, divided by $\sqrt T$? In training the whole
# sentence stands before the decoder, so nothing complains. We build that layer and exchange the *last* word of a sentence: do
# the scores of the *first* word move?


# %%
class SeesTheFuture(Gating):
    def forward(self, queries, e_repr):
        length = queries.shape[1]
        everything = self.w1(queries).sum(dim=1, keepdim=True) / length**0.5
        vector = e_repr[:, None].expand(-1, length, -1)
        both = torch.cat([everything.expand(-1, length, -1), vector], dim=2)
        gate, amount = self.w2(both).chunk(2, dim=2)
        return self.w3(gate.relu() * amount * vector)


def first_word_moves(decoder):
    ids, tokens = test.rows([0])
    exchanged = ids.clone()
    exchanged[0, -1] = ids[0, 0]
    with torch.no_grad():
        before, after = (
            decoder(vectors[:1], row, tokens)[0, 0] for row in (ids, exchanged)
        )
    return float((before - after).abs().max())


# %%
torch.manual_seed(0)
untrained = Decoder("gating", shape, encoder.words)
for reader in (Gating, SeesTheFuture):
    untrained.layers[0].reader = reader(shape)
    print(f"{reader.__name__:14} {first_word_moves(untrained):.4f}")

# %% [markdown]
# Through such a sum the first word hears of the last. A decoder that was trained so could read its answers out of its own
# input, and would stand alone when it has to write, where the rest is not there yet. A mask guards attention; it does not
# guard other sums along a text.
#
# ## What does a MAGNET vector still hold?
# The vectors of this notebook were *made* to be restored. A MAGNET vector (notebook 03) was made to be compared: sentences
# that mean the same shall be close, whatever their words. How much of the words is left in it? That can be measured with what
# you have built: leave the vectors as they are, train a gating decoder to restore sentences from them, and hold against it
# a decoder that gets only zeros. The gating layer is needed for it, as those vectors have a width of their own.
#
#     magnet-lab reproduce re-magnet
#
# does so for the last token's vector and for the mean over tokens, with three seeds and intervals. The other tables of this
# notebook at their proper size, with one sentence and several, frozen encoders, and passage retrieval:
# `magnet-lab reproduce re-table2 re-table3 re-table9`.
#
# ## Exercises
# ### 1 · The running sum for a batch (●○○, 5 minutes)
# `running_at_once` takes one sentence. Write it for `(batch, length, width)`.
#
# <details><summary>Hint</summary>
#
# Along which dimension does a text run now? The divisor must have a shape that fits: `(length, 1)`.
#
# </details>


# %%
def running_sum(queries):
    ### BEGIN SOLUTION
    count = torch.arange(1, queries.shape[1] + 1)
    return queries.cumsum(dim=1) / count[:, None].sqrt()
    ### END SOLUTION


# %%
check.running_sum(running_sum)

# %% [markdown]
# ### 2 · The gating layer (●●●, 20 minutes)
# Write Equations 4 and 5 for a batch: `gating(queries, e_repr, w1, w2, w3)` with `queries` `(batch, length, d_model)`, `e_repr`
# `(batch, d_repr)`, and matrices as in `nn.Linear` (use `x @ w.T`). `help(check.gating)` gives their shapes.
#
# <details><summary>Hint</summary>
#
# Sum first. Then give every position its copy of the vector: `e_repr[:, None].expand_as(summed)`. Join with `torch.cat` along
# the last dimension, multiply, and split with `.chunk(2, dim=-1)`.
#
# </details>


# %%
def gating(queries, e_repr, w1, w2, w3):
    ### BEGIN SOLUTION
    count = torch.arange(1, queries.shape[1] + 1)
    summed = (queries @ w1.T).cumsum(dim=1) / count[:, None].sqrt()
    vector = e_repr[:, None].expand_as(summed)
    a, b = (torch.cat([summed, vector], dim=-1) @ w2.T).chunk(2, dim=-1)
    return (a.relu() * b * vector) @ w3.T
    ### END SOLUTION


# %%
check.gating(gating)

# %% [markdown]
# ### 3 · ROUGE-1 (●●○, 10 minutes)
# Write `rouge_1(original, restored)`, 0 to 100, for texts in lower case without marks. A word counts as often as *both* have it.
# What if they share nothing?
#
# <details><summary>Hint</summary>
#
# `Counter(a) & Counter(b)` keeps the smaller of two counts; `.total()` adds them up.
#
# </details>


# %%
def rouge_1(original, restored):
    ### BEGIN SOLUTION
    words, others = original.split(), restored.split()
    shared = (Counter(words) & Counter(others)).total()
    return 200 * shared / (len(words) + len(others)) if shared else 0.0
    ### END SOLUTION


# %%
cases = [
    ("the dog ran", "the dog ran"),
    ("the dog ran to the house", "the the the the"),
    ("the dog ran", "a cat"),
    ("the dog ran to the red house", "the red dog ran home"),
]
try:
    for pair in cases:
        mine, true = rouge_1(*pair), rouge_n(*pair, 1)
        verdict = "right" if abs(mine - true) < 0.01 else f"it should be {true:.2f}"
        print(f"{pair}: {mine:.2f}, {verdict}")
except NotImplementedError:
    print("rouge_1 is yours to write")

# %% [markdown]
# ### 4 · Does width help? (●●●, 15 minutes)
# Only the gating decoder may have a $d_{repr}$ of its own. Train one with `Shape(vocabulary=VOCABULARY, d_repr=…)` for 24 and for
# 192 elements, and compare ROUGE-L. Write `rouge_of_width(d_repr)`; each call trains a model, so it takes some seconds.
#
# <details><summary>Hint</summary>
#
# `restorer` with another shape in two places. `tested(...)` gives the figures and the texts.
#
# </details>


# %%
def rouge_of_width(d_repr):
    ### BEGIN SOLUTION
    own = Shape(vocabulary=VOCABULARY, d_repr=d_repr)
    torch.manual_seed(0)
    encoder = Encoder(own, Words(own))
    decoder = Decoder("gating", own, encoder.words)
    encode = lambda places: encoder(*train.rows(places))  # noqa: E731
    options = dict(steps=STEPS, batch=16, lr=3e-3, seed=0)
    training.train_to_restore([encoder], encode, decoder, train, end, **options)
    return tested(encoder, decoder)[0]["R-L"]
    ### END SOLUTION


# %%
try:
    for width in (24, 192):
        print(f"{width:4} elements: ROUGE-L {rouge_of_width(width):.1f}")
except NotImplementedError:
    print("rouge_of_width is yours to write")

# %% [markdown]
# ## Summary
# - A sentence becomes one vector: the state of one token, or the sum of all states over $\sqrt T$.
# - Cross attention to a single vector answers every query alike. Without a softmax the query chooses how much. The gating layer
#   lets it choose which elements.
# - The running sum tells the gate what was asked for before, and must not see the future.
# - ROUGE counts shared words, shared pairs, the longest shared row.
# - What is restored comes from the vector: damage it, or exchange it, and see.
#
# ## Do you know now?
# 1. Why does a softmax over one key make the query useless?
# 2. Why $\sqrt T$ in the pooling, and $\sqrt i$ in the running sum?
# 3. Which decoder can read a vector that is wider than itself, and why can the others not?
# 4. A restored text has all the right words in a wrong order. Which of the three ROUGEs shows it?
# 5. How do you find out whether a decoder makes things up?
#
# <details><summary>Answers</summary>
#
# 1. The weights must sum to 1, and there is one: it is 1, whatever the score.
# 2. Sums of many independent parts grow with the root of their number; divided by it, they keep their size.
# 3. The gating decoder: its matrices bring the query to $d_{repr}$ and the answer back. Equation 3 needs a product of query and
#    vector, and input puts the vector in the place of a token.
# 4. ROUGE-2 and ROUGE-L; ROUGE-1 does not see the order.
# 5. Give it zeros or another sentence's vector, and compare what it writes with both.
#
# </details>
#
# **Go on** with 14, scaling up: the same ideas at 7 billion parameters. **In the app**: the page *Embeddings* compares sentences by
# their vectors (`magnet-lab app`).
