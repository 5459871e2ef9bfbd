# %% [markdown]
# # 04 · Missing spans
#
# **How does a model that can only go on with a text come to write in the middle of one, and why can it keep what it has
# computed while it does?**
#
# - **You will** turn next-token prediction into infilling by changing a mask and a list of labels; draw spans as the
#   training does; walk through one training example; write a missing span token by token with a cache made by hand, and
#   see that it equals the full pass; fill several blanks at once; and find out how long a blank should be.
# - **You need** notebooks 00 and 01: the rule, span ids, positions with a gap.
# - **Time**: 35 minutes to read, 70 with the exercises; about 25 seconds to run on two cores.
#
# The source is Section 3.2.3 of the MAGNET paper (Khosla et al.) with Equation 4, Section 3.3, and Appendix A for the spans.

# %%
# In Colab, once: %pip install -q magnet-lab
import math

import torch
from transformers import DynamicCache

import magnet_lab as ml
from magnet_lab import attention, decoder, objectives
from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.viz import show
from magnet_lab.viz.views import id_texts

MODEL = "tiny"  # or "small", or "llama-2-7b" where there is a GPU
lab = start(MODEL)
base = lab.use(None)
_ = torch.set_grad_enabled(False)  # nothing is trained in this notebook

# %% [markdown]
# ## The picture
# A story, of which the middle is missing. The tokens in `[ ]` are the **span**: they are to be written, with both sides in
# view.

# %%
left, missing, right = "Tom had a red ball.", " He lost it.", " He was sad."
before = decoder.start_ids(lab.tokenizer) + decoder.text_ids(lab.tokenizer, left)
span = decoder.continuation_ids(lab.tokenizer, missing)
after = decoder.continuation_ids(lab.tokenizer, right)

text = before + span + after  # token ids
begin, end = len(before), len(before) + len(span)  # the span's places
tokens = id_texts(lab.tokenizer, text)
span_ids = attention.magnet(torch.ones(1, len(text)), [[(begin, end)]])
rule = attention.attention_mask(span_ids)[0, 0]
show("mask", rule, tokens, span_ids[0].tolist(), title="rows look, columns are seen")

# %% [markdown]
# Read the rows of the span: each sees all of the context, **also what stands to its right**, and of the span what is already
# written. Now read the columns of the span: no context token looks there. Keep both in mind; the first is why the span can
# fit on both sides, the second why nothing has to be computed twice.
#
# ## From next-token prediction to infilling
# A decoder is trained on one question: given output $l$, which token stands at $l + 1$? The loss is the surprise at the true
# one. **Missing-span generation** (MSG) asks the same question at fewer places, under another mask (Equation 4):
#
# $$\mathcal{L}_\text{MSG} = -\frac{1}{N'} \sum_l \mathbb{1}[\text{token } l+1 \text{ is a span token}] \cdot
# \log p(\text{token } l+1 \mid \text{output at } l)$$
#
# $N'$ is the number of span tokens. (The paper prints $1/N$ with the batch size $N$, and $\mathbb{1}_\text{span}(l)$; that
# output $l$ speaks of token $l + 1$ it says in the caption of Figure 3.)
#
# ### Labels by hand
# Six tokens, of which the third and fourth are the span. Who is asked, and for what?
#
# | place | 0 | 1 | 2 | 3 | 4 | 5 |
# | --- | --- | --- | --- | --- | --- | --- |
# | token | 10 | 11 | **12** | **13** | 14 | 15 |
# | span id | 0 | 0 | 1 | 1 | 0 | 0 |
# | its output is asked for | – | **12** | **13** | – | – | – |
#
# Two places are worth a thought. Output **1** belongs to a *context* token, and it predicts the first token of the span: it
# may, since the context sees nothing of the span. Output **3** belongs to a span token, and is *not* asked for token 14:
# the span can see token 14, so this would be copying.
#
# "Not asked" is written −100, the number that PyTorch's cross entropy leaves out. **As a loop** and **without one**:

# %%
NOT_ASKED = -100


def by_loop(ids, spans):
    labels = []
    for place in range(len(ids)):
        next_is_span = place + 1 < len(ids) and spans[place + 1] > 0
        labels.append(ids[place + 1] if next_is_span else NOT_ASKED)
    return labels


