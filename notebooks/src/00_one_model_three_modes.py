# %% [markdown]
# # 00 · One model, three modes
#
# **What does one decoder do under three masks?** The whole story in five minutes; every other notebook takes a piece of
# it apart.
#
# - **You will see** one language model go on with a text, turn texts into vectors, and fill a hole in a text, with the
#   same weights each time.
# - **You need** to have met a Transformer once. No mathematics here.
# - **Time**: 5 minutes to read, 10 with the exercises; runs in seconds on two cores.
#
# The idea is that of MAGNET (Khosla et al.): *Augmenting Generative Decoders with Representation Learning and
# Infilling Capabilities*.

# %%
# In Colab, once: %pip install -q magnet-lab
import torch

import magnet_lab as ml
from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.viz import show

MODEL = "tiny"  # or "small", or "llama-2-7b" where there is a GPU
lab = start(MODEL)

# %% [markdown]
# ## The picture
# A language model reads a text through an **attention mask**: a table of who may look at whom. Rows look, columns are
# seen. Here is one sentence under three masks.

# %%
tokens = ["The", " cat", " sat", " on", " the", " mat", "."]
row = torch.ones(1, len(tokens), dtype=torch.long)

span_ids = ml.attention.causal(row)
mask = ml.attention.attention_mask(span_ids)[0, 0]
show("mask", mask, tokens, title="generate: the causal mask")

# %% [markdown]
# Under the **causal mask** each token sees itself and what stands before it. That is how the model was first trained,
# and why it can *write*: nobody has ever seen the next word.

# %%
span_ids = ml.attention.bidirectional(row)
mask = ml.attention.attention_mask(span_ids)[0, 0]
show("mask", mask, tokens, title="encode: the bidirectional mask")

# %% [markdown]
# Under the **bidirectional mask** everybody sees everybody. A vector taken from such a model can know the whole
# sentence. But nothing can be written: each word has already seen the next one.

# %%
span_ids = ml.attention.magnet(row, [[(2, 5)]])
mask = ml.attention.attention_mask(span_ids)[0, 0]
show("mask", mask, tokens, span_ids[0].tolist(), title="infill: the MAGNET mask")

# %% [markdown]
# Under the **MAGNET mask** there is a *span*, here `[ sat on the]`, that is to be written, and around it the *context*.
# The context sees all of the context, and nothing of the span. The span sees all of the context, **also what stands to
# its right**, and of itself only what is already written.
#
# All three are one rule. Give every token a number: 0 for the context, 1, 2, … for the spans. Then
#
# > a token may look at every context token, and at what is not after it in its own span.

# %%
for name, ids in {
    "generate": ml.attention.causal(row),
    "encode": ml.attention.bidirectional(row),
    "infill": ml.attention.magnet(row, [[(2, 5)]]),
}.items():
    print(f"{name:9} span_ids = {ids[0].tolist()}")

# %% [markdown]
# ## Mode 1: generate
# The causal mask. This is the ordinary language model, and it still works.

# %%
print(
    lab.generate(
        "Once upon a time there was a little dog named Max.", max_new_tokens=30
    )
)

# %% [markdown]
# ## Mode 2: encode
# The bidirectional mask. One vector a text; the angle between two vectors says how alike the texts are.

# %%
sentences = [
    "The dog ran home.",
    "The puppy went back to the house.",
    "Mom made a cake.",
    "Mommy baked a big cake.",
]
alike = lab.similarity(sentences, sentences)
show("similarity", alike, sentences, title="cosine similarity, with the adapter")

# %% [markdown]
# ## Mode 3: infill
# The MAGNET mask. A hole in the middle, and what is written must fit on both sides.

# %%
result = lab.infill("Tom had a red ball. [blank] He was very sad.", num_candidates=3)
for candidate in result.candidates:
    print(f"{candidate.score:6.2f}  {candidate.text}")

# %% [markdown]
# The score is the mean log-probability of a token; nearer to 0 is likelier. A model of five million parameters knows
# little about the world; `MODEL = "small"` knows more.
#
# How much does the right side help? We can ask how surprised the model is by an answer of ours, with both sides in view
# and with the left alone. *Perplexity* counts how many words it wavers between: lower is less surprise.

# %%
story = "Lily was scared of the dark. [blank] Now she sleeps well every night."
answer = ["Mom gave her a little lamp."]
for mode in ("causal", "infill"):
    print(f"{mode:7} {lab.score_infill(story, answer, mode=mode).perplexity:6.1f}")

# %% [markdown]
# ## What has to be learnt
# The mask alone is not enough. The base model has never looked to its right: it must *learn* to make use of what it sees
# there. MAGNET trains a small **adapter** (LoRA) with three objectives at once, and leaves the base weights as they are.
# So the same tensors serve both:

# %%
base = lab.use(None)
alike = base.similarity(sentences, sentences)
show("similarity", alike, sentences, title="the same, without the adapter")

# %% [markdown]
# Without it every sentence looks much like every other: all vectors point nearly the same way. Notebook 03 shows why, and what
# pulls them apart.
#
# | | mask | trained by | notebooks |
# | --- | --- | --- | --- |
# | generate | causal | next-token prediction, before we came | 08 |
# | encode | bidirectional | masked next-token prediction (MNTP), contrastive learning (SSCL) | 02, 03, 07 |
# | infill | MAGNET | missing-span generation (MSG) | 04, 06 |

# %% [markdown]
# ## Exercises
# ### 1 · Two holes (●○○, 3 minutes)
# The text is `I came . I saw . I won .`: nine tokens. We want to infill `came` and `won` (the second and the eighth
# token). Return the span ids, a list of nine numbers: 0 for the context, 1 for the first span, 2 for the second.
#
# <details><summary>Hint</summary>
#
# Count from 0: `came` has index 1, and `won` has index 7.
#
# </details>


# %%
def two_holes():
    ### BEGIN SOLUTION
    return [0, 1, 0, 0, 0, 0, 0, 2, 0]
    ### END SOLUTION


# %%
words = ["I", "came", ".", "I", "saw", ".", "I", "won", "."]
try:
    ids = torch.tensor([two_holes()])
    mask = ml.attention.attention_mask(ids)[0, 0]
    picture = show("mask", mask, words, ids[0].tolist(), title="your mask")
    right = ids[0].tolist() == [0, 1, 0, 0, 0, 0, 0, 2, 0]
    print("as it should be" if right else "not yet: look at the brackets")
except NotImplementedError:
    picture = "two_holes is yours to write"
picture

# %% [markdown]
# ### 2 · From words to the rule (●●○, 5 minutes)
# Write the rule itself for two tokens: may the token at index `query` look at the one at index `key`?
#
# `span_ids` is a list with one number for each token.
#
# <details><summary>Hint</summary>
#
# Two cases lead to yes. One of them looks at `span_ids[key]` alone.
#
# </details>


# %%
def may_look(span_ids, query, key):
    ### BEGIN SOLUTION
    if span_ids[key] == 0:
        return True
    return span_ids[key] == span_ids[query] and key <= query
    ### END SOLUTION


# %%
def mask(span_ids):
    """Your rule for all pairs: (batch, length) -> (batch, length, length)."""
    places = range(span_ids.shape[1])
    return torch.tensor(
        [
            [[may_look(ids, q, k) for k in places] for q in places]
            for ids in span_ids.tolist()
        ]
    )


check.mask(mask)

# %% [markdown]
# ### 3 · What would break? (●○○, 2 minutes)
# Think before you run the next cell: under the MAGNET mask, the context does not see the span. What would go wrong if it
# did?

# %%
span_ids = ml.attention.magnet(row, [[(2, 5)]])
leaky = ml.attention.attention_mask(span_ids)[0, 0]
leaky[span_ids[0] == 0] = True  # the context looks at everything
reached = ml.attention.receptive_field(leaky[None, None], layers=2)[0, 0]
title = "if the context saw the span: ○ is heard of after two layers"
show("mask", leaky, tokens, span_ids[0].tolist(), reach=reached, title=title)

# %% [markdown]
# Look at the row of ` sat`: it does not see ` the`, but a context token does, and ` sat` sees that token. After two layers
# it has heard of every word that it is about to predict. In training the loss would be wonderfully low; in use, where the
# span is not there yet, the model would fail. And what the context computed would change with every word written, so
# nothing of it could be kept.
#
# ## Summary
# - One decoder, one set of weights; the mask alone decides what it can be used for.
# - One rule makes all masks: look at the context, and at what is not after you in your own span.
# - The mask gives the model the right to look; training teaches it to.
#
# ## Do you know now?
# 1. Why can a model under the bidirectional mask not write a text from left to right?
# 2. Two spans in one text: do they see each other?
# 3. What would you have to compute again if the context saw the span?
#
# <details><summary>Answers</summary>
#
# 1. Every token has seen the next one, so "predicting" it is copying, and in use there is nothing to copy.
# 2. No. Each sees the context and itself, so all of them can be written at the same time.
# 3. Everything: keys and values of all context tokens in all layers, after each token that is written.
#
# </details>
#
# **Go on** with 01, the masks in detail. **In the app**: the pages *One decoder, three modes* and *Masks*
# (`magnet-lab app`).
