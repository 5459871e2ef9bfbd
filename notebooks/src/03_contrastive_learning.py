# %% [markdown]
# # 03 · Contrastive learning
#
# **How do you teach a model that writes to say, with one vector, that two sentences mean the same?**
#
# - **You will** compute InfoNCE by hand, as a loop, without a loop and with the library; see what the temperature does; find
#   out why a decoder's raw vectors all point the same way; read a sentence from its last token and from the mean; and train
#   a model for a few steps until paraphrases move together.
# - **You need** notebook 00, softmax, cross entropy and the cosine of an angle.
# - **Time**: 35 minutes to read, 70 with the exercises; about 40 seconds to run on two cores.
#
# The source is Section 3.2.2 of the MAGNET paper (Khosla et al.) with Equation 3, and Equation 5 in an exercise.

# %%
# In Colab, once: %pip install -q magnet-lab
import math

import torch

import magnet_lab as ml
from magnet_lab import decoder, encoding, objectives
from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.viz import palette, show
from magnet_lab.viz.picture import Picture
from magnet_lab.viz.views import id_texts

MODEL = "tiny"  # or "small", or "llama-2-7b" where there is a GPU
lab = start(MODEL)
base = lab.use(None)

# %% [markdown]
# ## The picture
# Every sentence becomes a vector of length 1, a line from the centre. Here are three sentences (solid) and for each of them a
# paraphrase (dashed, with the same number and a ⁺). What we want: each sentence nearest to its own paraphrase.

# %%
angles = {"sentence": [0, 120, 240], "paraphrase": [60, 120, 240]}  # degrees


def unit(degrees):
    radians = torch.tensor(degrees).deg2rad()
    return torch.stack([radians.cos(), radians.sin()], dim=1)  # (n, 2)


anchors, candidates = unit(angles["sentence"]), unit(angles["paraphrase"])

# %%
figure = palette.card(4.4, 4.0)
axes = figure.add_subplot()
styles = {"sentence": (anchors, "-", 1.0), "paraphrase": (candidates, "--", 1.18)}
for vectors, line, reach in styles.values():
    for number, (x, y) in enumerate(vectors.tolist(), start=1):
        axes.plot([0, x], [0, y], line, color="#16405F" if line == "-" else "#E69F00")
        axes.text(reach * x, reach * y, f"{number}{'⁺' if line == '--' else ''}")
axes.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal", xticks=[], yticks=[])
axes.set_title("1, 2, 3: sentences; 1⁺, 2⁺, 3⁺: their paraphrases", fontsize=10)
Picture(figure, f"directions in degrees: {angles}")

# %% [markdown]
# Sentences 2 and 3 lie on their paraphrases. Sentence 1 has a problem: 1⁺ stands halfway between 1 and 2. And sentence 2
# has a neighbour, 1⁺, that does not belong to it.
#
# ## InfoNCE
# Play a game with each sentence: *which of these paraphrases is yours?* A softmax over its cosines with **all** paraphrases
# of the batch is the answer, and the loss is the surprise at the right one (Equation 3):
#
# $$\mathcal{L}_\text{SSCL} = -\frac{1}{N}\sum_{i=1}^{N} \log
# \frac{\exp(\cos(e_i, e_i^+)/\tau)}{\sum_{j=1}^{N}\exp(\cos(e_i, e_j^+)/\tau)}$$
#
# The other sentences' paraphrases are the **negatives**; they come for free with the batch. $\tau$ is the *temperature*.
# Two remarks for readers of the paper. It prints $e_j^-$ below the line; the sum of InfoNCE (van den Oord et al., 2018) runs
# over all $j$, the own paraphrase among them, or the loss could fall below 0. And it prints a dot product; we bring all
# vectors to length 1 first, so that it is the cosine. Under "What would break?" you see why.
#
# ### By hand
# The angles above are multiples of 60°, so the cosines are simple. And we choose $\tau$ such that $e^{0.5/\tau} = 2$: then
# $e^{1/\tau} = 4$, $e^{-0.5/\tau} = \frac12$ and $e^{-1/\tau} = \frac14$, and all can be done in the head.

# %%
tau = 0.5 / math.log(2)
cosines = anchors @ candidates.T
print("cosines\n", cosines.round(decimals=2) + 0.0)
print("e to the cosine / τ\n", (cosines / tau).exp().round(decimals=2))

# %% [markdown]
# Row 1: its own paraphrase has 2 of $2 + \frac12 + \frac12 = 3$. Row 2: it has 4, but 1⁺ has 2, so it is 4 of 6.5. Row 3: 4
# of 4.75.