def at_once(ids, spans):  # tensors, (batch, length)
    labels = torch.full_like(ids, NOT_ASKED)
    labels[:, :-1] = torch.where(spans[:, 1:] > 0, ids[:, 1:], NOT_ASKED)
    return labels


print("by hand", [NOT_ASKED, 12, 13, NOT_ASKED, NOT_ASKED, NOT_ASKED])
print("loop   ", by_loop([10, 11, 12, 13, 14, 15], [0, 0, 1, 1, 0, 0]))

# %% [markdown]
# **The library's line** is `views.next_token_labels`, which takes the tokens that are wanted. All three on two hundred random
# texts:

# %%
generator = torch.Generator().manual_seed(0)
agree = 0
for _ in range(200):
    ids = torch.randint(10, 99, (1, 12), generator=generator)
    spans = torch.randint(0, 3, (1, 12), generator=generator)
    loop = torch.tensor([by_loop(ids[0].tolist(), spans[0].tolist())])
    library = ml.views.next_token_labels(ids, spans > 0)
    agree += torch.equal(loop, at_once(ids, spans)) and torch.equal(loop, library)
print(f"loop, no loop and library agree on {agree} of 200 texts")

# %% [markdown]
# ### Next-token prediction is a special case
# Let *everything* be one span. The mask is then causal, and every token but the first is asked for. That is what the model
# was trained with before we came; so transformers' own loss must come out:

# %%
ids = torch.tensor([text])
whole = attention.causal(torch.ones_like(ids))
scores = decoder.logits(base.model, ids.to(base.device), whole.to(base.device)).cpu()
msg = objectives.msg_loss(scores, at_once(ids, whole))
theirs = base.model(ids.to(base.device), labels=ids.to(base.device)).loss
print(f"everything a span: MSG {msg:.5f}, next-token loss of transformers {theirs:.5f}")

# %% [markdown]
# So MSG is no new skill for a decoder. It is the old one, with the context on both sides. The paper counts on this: training
# it keeps the model a writer, while other objectives make it look both ways (Section 3.2.3).
#
# ### True positions
# Every token keeps the position that it has in the whole text, the span's too. While the span is not written, the context
# has a gap there.

# %%
places = decoder.position_ids(span_ids)[0]
print("context", places[span_ids[0] == 0].tolist())
print("span   ", places[span_ids[0] > 0].tolist())

# %% [markdown]
# ## Where do spans come from?
# In training nobody has cut holes into the texts; we draw them. Appendix A: up to two spans a text, 4 to 128 tokens each. Three
# more rules, each of which has a reason:
#
# - a span never starts at a text's first token: nothing stands before it that could predict it;
# - two spans never touch: between them stands at least one context token, which predicts the second one's first token;
# - at least half of a text stays context (our decision): somebody has to know what is missing.

# %%
words = [f" w{n}" for n in range(16)]
generator = torch.Generator().manual_seed(1)
drawn = ml.views.sample_spans(
    torch.ones(6, 16), generator=generator, shortest=2, longest=6
)
for row in drawn.tolist():
    print(ml.viz.strip_text(words, row))

# %% [markdown]
# With the paper's bounds, on a thousand texts of 128 tokens:

# %%
many = ml.views.sample_spans(torch.ones(1000, 128), generator=generator)
share = (many > 0).float().mean(dim=1)
pairs_of_neighbours = (many[:, 1:] > 0) & (many[:, :-1] > 0)
touching = pairs_of_neighbours & (many[:, 1:] != many[:, :-1])
print(
    "texts with one span and with two:", torch.bincount(many.amax(dim=1)).tolist()[1:]
)
print(f"share of a text that is span: mean {share.mean():.2f}, most {share.max():.2f}")
print("texts whose first token is in a span:", int((many[:, 0] > 0).sum()))
print("spans that touch:", int(touching.sum()))

# %%
show("lengths", ml.viz.span_lengths(many), title="lengths of 1000 texts' spans")

# %% [markdown]
# Short ones are more frequent than long ones: the second span has to make do with what the first has left of the half. No
# span has 128 tokens here, since half of 128 is 64; the paper's texts have 512.
#
# ## One training example, step by step
# A small story. `make_views` draws the spans, hides a fifth of the *context* (that is MNTP, notebook
# 02), and writes the labels of both. One pass will serve both losses.