# %%
shares = [2 / 3, 4 / 6.5, 4 / 4.75]
by_hand = -sum(math.log(share) for share in shares) / 3
print("own shares", [round(share, 3) for share in shares])
print("loss by hand", round(by_hand, 4))

# %% [markdown]
# The first sentence is far from its paraphrase, and has the larger share all the same: nobody else is near. The second lies
# *on* its paraphrase and has the lowest share of the three, because of a stranger nearby. InfoNCE does not ask "are you near?"
# but "are you nearer than the others?".
#
# ### As a loop


# %%
def by_loop(anchors, candidates, tau):
    losses = []
    for i, anchor in enumerate(anchors):
        strengths = []
        for candidate in candidates:
            cosine = anchor @ candidate / (anchor.norm() * candidate.norm())
            strengths.append(math.exp(cosine / tau))
        losses.append(-math.log(strengths[i] / sum(strengths)))
    return sum(losses) / len(losses)


print(f"by hand {by_hand:.6f}, loop {by_loop(anchors, candidates, tau):.6f}")

# %% [markdown]
# ### Without a loop
# All cosines are one matrix product of unit vectors. And "the surprise at the right one of $N$" is cross entropy, with the
# row's own number as the right class: 0 for row 0, 1 for row 1.

# %%
from torch.nn.functional import cross_entropy, normalize


def at_once(anchors, candidates, tau):
    cosines = normalize(anchors, dim=-1) @ normalize(candidates, dim=-1).T  # (n, n)
    return cross_entropy(cosines / tau, torch.arange(len(anchors)))


# %% [markdown]
# ### The library's line
# `objectives.info_nce` is the same. We compare all three on the hand-made case, and on fifty random ones of all sizes.

# %%
library = float(objectives.info_nce(anchors, candidates, temperature=tau))
print(f"hand {by_hand:.6f}, library {library:.6f}")
generator = torch.Generator().manual_seed(0)
agree = 0
for n in range(2, 52):
    a, c = torch.randn(2, n, 8, generator=generator)
    found = [by_loop(a, c, 0.3), float(at_once(a, c, 0.3))]
    found.append(float(objectives.info_nce(a, c, temperature=0.3)))
    agree += max(found) - min(found) < 1e-4
print(f"loop, no loop and library agree in {agree} of 50 batches")

# %% [markdown]
# How large is the loss of a model that knows nothing? All cosines alike: each share is $1/N$, the loss $\log N$. Keep this
# number in mind; it depends on the size of the batch, so losses of different batch sizes cannot be compared.

# %%
for n in (2, 3, 16, 64):
    alike = torch.ones(n, 4)
    loss = objectives.info_nce(alike, alike, temperature=0.1)
    print(f"N = {n:2}: loss {float(loss):.3f}, log N {math.log(n):.3f}")

# %% [markdown]
# ## The temperature
# $\tau$ divides the cosines before the softmax. Cosines lie between −1 and 1; with $\tau = 1$ the strongest can have no more
# than $e^2 = 7.4$ times the weight of the weakest, however good the vectors are. The paper takes 0.1. Look at row 2, whose
# cosines are 0.5, 1 and −0.5:


# %%
def row_two(temperature=0.1):
    row = (cosines[1] / temperature).softmax(dim=0)
    labels = ["1⁺, a stranger", "2⁺, its own", "3⁺, far away"]
    title = (
        f"shares of sentence 2 at τ = {temperature:g}: loss {-float(row[1].log()):.3f}"
    )
    return show("predictions", labels, row.tolist(), title=title)


for temperature in (5, 1, 0.5, 0.1):
    row = (cosines[1] / temperature).softmax(dim=0)
    print(f"τ = {temperature:<4} shares {[round(s, 3) for s in row.tolist()]}"
          f"   loss {-float(row[1].log()):.3f}")  # fmt: skip

# %%
row_two(1.0)

# %% [markdown]
# The temperature also decides **whom the training pushes away**. The slope of the loss for a cosine is
#
# $$\frac{\partial \mathcal{L}_i}{\partial \cos_{ij}} = \frac{1}{\tau}\left(\text{share}_{ij} - [i = j]\right)$$
#
# Pulled is the own paraphrase; pushed is every other one, in proportion to its share. Let autograd confirm it, and see how
# the push is divided between the near stranger 1⁺ and the far one 3⁺:

# %%
for temperature in (5, 1, 0.5, 0.1):
    row = cosines[1:2].clone().requires_grad_()
    cross_entropy(row / temperature, torch.tensor([1])).backward()
    share = (row.detach() / temperature).softmax(dim=1)[0]
    formula = (share - torch.tensor([0.0, 1, 0])) / temperature
    to_near = float(share[0] / (share[0] + share[2]))
    print(f"τ = {temperature:<4} equal to the formula: "
          f"{torch.allclose(row.grad[0], formula, atol=1e-6)}"
          f"   of the push, the near stranger gets {to_near:.1%}")  # fmt: skip

# %% [markdown]
# A high temperature pushes everybody away alike, also those who are far away already. A low one minds only the nearest
# stranger. Too low, and one mistake in the data (a "stranger" that means the same) gets all the push.
#
# Turn it yourself:

# %% tags=["interactive"]
from magnet_lab import widgets
from magnet_lab.widgets.controls import slider

widgets.explore(row_two, temperature=slider("temperature τ", 0.3, 0.05, 2.0, 0.05))

# %% [markdown]
# ## A decoder's raw vectors
# Now a real model. We take sentences that nothing here was trained on, each with a paraphrase and with a **look-alike**:
# it shares words with the sentence and says something else.

# %%
from magnet_lab.data import pairs
from magnet_lab.data.rows import Corpus

held_out = pairs.read("triplets", Corpus(["sentences-held-out.tsv"]))[:100]
sentences, paraphrases, look_alikes = (
    list(column) for column in zip(*held_out, strict=True)
)
print(len(sentences), "triplets; the first:")
for kind, text in zip(
    ["sentence", "paraphrase", "look-alike"], held_out[0], strict=True
):
    print(f"{kind:11}", text)

# %% [markdown]
# The **base model**, which has been trained to write and for nothing else, turns each into a vector: under the
# bidirectional mask, read at an end-of-text token put after the sentence.

# %%
some = [text for number in range(3) for text in held_out[number][:2]]
alike = base.similarity(some, some)
show("similarity", alike, some, title="base model: 1-2, 3-4 and 5-6 are paraphrases")

# %% [markdown]
# Look at the colour bar: the whole scale is a narrow strip below 1, and strangers in it are often as near as paraphrases. All
# arrows point roughly the same way, whatever the sentence says. This is called **anisotropy**. On all our sentences:


# %%
def cosines_of(vectors):
    """Of each sentence: with its paraphrase, with others' paraphrases, look-alike."""
    a, p, n = vectors.chunk(3)
    every = encoding.similarity(a, p)
    strangers = every[~torch.eye(len(a), dtype=torch.bool)].view(len(a), -1)
    return every.diagonal(), strangers, torch.cosine_similarity(a, n)


def report(name, vectors):
    own, strangers, look_alike = cosines_of(vectors)
    print(f"{name:16} {own.mean():10.3f} {strangers.mean():9.3f}"
          f" {(own[:, None] > strangers).float().mean():14.0%}"
          f" {(own > look_alike).float().mean():16.0%}")  # fmt: skip


columns = ("paraphrase", "strangers", "beats stranger", "beats look-alike")
heading = " " * 17 + " ".join(columns)

# %%
texts = sentences + paraphrases + look_alikes
raw = base.encode(texts)  # (300, hidden)
print(heading)
report("base, last token", raw)

# %% [markdown]
# How to read this line: the mean cosine of a sentence with its paraphrase, and with the paraphrases of other sentences; then
# in how many of all such comparisons the own paraphrase is nearer than a stranger's (50 % is chance), and in how many it is
# nearer than the sentence's look-alike.
#
# Two things are true at once. Strangers have nearly as high a cosine as paraphrases, on average. And still the own paraphrase
# wins more often than by chance: something of the meaning *is* in these vectors, pressed into a narrow strip. For a softmax
# that is little: at $\tau = 0.1$ the loss of the base model is not far below $\log N$.

# %%
a, p, _ = raw.chunk(3)
loss = float(objectives.info_nce(a, p, temperature=0.1))
print(
    f"InfoNCE of the base model {loss:.3f}, of one that knows nothing {math.log(100):.3f}"
)

# %% [markdown]
# ### Why?
# If all arrows point the same way, there is a common part. It is the mean of all vectors. How long is it, against the
# vectors themselves? And what is left when we take it off?

# %%
common = raw.mean(dim=0)
print(
    f"length of a vector {raw.norm(dim=1).mean():.2f}, of the mean {common.norm():.2f}"
)
print(heading)
report("base, last token", raw)
report("mean taken off", raw - common)

# %% [markdown]
# The mean is nearly as long as a vector: by far the most of each vector is the part that all of them share. Without it the
# strangers stand at right angles on average.
#
# What does the common part *say*? A state of a decoder has one purpose, to give scores to the next token. So we can ask the
# head over the vocabulary: what does the mean vector predict, and what do single sentences predict?