# %%
example = (
    "One day Lily went to the park. She saw a big dog. The dog wanted to play with her."
)
ids = decoder.start_ids(lab.tokenizer) + decoder.text_ids(lab.tokenizer, example)
ids = torch.tensor([ids])
generator = torch.Generator().manual_seed(3)
views = ml.views.make_views(
    ids, torch.ones_like(ids), tokenizer=lab.tokenizer, generator=generator,
    max_spans=1, shortest=4, longest=8,
)  # fmt: skip
read = id_texts(lab.tokenizer, views.input_ids[0].tolist())
hidden = views.selected[0].nonzero()[:, 0].tolist()
print(ml.viz.strip_text(read, views.span_ids[0].tolist(), hidden))

# %% [markdown]
# `[ ]` is the span, `▢` stands before a hidden context token. What is each output asked for?

# %%
names = id_texts(lab.tokenizer, ids[0].tolist())
for place in range(ids.shape[1]):
    for label, objective in ((views.mntp_labels, "MNTP"), (views.msg_labels, "MSG")):
        if label[0, place] != NOT_ASKED:
            kind = "span" if views.span_ids[0, place] > 0 else "context"
            print(f"output {place:2} ({kind:7}, reads {read[place]!r:10}) "
                  f"-> {names[place + 1]!r:10} {objective}")  # fmt: skip

# %% [markdown]
# MNTP is asked of context outputs only; MSG of the context token left of the span, and of the span itself but for its last
# token. Never both of the same output. Now the pass, and the loss of the span **by hand**: look up the probability of each
# true token, take minus the logarithm, and the mean.

# %%
scores = decoder.logits(
    lab.model, views.input_ids.to(lab.device), views.span_ids.to(lab.device)
).float().cpu()  # fmt: skip
asked = (views.msg_labels[0] != NOT_ASKED).nonzero()[:, 0].tolist()
losses, shown = [], [math.nan] * ids.shape[1]
for place in asked:
    probabilities = scores[0, place].softmax(dim=-1)
    probability = float(probabilities[views.msg_labels[0, place]])
    losses.append(-math.log(probability))
    shown[place + 1] = probability
print("by hand", round(sum(losses) / len(losses), 4),
      "  library", round(float(objectives.msg_loss(scores, views.msg_labels)), 4))  # fmt: skip
show("likelihood", read, shown, title="how likely each token of the span was")

# %% [markdown]
# The gradient of this number, together with MNTP's and SSCL's, is what trains the adapter. How that is done is notebook 05;
# here we use the adapter that is there.
#
# ### Does the right side help?
# One story proves nothing. We take forty that nothing here was trained on; the second sentence of each is missing. How surprised is the model by the true one,
# with the left side alone in view (causal), and with both sides (MAGNET)? Perplexity: lower is less surprise.

# %%
from pathlib import Path

file = Path(ml.__file__).parent / "texts" / "plain-stories-held-out.txt"
stories = file.read_text(encoding="utf-8").splitlines()
parts = [story.split(". ") for story in stories]
parts = [story for story in parts if len(story) >= 4][:40]


def perplexity(who, mode):
    log_probs = []
    for story in parts:
        blank = f"{story[0]}. [blank] " + ". ".join(story[2:])
        log_probs += who.score_infill(blank, [story[1] + "."], mode=mode).log_probs
    return float(torch.cat(log_probs).mean().neg().exp())


print(f"{'':12} left only  both sides")
for name, who in {"base model": base, "adapter": lab}.items():
    print(
        f"{name:12} {perplexity(who, 'causal'):9.1f} {perplexity(who, 'infill'):11.1f}"
    )

# %% [markdown]
# Look at the base model's row first: it is *shown* the right side, and is the worse for it. It has never looked ahead, and
# what comes from there disturbs it. The mask gives a right; the skill must be learnt. Then compare the two rows in
# the column "both sides": that is what the training has changed. What the right side is worth to the adapter stands in its own
# row; with a model as small as `tiny` it may be little.
#
# ## Writing a span, step by step
# In training the span is there, and one pass asks for all of its tokens. In use it is not. We write it as any text, token
# by token; but the context, on both sides, is there from the start and can be read **once**.
#
# The plan, for a gap of $m$ tokens between a left side of $p$ and the right side:
#
# 1. Read the context in one pass: everybody sees everybody, positions $0 \dots p-1$ and $p+m, p+m+1, \dots$ Keep all keys and
#    values (the *cache*). The output at $p - 1$ gives the scores of the span's first token.
# 2. Choose a token. Feed it alone, at its place $p$; it sees the whole cache and itself. Its output gives the scores of the
#    next.
# 3. And so on, until $m$ tokens are written.

# %%
show("infilling", tokens, span_ids[0].tolist(), title="what is computed when")

# %% [markdown]
# All of it in one small function. A token that is fed looks at everything in the cache and at what `mask` says of the fed
# tokens themselves.


# %%
def run(who, ids, positions, mask, cache=None):
    """One pass over some tokens: their scores (tokens, vocabulary), and the cache."""
    cache = DynamicCache() if cache is None else cache
    output = who.model(
        input_ids=torch.tensor([ids], device=who.device),
        position_ids=torch.tensor([positions], device=who.device),
        attention_mask=decoder.backend_mask(who.model, mask[None, None].to(who.device)),
        past_key_values=cache,
        use_cache=True,
    )
    return output.logits[0].float().cpu(), cache


def everybody(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool)


# %% [markdown]
# To compare with the full pass we "write" the true span, whatever the model would have chosen.

# %%
context = before + after
gap = len(span)
positions = [*range(begin), *range(end, len(text))]
scores, cache = run(lab, context, positions, everybody(len(context), len(context)))
by_steps = [scores[begin - 1]]  # of the span's first token
print(f"context: {len(context)} tokens read at", positions)
for step, token in enumerate(span[:-1], start=1):
    keys = len(context) + step
    scores, cache = run(lab, [token], [begin + step - 1], everybody(1, keys), cache)
    by_steps.append(scores[0])
    print(
        f"step {step}: fed {tokens[begin + step - 1]!r} at {begin + step - 1}, saw {keys} keys"
    )
by_steps = torch.stack(by_steps)

# %% [markdown]
# And now the **full pass**, as in training: all tokens at once, under the rule. The scores of the span's tokens stand one
# place to the left of them.

# %%
full, full_cache = run(lab, text, list(range(len(text))), rule)
difference = (by_steps - full[begin - 1 : end - 1]).abs().max()
print(f"scores up to {full.abs().max():.1f}; largest difference {difference:.6f}")

# %% [markdown]
# Nothing but rounding. Step by step with a cache is not an approximation of the masked pass, it *is* the masked pass, in
# another order.
#
# Why does this work? Because the context's keys and values are the same, whether the span is there or not. We can look at
# them, in every layer:


# %%
def only(cache, places):
    """Of a cache the keys and values of some places, all layers: a list of tensors."""
    places = list(places)
    return [
        side[:, :, places]
        for layer in cache.layers
        for side in (layer.keys, layer.values)
    ]


def largest_change(one, other):
    return max(float((a - b).abs().max()) for a, b in zip(one, other, strict=True))


kept = only(cache, range(len(context)))  # read without the span
passed = only(full_cache, positions)  # from the full pass, in which the span was there
print(f"{len(cache.layers)} layers, largest change {largest_change(kept, passed):.6f}")

# %% [markdown]
# ### The library's lines
# `spans.read_context` and `spans.write_token` are the two steps, for a batch. `blanks.template` turns a text with blanks into
# ids and anchors (the token left of each blank).

# %%
plan = ml.blanks.template(lab.tokenizer, f"{left} [blank:{gap}]{right}")
cache, first = ml.spans.read_context(lab.model, plan, torch.tensor([[gap]]))
library = [first[0, 0]]
for step, token in enumerate(span[:-1], start=1):
    place = torch.tensor([begin + step - 1], device=lab.device)
    fed = torch.tensor([token], device=lab.device)
    library.append(ml.spans.write_token(lab.model, cache, fed, place)[0])
difference = (torch.stack(library).float().cpu() - by_steps).abs().max()
print("same context:", list(plan.ids) == context, f"  difference {difference:.6f}")

# %% [markdown]
# `lab.infill` does this, with the likeliest token each time:

# %%
result = lab.infill(f"{left} [blank:{gap}]{right}")
print(result.text)
chosen = result.candidates[0].spans[0]
for token, log_prob in zip(chosen.tokens, chosen.log_probs, strict=True):
    print(f"{token!r:10} probability {math.exp(log_prob):.2f}")