# %%
def says(vector, k=4):
    states = vector[None].to(base.device, base.dtype)
    with torch.no_grad():
        scores = decoder.vocabulary_scores(base.model, states)[0]
    words, chances = ml.viz.likeliest(base.tokenizer, scores, k=k)
    return "  ".join(f"{w!r} {c:.2f}" for w, c in zip(words, chances, strict=True))


print("the mean vector:", says(common))
for number in range(4):
    print(f"sentence {number}:     ", says(raw[number]))

# %% [markdown]
# Much the same short words and pieces of words again and again; and where a sentence goes its own way, it does not speak of
# its subject. What comes after the end of a text, if anything, does not hang on what the text has said. Nobody ever asked this
# output what the *text* was about.
#
# There is a second reason, and it holds for any output of a decoder. Take the mean over *all* the tokens of each text instead of
# its last one. What does the part say that these vectors share?

# %%
raw_mean = base.encode(texts, pooling="mean")
print("the shared part:", says(raw_mean.mean(dim=0), k=8))

# %% [markdown]
# Stops, commas and the most frequent short words and endings. They are likely next in *every* text, so that every state does
# well to carry a common part which says so: in next-token training it is useful, and nothing in the loss asks for states of
# different texts to lie far apart in angle.
#
# So the vectors are not bad because the model is stupid. They answer another question. Contrastive learning asks the
# question that we want answered.
#
# ## Last token or mean?
# Which output should stand for the sentence? Two candidates: the state of the **last** token, an end-of-text put after the
# sentence (the paper's choice), or the **mean** of the states of all its tokens.
#
# The paper's reason is division of labour. MAGNET trains token vectors (MNTP, notebook 02) and sentence vectors *at the same
# time*. MNTP asks output $l$ for the token at $l + 1$. Nothing follows the last token, so its output is asked for nothing, and
# stays free to stand for the whole. Let us count, over 300 drawings of hidden tokens, how often each output is asked:

# %%
ids, _, _ = encoding.sentence_ids(base.tokenizer, sentences[0], "", "last")
rows = torch.tensor(ids).repeat(300, 1)
views = ml.views.make_views(
    rows, torch.ones_like(rows), tokenizer=base.tokenizer,
    generator=torch.Generator().manual_seed(0), max_spans=0,
)  # fmt: skip
asked = (views.mntp_labels != ml.views.NO_LABEL).sum(dim=0).tolist()
words = id_texts(base.tokenizer, ids)
for place, (word, count) in enumerate(zip(words, asked, strict=True)):
    print(f"output {place:2} {word:12} asked {count:3} times  {'■' * (count // 5)}")

# %% [markdown]
# The last output is never asked. (The one before it would have to predict the end of the text, and such special tokens are
# never hidden.) The mean, on the other hand, is made of outputs that MNTP pulls at as well.
#
# Division of labour is one thing; which vectors are better is another, and that can be measured. Here are all adapters that
# come with this model, with both poolings:

# %%
kept = {"base": base, **{name: lab.use(name) for name in ml.zoo.adapters(MODEL)}}
found, ready = {}, {"last": raw, "mean": raw_mean}
print(heading)
for name, who in kept.items():
    for pooling in ("last", "mean"):
        vectors = (
            who.encode(texts, pooling=pooling) if who is not base else ready[pooling]
        )
        found[f"{name}, {pooling}"] = vectors
        report(f"{name}, {pooling}", found[f"{name}, {pooling}"])

# %% [markdown]
# Compare the rows of the base model: the mean is less squeezed than the last token, since the states of different words
# point in different directions, while the last token is the same one in every text. But "less squeezed" is not "better". The
# two columns on the right count only who is nearer: which pooling wins there, in each pair of rows? It need not be the one
# with the lower cosines, and a few points are within the margin of a hundred triplets. Never judge vectors by the height of
# their cosines.
#
# Then look at the last column. The look-alike shares most of its words with the sentence; 50 % is what a coin would reach, and
# vectors that see words rather than meaning stay below. We come back to this.
#
# ## Two numbers for a cloud of vectors
# InfoNCE wants two things that pull in different directions. **Alignment**: what means the same should lie together.
# **Uniformity**: vectors should use the whole sphere (Wang and Isola, 2020). With unit vectors $a_i$ and their positives
# $p_i$:
#
# $$\text{alignment} = \frac1N \sum_i |a_i - p_i|^2 \qquad
# \text{uniformity} = \log\ \underset{i<j}{\text{mean}}\ e^{-2|a_i - a_j|^2}$$
#
# Lower is better for both. **By hand** on the three pairs of the beginning: for unit vectors $|a - p|^2 = 2 - 2\cos$. The
# cosines of the pairs are 0.5, 1 and 1; the three sentences stand at 120° from each other, so their cosines are −0.5.

# %%
print("alignment ", ((2 - 2 * 0.5) + 0 + 0) / 3)
print("uniformity", math.log(math.exp(-2 * (2 - 2 * -0.5))))


# %% [markdown]
# **As a loop**, and **the library's lines**:


# %%
def two_numbers_by_loop(a, p):
    n = len(a)
    near = sum(float((a[i] - p[i]).square().sum()) for i in range(n)) / n
    gaps = [(a[i] - a[j]).square().sum() for i in range(n) for j in range(i)]
    return near, math.log(sum(math.exp(-2 * gap) for gap in gaps) / len(gaps))


print("loop   ", two_numbers_by_loop(anchors, candidates))
print(
    "library",
    (ml.encoding.alignment(anchors, candidates), ml.encoding.uniformity(anchors)),
)

# %% [markdown]
# **Without a loop** it is your third exercise. On the model's vectors:

# %%
points = {}
for name, vectors in found.items():
    a, p, _ = vectors.chunk(3)
    points[name] = (ml.encoding.alignment(a, p), ml.encoding.uniformity(a))
show("alignment", points, title="one point for each model and pooling")

# %% [markdown]
# The base model's last token sits at the top left: the best alignment or nearly so, because *everything* lies together, and
# for the same reason about the worst uniformity here (0 would be a single point). One number alone can be had for nothing. The
# aim is the lower left corner.
#
# Where are the two in InfoNCE? Take the logarithm of the fraction apart:
#
# $$\mathcal{L}_i = \underbrace{-\cos(e_i, e_i^+)/\tau}_{\text{lie together}}\ +\
# \underbrace{\log \textstyle\sum_j \exp(\cos(e_i, e_j^+)/\tau)}_{\text{keep apart}}$$

# %%
together = -(cosines.diagonal() / tau).mean()
apart = (cosines / tau).logsumexp(dim=1).mean()
print(f"together {together:.4f} + apart {apart:.4f} = {together + apart:.4f}"
      f"   InfoNCE {by_hand:.4f}")  # fmt: skip

# %% [markdown]
# ## Training
# Now we teach the base model ourselves, for a few steps. All that is trained is a LoRA adapter, as in the paper: small
# matrices beside the model's own, which stay as they are. The recipe of Section 3.2.2: put the instruction "Given the
# sentence, find its representation:" before each sentence and an end-of-text after it, read the last state under the
# bidirectional mask, InfoNCE.
#
# (The paper sends the vectors through a *projection head* in training, and makes its paraphrases with a T5 model. We leave
# the head out, and take pairs that come with the project; none of them is among the ones we measure on.)

# %%
training = pairs.read("triplets", Corpus(["sentences.tsv"]))
training = [row for row in training if max(map(len, row)) <= 60]  # short: seconds
clean = not {text for row in training for text in row} & set(texts)
print(f"{len(training)} short triplets; none of our sentences is among them: {clean}")


# %%
def vectors_of(who, texts):
    """What `encode` does, with gradient: (n, hidden)."""
    instruction = encoding.DEFAULT_INSTRUCTION
    made = [
        encoding.sentence_ids(who.tokenizer, text, instruction, "last")[0]
        for text in texts
    ]
    ids, tokens = decoder.pad(made)
    span_ids = ml.attention.bidirectional(tokens).to(who.device)
    states = decoder.hidden_states(who.model, ids.to(who.device), span_ids)
    last = torch.tensor([len(row) - 1 for row in made], device=who.device)
    return states[torch.arange(len(made), device=who.device), last].float()


# %% [markdown]
# Where `encode` and `vectors_of` agree we can train with the one and measure with the other:

# %%
with torch.no_grad():
    same = torch.allclose(
        vectors_of(base, texts[:8]).cpu(), raw[:8], atol=1e-3, rtol=1e-2
    )
print("vectors_of and encode agree:", same)

# %%
from peft import get_peft_model

from magnet_lab.training.loop import lora_config, short_attention
from magnet_lab.training.recipe import Lora

STEPS, RATE, TAU = 25, 1e-3 if MODEL == "tiny" else 2e-4, 0.05