# %% [markdown]
# It stops after so many tokens, whether the sentence is finished or not; how long a blank should be is a question of its own,
# further down.
#
# What is saved? Without a cache each step would be a pass over everything that is there. Count tokens computed, for a context
# of 500:

# %%
for m in (1, 8, 32, 128):
    with_cache = 500 + (m - 1)
    without = sum(500 + written for written in range(m))
    print(
        f"{m:3} tokens to write: {with_cache:5} computed, without a cache {without:6}"
    )

# %% [markdown]
# ## Several blanks at once
# Two spans do not see each other. So, given the context, they are independent, and can be written side by side: each is a row
# of one batch, with a copy of the same cache. Check it on the full pass: exchange the *first* span's tokens, and look whether
# the scores of the *second* move.

# %%
pieces = ["Tom had a", " red ball", " and lost it. He was", " very sad", " at night."]
made = [decoder.start_ids(lab.tokenizer) + decoder.text_ids(lab.tokenizer, pieces[0])]
made += [decoder.continuation_ids(lab.tokenizer, piece) for piece in pieces[1:]]
numbers = [n for n, ids in zip((0, 1, 0, 2, 0), made, strict=True) for _ in ids]
two = attention.attention_mask(torch.tensor([numbers]))[0, 0]
two_blanks = [token for ids in made for token in ids]
second = numbers.index(2) - 1  # its first token is predicted here
exchanged = [
    two_blanks[0] if n == 1 else token
    for token, n in zip(two_blanks, numbers, strict=True)
]

# %%
places = list(range(len(two_blanks)))
causal = torch.ones(len(two_blanks), len(two_blanks)).tril().bool()
for name, mask in {"the rule": two, "causal": causal}.items():
    moved = run(lab, exchanged, places, mask)[0] - run(lab, two_blanks, places, mask)[0]
    print(f"{name:8} scores of the second span move by {moved[second].abs().max():.6f}")

# %% [markdown]
# Under the rule not at all: the second span does not know what the first one says. That is what lets them be written at the
# same time, and it has a price, for they cannot agree with each other either. Where they must, fill one after the other
# (`sequential=True`): what is written becomes context for the next.

# %%
story = "Lily had a [blank:1]. Every day she played with her [blank:1] in the garden."
together = lab.infill(story)
print("side by side ", together.spans, together.text)
one_by_one = lab.infill(story, sequential=True)
print("one by one   ", one_by_one.spans, one_by_one.text)

# %% [markdown]
# (One by one *may* write other words in the second blank than side by side; in a given story it need not.)
#
# Side by side and alone must give the same words, since no row of the batch knows of the others. On ten stories with two
# blanks:

# %%
same = 0
for story in parts[:10]:
    blanks = f"{story[0]}. [blank:4] {story[2]}. [blank:4] {story[-1]}"
    both = ml.blanks.template(lab.tokenizer, blanks)
    every = [
        *ml.spans.decode(lab.model, lab.tokenizer, both, [0, 1], 1, ml.spans.Sampling())
    ][-1]
    alone = [[*ml.spans.decode(lab.model, lab.tokenizer, both, [n], 1, ml.spans.Sampling())][-1]
             for n in (0, 1)]  # fmt: skip
    same += every.tokens == [row.tokens[0] for row in alone]
print(f"written side by side and alone, the same tokens: {same} of 10")

# %% [markdown]
# ## How long is a blank?
# The width of the gap is part of the question: it sits in the positions before the first word is written. If we do not know
# it, we try several. Each length is a row of its own, with a gap of its own; the context has to be read once for each.

# %%
question = "Tom had a red ball. He lost [blank:{}] and he was very sad."
print(" tokens   mean    sum")
for length in range(1, 7):
    found = lab.infill(question.format(length)).candidates[0]
    total = sum(found.spans[0].log_probs)
    print(f"{length:7} {total / length:6.2f} {total:6.2f}  {found.text}")

# %% [markdown]
# Which is best? The *sum* of log-probabilities is the logarithm of the whole span's probability, and every further token can
# only lower it. So it has a taste for short spans, whatever they say. The **mean** asks how likely a token is, on average, and
# can compare spans of unlike length. Is this a matter of one example? On twenty stories, in which the last two words of the
# second sentence are missing, 1 to 6 tokens tried:

# %%
wins = {"sum": [0] * 6, "mean": [0] * 6}
for story in parts[:20]:
    opening = " ".join(story[1].split()[:-2])
    blank = f"{story[0]}. {opening} [blank:1-6]. " + ". ".join(story[2:])
    layout = ml.blanks.template(lab.tokenizer, blank)
    rows = [
        *ml.spans.decode(lab.model, lab.tokenizer, layout, [0], 1, ml.spans.Sampling())
    ][-1]
    sums = [sum(log_probs) for log_probs in rows.log_probs]
    means = [sum(log_probs) / len(log_probs) for log_probs in rows.log_probs]
    wins["sum"][sums.index(max(sums))] += 1
    wins["mean"][means.index(max(means))] += 1
for name, counts in wins.items():
    print(
        f"best by {name:4}: ",
        "  ".join(f"{n + 1} tokens {c:2}" for n, c in enumerate(counts)),
    )

# %% [markdown]
# The library tries all lengths of a range side by side and ranks by the mean. (It also prefers what *fits*: a sentence should
# end, two marks should not stand side by side.)

# %%
for candidate in lab.infill(question.format("1-6"), num_candidates=6).candidates:
    print(f"{candidate.score:6.2f}  {candidate.text}")

# %% [markdown]
# Neither rule knows whether the answer makes sense, and the mean has a weakness of its own: sure tokens lift it, so that a long
# span of commonplaces can beat a short one that fits. Read the list above with this in mind. Table 4 of the paper asks for the
# perplexity of the *true* line, where no length has to be guessed; notebook 06 takes it up.
#
# Try texts of your own; `[blank]` searches the length, `[blank:3]` fixes it.

# %% tags=["interactive"]
from magnet_lab import widgets

widgets.infill_playground(lab, "Tom had a red ball. [blank] He was very sad.")

# %% [markdown]
# ## What would break?
# Three short cuts that look harmless. For each we write the true span of twenty stories step by step, and compare with the
# full pass under the rule: how far off are the scores, and how much likelier or less likely does the true sentence become?
#
# - **The context is read causally**, as an ordinary prompt would be, and then kept.
# - **No gap**: the right side is put directly after the left, and the span at the end of everything.
# - **The context saw the span** when the cache was made (another span stood there: a draft that was thrown away), and the
#   cache is kept all the same.


# %%
def written(who, before, span, after, how="the rule"):
    """Scores of the span's tokens, by steps: (span, vocabulary)."""
    context, begin, gap = before + after, len(before), len(span)
    gap = 0 if how == "no gap" else gap
    places = [*range(begin), *range(begin + gap, len(context) + gap)]
    mask = everybody(len(context), len(context))
    mask = mask.tril() if how == "context read causally" else mask
    first = len(context) if how == "no gap" else begin  # the span's first place
    if how == "context saw a draft":
        scores, cache = saw_a_draft(who, before, span, after)
    else:
        scores, cache = run(who, context, places, mask)
    rows = [scores[begin - 1]]
    for step, token in enumerate(span[:-1]):
        seen = everybody(1, len(context) + step + 1)
        rows.append(run(who, [token], [first + step], seen, cache)[0][0])
    return torch.stack(rows)


def saw_a_draft(who, before, span, after):
    """A pass in which all see all, a draft in the gap; then the draft is cut out."""
    line = before + [before[-1]] * len(span) + after
    scores, cache = run(
        who, line, list(range(len(line))), everybody(len(line), len(line))
    )
    kept = [*range(len(before)), *range(len(before) + len(span), len(line))]
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[:, :, kept], layer.values[:, :, kept]
    return scores[kept], cache


# %%
trials = []
for story in parts[:20]:
    ids = decoder.start_ids(lab.tokenizer) + decoder.text_ids(
        lab.tokenizer, story[0] + "."
    )
    rest = " " + ". ".join(story[2:])
    trials.append((ids, decoder.continuation_ids(lab.tokenizer, f" {story[1]}."),
                   decoder.continuation_ids(lab.tokenizer, rest)))  # fmt: skip