def trained(columns, size):
    """A fresh adapter; a batch is `size` rows of the first `columns` columns."""
    torch.manual_seed(0)
    who = ml.Magnet.from_pretrained(MODEL, adapter=None, dtype=base.dtype)
    model = get_peft_model(who.model, lora_config(Lora()))
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer, losses = torch.optim.AdamW(weights, lr=RATE), []
    for step in range(STEPS):
        rows = pairs.batch(training, step, size, seed=0)
        texts = [row[column] for column in range(columns) for row in rows]
        with short_attention(who.device, 64):
            made = vectors_of(who, texts)
        loss = objectives.info_nce(made[:size], made[size:], temperature=TAU)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return who, losses


# %%
paired, losses = trained(columns=2, size=15)
show("losses", {"InfoNCE": losses}, title="15 pairs in a batch: 14 negatives each")

# %% [markdown]
# A loss of $\log 15 = 2.7$ would be that of guessing. What counts is the sentences it has never seen:

# %%
after = paired.encode(texts)
print(heading)
report("before", raw)
report("after", after)
for name, vectors in {"before": raw, "after": after}.items():
    a, p, _ = vectors.chunk(3)
    loss = float(objectives.info_nce(a, p, temperature=0.1))
    print(f"InfoNCE among the {len(a)} sentences, {name}: {loss:.3f}")

# %%
figure = palette.card(6.6, 4.2)
panels = figure.subplots(2, 1)
for axes, name, vectors in zip(panels, ("before", "after"), (raw, after), strict=True):
    own, strangers, _ = cosines_of(vectors)
    both = [own.tolist(), strangers.flatten().tolist()]
    labels, colours = ["own paraphrase", "strangers'"], ["#E69F00", "#16405F"]
    style = dict(bins=40, range=(-0.4, 1), density=True)
    axes.hist(both, label=labels, color=colours, **style)
    axes.set(ylabel=name, yticks=[])
axes.set_xlabel("cosine")
axes.legend()
means = {name: [round(float(side.mean()), 2) for side in cosines_of(vectors)[:2]]
         for name, vectors in {"before": raw, "after": after}.items()}  # fmt: skip
Picture(figure, f"mean cosine with the own paraphrase, with strangers': {means}")

# %% [markdown]
# Before, both heaps lie on each other at the right. After, they have come apart: strangers have moved away and spread out; the
# own paraphrases have moved too, and less. The own paraphrase wins more of the comparisons than before, and the loss on unseen
# sentences has fallen. The last column has hardly moved: strangers have been told apart, look-alikes have not. On the map:

# %%
a, p, _ = after.chunk(3)
points = {"before": points["base, last"]}
points["after"] = (ml.encoding.alignment(a, p), ml.encoding.uniformity(a))
show("alignment", points, title="a few steps of InfoNCE, last token")

# %% [markdown]
# Alignment has become *worse*, and the vectors are better. This is no contradiction: at the start it could be had for
# nothing.
#
# ## Harder negatives
# A stranger from the batch is easily told apart: it is about something else, and shares few words. The look-alike is hard. How
# much of the push does each get? We put look-alikes among the candidates, behind the paraphrases; `info_nce` takes them as
# negatives without an anchor.

# %%
a, p, n = after.chunk(3)
every = encoding.similarity(a, torch.cat([p, n])) / TAU
share = every.softmax(dim=1)
own, look = share[:, :100].diagonal(), share[:, 100:].diagonal()
strangers = (1 - own - look) / 198
print("mean share of the own paraphrase", f"{own.mean():.3f}")
print("of its look-alike               ", f"{look.mean():.3f}")
print("of one stranger                 ", f"{strangers.mean():.4f}")
for name, among in {"without": p, "with": torch.cat([p, n])}.items():
    loss = float(objectives.info_nce(a, among, temperature=TAU))
    print(f"loss {name} look-alikes {loss:.2f}")

# %% [markdown]
# One look-alike weighs as much as a crowd of strangers. So it says more about what is still wrong. We train once more from the
# start, with as many sentences in a batch (10 triplets are 30, like 15 pairs) and as many steps:

# %%
hard, _ = trained(columns=3, size=10)
print(heading)
report("before", raw)
report("15 pairs", after)
report("10 triplets", hard.encode(texts))

# %% [markdown]
# Compare the last two rows, and the last column first: that is what the look-alikes were put in for. Have they bought anything
# there? A hundred triplets leave a margin of several points, and so few steps leave much to learn: a coin would reach 50 %.
# In the column before it the triplets, with fewer strangers in a batch, may have to pay. The cosines of the two rows may lie
# far apart; who is nearer is what counts. The recipes `small` and `tiny` leave the look-alikes out, as the paper does: people
# who are asked how alike two sentences are give a look-alike half of the points and a stranger none, and a loss that pushes
# both away alike knows no half.
#
# ## What would break?
# ### Without negatives
# Why not simply pull paraphrases together, and leave the pushing out? A toy: "sentences" are random points, a paraphrase is
# the same point with a little noise, and a small network turns them into vectors. Once with InfoNCE, once with alignment
# alone.


# %%
def toy(loss_of, steps=300):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8)]
    network = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(steps):
        points = torch.randn(32, 8)
        a, p = network(points), network(points + 0.3 * torch.randn(32, 8))
        optimizer.zero_grad()
        loss_of(a, p).backward()
        optimizer.step()
    points = torch.randn(200, 8)
    return network(points), network(points + 0.3 * torch.randn(200, 8))


def pull_only(a, p):
    return (normalize(a, dim=-1) - normalize(p, dim=-1)).square().sum(dim=1).mean()


# %%
print(f"{'':12} alignment  uniformity  own paraphrase is the nearest of 200")
for name, loss_of in {"pull only": pull_only, "InfoNCE": objectives.info_nce}.items():
    with torch.random.fork_rng():
        a, p = (side.detach() for side in toy(loss_of))
    nearest = (encoding.similarity(a, p).argmax(dim=1) == torch.arange(200)).float()
    print(f"{name:12} {ml.encoding.alignment(a, p):9.3f} {ml.encoding.uniformity(a):11.3f}"
          f" {nearest.mean():12.0%}")  # fmt: skip

# %% [markdown]
# With pulling alone the alignment is all but perfect, and the uniformity is that of a single point: the network has found that
# the surest way to have paraphrases together is to give everybody nearly the same vector. This is called **collapse**. What
# still sets the points apart is a sliver once more, and it finds fewer of the paraphrases. The negatives below the line are
# what forbids this.
#
# ### Without unit vectors
# And if we take dot products as they are? Then there is a way to lower the loss that teaches nothing at all: make all
# vectors longer.

# %%
for length in (1, 3, 10):
    scores = (length * anchors) @ (length * candidates).T
    dot = float(cross_entropy(scores, torch.arange(3)))
    unit_length = objectives.info_nce(
        length * anchors, length * candidates, temperature=1
    )
    print(
        f"length {length:2}: loss of dot products {dot:.4f}, of cosines {unit_length:.4f}"
    )

# %% [markdown]
# Not one angle has changed. In use we compare by cosine, so nothing has been gained.
#
# ## Exercises
# ### 1 · InfoNCE (●●○, 10 minutes)
# Write the loss with the temperature. There may be more candidates than anchors: the extra ones are negatives of everybody.
#
# <details><summary>Hint</summary>
#
# `at_once` above is nearly it. Which numbers does `cross_entropy` want for the right classes?
#
# </details>


# %%
def info_nce(anchors, candidates, temperature):
    ### BEGIN SOLUTION
    anchors = torch.nn.functional.normalize(anchors, dim=-1)
    candidates = torch.nn.functional.normalize(candidates, dim=-1)
    scores = anchors @ candidates.T / temperature  # (n, m)
    return torch.nn.functional.cross_entropy(scores, torch.arange(len(anchors)))
    ### END SOLUTION


# %%
check.info_nce(info_nce)

# %% [markdown]
# ### 2 · One vector for a sentence (●●○, 10 minutes)
# From the states of a batch, `(batch, length, hidden)`, take one vector a text: with `pooling` `"last"` the state of its last
# token, with `"mean"` the mean over its tokens. `tokens` is `(batch, length)`, True at a token. Padding may stand on either
# side.
#
# <details><summary>Hint</summary>
#
# The mean: multiply by `tokens[:, :, None]`, sum, divide by the number of tokens. The last: the largest place at which
# `tokens` is True; `place * tokens` and `argmax` find it.
#
# </details>


# %%
def sentence_vector(states, tokens, pooling):
    ### BEGIN SOLUTION
    if pooling == "mean":
        total = (states * tokens[:, :, None]).sum(dim=1)
        return total / tokens.sum(dim=1, keepdim=True)
    place = torch.arange(1, tokens.shape[1] + 1)
    last = (place * tokens).argmax(dim=1)
    return states[torch.arange(len(states)), last]
    ### END SOLUTION


# %%
check.sentence_vector(sentence_vector)

# %% [markdown]
# ### 3 · Alignment and uniformity (●●○, 10 minutes)
# Return both numbers for anchors and positives, `(n, hidden)` each, of any length; no loop.
#
# <details><summary>Hint</summary>
#
# `torch.pdist` gives the distances of all pairs $i < j$. First the mean, then the logarithm.
#
# </details>