ways = ["the rule", "context read causally", "no gap", "context saw a draft"]
log_probs, off = {way: [] for way in ways}, dict.fromkeys(ways, 0.0)
for before_ids, span_tokens, after_ids in trials:
    line = before_ids + span_tokens + after_ids
    place = (len(before_ids), len(before_ids) + len(span_tokens))
    mask = attention.attention_mask(
        attention.magnet(torch.ones(1, len(line)), [[place]])
    )
    full = run(lab, line, list(range(len(line))), mask[0, 0])[0][
        place[0] - 1 : place[1] - 1
    ]
    for way in ways:
        scores = written(lab, before_ids, span_tokens, after_ids, way)
        off[way] = max(off[way], float((scores - full).abs().max()))
        true = torch.tensor(span_tokens)[:, None]
        log_probs[way].append(scores.log_softmax(dim=-1).gather(1, true)[:, 0])

# %%
print(f"{'':22} largest difference   perplexity of the true sentences")
for way in ways:
    value = float(torch.cat(log_probs[way]).mean().neg().exp())
    print(f"{way:22} {off[way]:14.4f} {value:24.1f}")

# %% [markdown]
# Only the first row is the model that was trained. The others give no error and no warning; the scores are simply those of a
# question that nobody has asked the model before. How dear each is depends on the model; that each is *wrong* does not.
#
# - A context that is read **causally** has left tokens that have never heard of the right side. The span still sees the right
#   side, so that the damage may be small and the mistake goes unnoticed for long.
# - Without a **gap** what follows the blank stands in the wrong place, and the span at the end of the text: the model is asked
#   to go on, not to fill in.
# - A context that has **seen** a draft holds it in its keys and values: the span sees, at second hand, words that are no
#   longer there. Under the rule this cannot happen, and that is why the cache stays valid.
#
# A fourth short cut is one in training: let the first span see the second, "the model can only gain by it". We exchange the
# *second* span and look at the scores inside the *first*:

# %%
first_span, second_span = torch.tensor(numbers) == 1, torch.tensor(numbers) == 2
nosy = two | (first_span[:, None] & second_span[None, :])
exchanged = [
    two_blanks[0] if n == 2 else token
    for token, n in zip(two_blanks, numbers, strict=True)
]
inside = numbers.index(1)  # the first span's first token predicts its second
for name, mask in {"the rule": two, "nosy": nosy}.items():
    moved = run(lab, exchanged, places, mask)[0] - run(lab, two_blanks, places, mask)[0]
    print(f"{name:8} scores of the first span move by {moved[inside].abs().max():.6f}")

# %% [markdown]
# A nosy span hangs on words that are not there yet when it is written, so that training would prepare it for a question which
# is never asked; and two blanks could no longer be written side by side.
#
# Last, the generous mask of notebook 01, seen from the cache: if the context looks at the span, then each new word changes what
# the context computes, and nothing may be kept.

# %%
generous = rule.clone()
generous[span_ids[0] == 0] = True  # the context looks at everything
other = text.copy()
other[begin + 1] = text[begin]  # the second word of the span is exchanged
for name, mask in {"the rule": rule, "generous": generous}.items():
    caches = [run(lab, ids, list(range(len(text))), mask)[1] for ids in (text, other)]
    change = largest_change(*(only(cache, positions) for cache in caches))
    print(f"{name:8} the context's keys and values move by up to {change:.6f}")

# %% [markdown]
# ## Exercises
# ### 1 · The labels (●●○, 10 minutes)
# Write the labels of MSG for a batch, `(batch, length)`: at $l$ the token at $l + 1$ if that is a span token, else −100. There
# is padding now (span id −1), on either side; a text's first token has nothing before it but padding, so it is not asked for.
#
# <details><summary>Hint</summary>
#
# `at_once` above, with one more condition. `(span_ids != -1).cumsum(dim=1)` counts a text's tokens: 1 at its first.
#
# </details>


# %%
def msg_labels(input_ids, span_ids):
    ### BEGIN SOLUTION
    number = (span_ids != -1).cumsum(dim=1)
    wanted = (span_ids > 0) & (number > 1)
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = torch.where(wanted[:, 1:], input_ids[:, 1:], -100)
    return labels
    ### END SOLUTION


# %%
check.msg_labels(msg_labels)

# %% [markdown]
# ### 2 · Draw the spans (●●●, 25 minutes)
# Draw the span ids of a text of `length` tokens, `(length,)` integers: one to `max_spans` spans, as many as fit, of `shortest`
# to `longest` tokens each, every length and every place possible. No span at the first token; no two that touch; at least
# half of the text stays context; none at all where not one fits. All random numbers come from `generator`:
# `torch.randint(low, high, (), generator=generator)` draws from low … high − 1.
#
# <details><summary>Hint</summary>
#
# For each span: the room that is left (`length // 2`, less what is taken); a length no longer than that; then list all starts
# at which the span and the token on each side of it are free, and draw one. Stop where there is none.
#
# </details>


# %%
def sample_spans(length, max_spans, shortest, longest, generator):
    ### BEGIN SOLUTION
    def draw(low, high):  # low … high
        return int(torch.randint(low, high + 1, (), generator=generator))

    span_ids = torch.zeros(length, dtype=torch.long)
    room = length // 2
    for number in range(1, draw(1, max_spans) + 1):
        if room < shortest:
            break
        size = draw(shortest, min(longest, room))
        starts = [
            start
            for start in range(1, length - size + 1)
            if not span_ids[start - 1 : start + size + 1].any()
        ]
        if not starts:
            break
        start = starts[draw(0, len(starts) - 1)]
        span_ids[start : start + size] = number
        room -= size
    return span_ids
    ### END SOLUTION


# %%
check.sample_spans(sample_spans)

# %% [markdown]
# ### 3 · One step of writing (●●○, 10 minutes)
# A context of `context_length` tokens, on both sides of a gap of `span_length`; `anchor` is the index of the context token left
# of the gap. In step `step` (1, 2, …) token number `step` of the span is fed. Return three things: the position ids of the
# context, a list; the position of the fed token; and how many keys it sees, its own among them.
#
# <details><summary>Hint</summary>
#
# Look at what the cell of the section "Writing a span" printed: `begin` there is `anchor + 1`.
#
# </details>


# %%
def infill_step(context_length, anchor, span_length, step):
    ### BEGIN SOLUTION
    positions = [
        place if place <= anchor else place + span_length
        for place in range(context_length)
    ]
    return positions, anchor + step, context_length + step
    ### END SOLUTION


# %%
check.infill_step(infill_step)

# %% [markdown]
# ### 4 · Which length is best? (●○○, 5 minutes)
# Given a list of tensors, for each candidate the log-probabilities of its tokens, return the candidates' indices, best first,
# by the mean.
#
# <details><summary>Hint</summary>
#
# `sorted(range(len(log_probs)), key=…)`. Which end of the scale is the best?
#
# </details>


# %%
def rank_candidates(log_probs):
    ### BEGIN SOLUTION
    scores = [float(candidate.mean()) for candidate in log_probs]
    return sorted(range(len(scores)), key=lambda index: scores[index], reverse=True)
    ### END SOLUTION


# %%
check.rank_candidates(rank_candidates)

# %% [markdown]
# ## Summary
# - Missing-span generation is next-token prediction with context on both sides: another mask, fewer labels.
# - The first token of a span is predicted by the context token left of it; the token after a span is not asked for.
# - Spans are drawn: not at the start, not touching, and half of the text stays context.
# - The context never sees the span, so its keys and values are the same with the span and without it. Read it once, keep it,
#   and write token by token: the scores are those of the full masked pass.
# - Several blanks, several lengths, several candidates: rows of one batch.
# - Spans of unlike length are compared by the mean log-probability of a token.
#
# ## Do you know now?
# 1. Which output predicts the first token of a span, and why is it no cheating?
# 2. Why is the output of a span's last token asked for nothing?
# 3. What has to be computed again after each written token?
# 4. Two blanks are filled side by side, and say things that contradict each other. Why, and what can you do?
# 5. Why must the length of the gap be known before the first token is written?
# 6. Why is the sum of log-probabilities a bad judge of lengths?
#
# <details><summary>Answers</summary>
#
# 1. That of the context token left of it. It sees the context and nothing of any span.
# 2. The next token is context, which the span can see: the answer would lie open.
# 3. Nothing but the new token itself; the cache grows by its keys and values.
# 4. Spans do not see each other. Fill them one after the other: `sequential=True`.
# 5. The right side's positions depend on it, and with them all keys that are kept.
# 6. Every token can only lower it, so that short spans win.
#
# </details>
#
# **Go on** with 05, joint training: the three objectives in one step. **In the app**: the page *Infill*, where you see every
# candidate and its score, and *One decoder, three modes* (`magnet-lab app`).