# %%
def alignment_uniformity(anchors, positives):
    ### BEGIN SOLUTION
    anchors = torch.nn.functional.normalize(anchors, dim=-1)
    positives = torch.nn.functional.normalize(positives, dim=-1)
    alignment = (anchors - positives).square().sum(dim=1).mean()
    uniformity = (-2 * torch.pdist(anchors).square()).exp().mean().log()
    return float(alignment), float(uniformity)
    ### END SOLUTION


# %%
check.alignment_uniformity(alignment_uniformity)

# %% [markdown]
# ### 4 · All three losses (●●○, 10 minutes)
# In MAGNET the contrastive loss is one of three (Equation 5):
# $\mathcal{L} = \lambda_1 \mathcal{L}_\text{MNTP} + \lambda_2 \mathcal{L}_\text{SSCL} + \lambda_3 \mathcal{L}_\text{MSG}$.
# MNTP and MSG are cross entropies of the same `logits`, `(batch, length, vocabulary)`, with labels of their own,
# `(batch, length)`, in which −100 means "not asked"; each is a mean over its own targets. `sscl` is a number that is there
# already, `weights` are $(\lambda_1, \lambda_2, \lambda_3)$. A batch without any target of one kind adds 0 for it.
#
# <details><summary>Hint</summary>
#
# `cross_entropy(..., reduction="sum")` over the flattened logits leaves out −100 by itself. Divide by the number of labels,
# and by 1 where there is none.
#
# </details>


# %%
def total_loss(logits, mntp_labels, msg_labels, sscl, weights):
    ### BEGIN SOLUTION
    def mean_over_targets(labels):
        scores, labels = logits.flatten(0, 1), labels.flatten()
        total = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
        return total / max(1, int((labels != -100).sum()))

    first, second, third = weights
    mntp, msg = mean_over_targets(mntp_labels), mean_over_targets(msg_labels)
    return first * mntp + second * sscl + third * msg
    ### END SOLUTION


# %%
check.total_loss(total_loss)

# %% [markdown]
# ### 5 · A stranger who is none (●●○, 10 minutes)
# A batch in which the same sentence occurs twice: rows 0 and 3 have the same meaning, and each is a "negative" of the other.
# What is the lowest loss that such a batch of four can have, if vectors are perfect and $\tau$ is tiny? Work it out, then
# return it as a number.
#
# <details><summary>Hint</summary>
#
# For rows 1 and 2 the own share goes to 1. Between how many equals does row 0 have to choose?
#
# </details>


# %%
def lowest_loss():
    ### BEGIN SOLUTION
    return (math.log(2) + 0 + 0 + math.log(2)) / 4
    ### END SOLUTION


# %%
twice = torch.eye(3)[[0, 1, 2, 0]]  # perfect vectors; row 3 means the same as row 0
truth = float(objectives.info_nce(twice, twice, temperature=0.01))
try:
    right = abs(lowest_loss() - truth) < 1e-3
    print("right" if right else f"not yet: {lowest_loss()} is not what `truth` holds")
except NotImplementedError:
    print("lowest_loss is yours to write")

# %% [markdown]
# ## Summary
# - InfoNCE is a multiple choice question: find your own paraphrase among all of the batch. It is cross entropy over cosines.
# - The temperature makes small differences of cosines count, and says how much the nearest stranger matters.
# - A decoder's raw vectors share one long common part, since nobody asked them for angles. What they know is in the rest.
# - The last token is free for the whole sentence: no other objective asks its output for anything.
# - Alignment and uniformity belong together; either alone can be had for nothing.
# - Negatives prevent collapse. Hard ones say more than a crowd of easy ones.
#
# ## Do you know now?
# 1. A batch of 64 has the loss 4.16 at the first step. What does the model know?
# 2. Why does the own paraphrase belong into the sum below the line?
# 3. All cosines of a model are above 0.95. Are its vectors useless?
# 4. What does a very low temperature do with a pair of "strangers" that mean the same?
# 5. Why can MNTP and SSCL be trained at once without quarrelling about one output?
#
# <details><summary>Answers</summary>
#
# 1. Nothing yet: log 64 is 4.16, the loss of guessing.
# 2. Then the fraction is a probability, the loss is at least 0, and it stops pulling where the answer is right.
# 3. No. Count who is nearer, not how high the cosines are; and take off the mean.
# 4. It gives nearly all of the push to them, and drives apart what belongs together.
# 5. MNTP reads the output before a hidden token; the last output stands before none.
#
# </details>
#
# **Go on** with 04, missing spans: the third objective, and the one that keeps the model a writer. **In the app**: the page
# *Embeddings*, where you compare sentences of your own, and *Objectives* (`magnet-lab app`).
