# %% [markdown]
# # 06 · Infilling stories
#
# **Can one ask a language model in words for a missing sentence, and what is gained by looking at both sides?**
#
# - **You will** ask for a missing sentence in four ways, and after five solved examples; see how a blank finds its
#   length; measure how likely the *true* sentence is, with an interval; and count copies.
# - **You need** notebook 04 (missing spans). Notebook 05 made an adapter; here we use the one that comes with the
#   model.
# - **Time**: 30 minutes to read, 65 with the exercises; runs in about a minute on two cores.
#
# The sources are Section 4.3 and Appendix B of the MAGNET paper (Khosla et al.), Tables 4, 9 and 10.

# %%
# In Colab, once: %pip install -q magnet-lab
import json
import warnings

import numpy as np
import torch
from IPython.display import display

import magnet_lab as ml
from magnet_lab.baselines import BASELINES
from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.data.rows import TEXTS
from magnet_lab.evaluation import infilling, reproduce
from magnet_lab.evaluation.experiment import SHIPPED, bootstrap
from magnet_lab.evaluation.judgement import wilson
from magnet_lab.viz import show

MODEL = "tiny"  # or "small", or "llama-2-7b" where there is a GPU
lab = start(MODEL)
base = lab.use(None)
warnings.showwarning = lambda message, *_, **__: print("note:", message)

# %% [markdown]
# ## The picture
# A story of five sentences, of which the second is missing. Row and column 2 stand for what is to be written there.

# %%
five = ["first", " second", " third", " fourth", " fifth"]
modes = {"left only": [1, 1, 1, 1, 1], "both sides (MAGNET)": [0, 1, 0, 0, 0]}
show("modes", five, modes, title="What may the second sentence look at?")

# %% [markdown]
# Under the causal mask it sees the first sentence and itself. Under the MAGNET mask it sees how the story ends. A model
# that reads from left to right can be shown the end as well, if one puts the end *before* the place where it goes on:
# that is a prompt. So there are three rivals:
#
# | | sees the right side | has been trained for it |
# | --- | --- | --- |
# | the base model, from left to right | no | yes: it is what it always does |
# | the base model, asked by a prompt | yes, as text before the answer | no |
# | MAGNET | yes, by its mask | yes |
#
# ## The stories
# They come with the project, and nothing was trained on them. From each we take one of the middle sentences, at random.

# %%
texts = (TEXTS / "plain-stories-held-out.txt").read_text(encoding="utf-8").splitlines()
stories = infilling.remove_sentences(texts, seed=0)
stories = [story for story in stories if not story.text.endswith("[blank]")]
print(len(stories), "stories; the first one, and what is missing from it:")
print(stories[0].text)
print(stories[0].fills[0])

# %% [markdown]
# ## Asking in words
# Appendix B.1 prints four prompts. Here they are for our story, up to where the model goes on.

# %%
prompts = ("blank infilling", "contextual", "prefix-suffix", "line-by-line")
for prompt in prompts:
    asked = BASELINES[
        "zero-shot" if prompt == "line-by-line" else f"zero-shot, {prompt}"
    ](lab)
    print(f"--- {prompt}\n{asked.prompt(stories[0].text)}\n")

# %% [markdown]
# With **five-shot** prompts (Appendix B.2) five solved questions of the same kind stand before the real one. The last
# solved one and the question:

# %%
five_shot = BASELINES["five-shot"](lab)
print("…", "\n\n".join(five_shot.prompt(stories[0].text).split("\n\n")[-4:]))

# %% [markdown]
# A model asked in words writes on and on. What counts as its answer is the first sentence of the first line. Now all
# systems side by side, on the first three stories, whatever comes:

# %%
systems = {
    "left only": BASELINES["unidirectional"](lab),
    "blank infilling": BASELINES["zero-shot, blank infilling"](lab),
    "contextual": BASELINES["zero-shot, contextual"](lab),
    "prefix-suffix": BASELINES["zero-shot, prefix-suffix"](lab),
    "line-by-line": BASELINES["zero-shot"](lab),
    "five-shot": five_shot,
    "MAGNET": lab,
}
COUNT = 12  # stories for which all systems write
written = {}
for name, system in systems.items():
    written[name] = [system.infill(story.text).spans[0] for story in stories[:COUNT]]
written["true sentence"] = [story.fills[0] for story in stories[:COUNT]]

# %%
for number in range(3):
    print(stories[number].text)
    for name, sentences in written.items():
        print(f"  {name:16} {sentences[number][:90]}")
    print()

# %% [markdown]
# A model of five million parameters that has read children's stories has never seen a request: do not expect it to
# answer one. `MODEL = "small"` knows more. And this is what LLaMA-2-7B wrote, the paper's model (Tables 9 and 10, one
# of the stories there):

# %%
published = reproduce.published()
printed = {f"Table {n}": published[f"table{n}"]["texts"] for n in (9, 10)}
shown = list(printed["Table 9"])[1]
print(shown)
for table, found in printed.items():
    for system, sentence in found[shown].items():
        print(f"  {table:8} {system:16} {sentence}")

# %% [markdown]
# The paper's judgement: without examples the model repeats one of the lines or sums up the story; five examples help.
# We shall count that. First, two questions: where does MAGNET's answer get its length from, and how does one measure at
# all whether an infill is good?
#
# ## How a blank finds its length
# Under the MAGNET mask the model is told how many tokens are missing, by the gap in the positions (notebook 01). But
# nobody knows how many there should be. So several lengths are tried, and what was written is compared. By what?
#
# **By hand.** Three candidates with the probabilities of their tokens:

# %%
candidates = {
    "He ran .": [0.4, 0.3, 0.5],
    "He": [0.2],
    "He ran home .": [0.4, 0.3, 0.5, 0.5],
}
for text, probabilities in candidates.items():
    product = 1.0
    for probability in probabilities:
        product *= probability
    mean = sum(np.log(probabilities)) / len(probabilities)
    print(f"{text:14} product {product:.3f}   mean log-probability {mean:.3f}")

# %% [markdown]
# The product is the probability of the whole text, and it prefers `He`: each further token is a factor below 1, so that
# a long text can hardly win. The mean of the logarithms asks how likely a token was *on average*, and prefers the whole
# sentence. The same without a loop, and by the library:

# %%
means = [float(torch.tensor(found).log().mean()) for found in candidates.values()]
print("means", [round(mean, 3) for mean in means])
real = lab.infill(stories[0].text).candidates[0]
by_hand = sum(real.spans[0].log_probs) / len(real.spans[0].log_probs)
print(f"a real infill: by hand {by_hand:.5f}, library {real.score:.5f}")

# %% [markdown]
# ### With a real blank
# `[blank]` in place of a sentence tries eight lengths from 5 to 20 tokens. We ask for each of them by itself,
# `[blank:5]` and so on, and look at what comes.

# %%
plan = ml.blanks.template(lab.tokenizer, stories[0].text)
widths = ml.spans.gap_layouts(plan)[:, 0].tolist()


def one_by_one(story):
    """What is written at each length: a list of spans."""
    texts = [story.text.replace("[blank]", f"[blank:{width}]") for width in widths]
    return [lab.infill(text).candidates[0].spans[0] for text in texts]


tried = [one_by_one(story) for story in stories[:COUNT]]

# %%
print(f"{'tokens':>6} {'sum':>7} {'mean':>7}  fits")
for width, span in zip(widths, tried[0], strict=True):
    fits = "yes" if plan.blanks[0].fits(span.text) else "no"
    print(
        f"{width:>6} {sum(span.log_probs):7.2f} {span.score:7.2f}  {fits:5}{span.text}"
    )

# %% [markdown]
# Three things to see. The *sum* falls with the length, with few exceptions. The *mean* does not. And many lengths stop
# in the middle of a sentence. (A `no` beside a text that does end: it says two words twice, which the library does
# not count as fitting.) The library therefore goes by three rules: a fill that ends as a sentence should comes
# before one that does not; one that stops within a sentence is cut back to its last full stop; and then the mean
# decides.

# %%
figure = ml.viz.palette.card(7.2, 3.0)
left, right = figure.subplots(1, 2)
for axes, values, name in (
    (left, [sum(span.log_probs) for span in tried[0]], "sum of log-probabilities"),
    (right, [span.score for span in tried[0]], "mean log-probability"),
):
    ends = [plan.blanks[0].fits(span.text) for span in tried[0]]
    axes.plot(widths, values, color="#6B6B6B", linewidth=1)
    for width, value, whole in zip(widths, values, ends, strict=True):
        axes.plot(width, value, "o" if whole else "x", color="#16405F", markersize=8)
    axes.set_xlabel("length in tokens")
    axes.set_title(name, fontsize=10)
title = "First story (● fits as a sentence, × does not)"
figure.suptitle(title)
ml.viz.picture.Picture(figure, f"{title}: the numbers of the table above")

# %% [markdown]
# **The library's line** tries all lengths as one batch. Is its choice one of ours, or the beginning of one?

# %%
chosen = [lab.infill(story.text).candidates[0].spans[0] for story in stories[:COUNT]]
same = 0
for best, ours in zip(chosen, tried, strict=True):
    same += any(span.ids[: len(best.ids)] == best.ids for span in ours)
print(f"the first story: {chosen[0].text.strip()}")
print(f"one of ours, or the beginning of one: {same} of {COUNT}")

# %% [markdown]
# ## What would break?
# Let us rank by the sum, which is after all the probability of the text. Over all our stories:


# %%
def whole(span):
    return plan.blanks[0].fits(span.text)


rankings = {
    "by the sum": [max(ours, key=lambda span: sum(span.log_probs)) for ours in tried],
    "by the mean": [max(ours, key=lambda span: span.score) for ours in tried],
    "library": chosen,
}

# %%
for name, picked in rankings.items():
    shortest = np.mean([len(span.ids) == widths[0] for span in picked])
    ends = np.mean([whole(span) for span in picked])
    length = np.mean([len(span.ids) for span in picked])
    print(f"{name:12} mean length {length:4.1f} tokens;", end=" ")
    print(f"the shortest {shortest:4.0%}, whole sentences {ends:4.0%}")
true = [ml.decoder.continuation_ids(lab.tokenizer, " " + s.fills[0]) for s in stories]
print(f"true sentences: mean length {np.mean([len(ids) for ids in true]):4.1f} tokens")

# %% [markdown]
# Ranked by the sum, the shortest wins again and again, whether it is a sentence or not. The mean alone does not mind
# the length, and does not mind a sentence that breaks off either: that is what the first two rules are for.
#
# ## How likely is the true sentence?
# To judge an infill one needs a reader. Something simpler can be measured without any: take the sentence that *was*
# there, and ask how much it surprises the model. **Perplexity** is that surprise as a number of choices: a perplexity
# of 20 means that the model wavers as between 20 equally likely tokens. It is the measure of Table 4; only the tokens
# of the missing sentence count.
#
# **By hand**: three tokens of probability ½, ½ and ⅛. Their geometric mean is the third root of 1/32, so the perplexity
# is the third root of 32.

# %%
probabilities = [1 / 2, 1 / 2, 1 / 8]
by_hand = 32 ** (1 / 3)
surprise = 0.0
for probability in probabilities:
    surprise -= np.log(probability)
by_loop = np.exp(surprise / len(probabilities))
at_once = float(torch.tensor(probabilities).log().mean().neg().exp())
print(f"by hand {by_hand:.4f}, loop {by_loop:.4f}, without a loop {at_once:.4f}")

# %% [markdown]
# Now a real sentence, with the story on both sides, and with the left side alone. **The library's line** is
# `score_infill`; the same words are scored both ways, so that nothing but the mask differs.

# %%
story = stories[0]
for mode in ("causal", "infill"):
    score = lab.score_infill(story.text, story.fills, mode=mode)
    ours = float(score.log_probs[0].mean().neg().exp())
    print(f"{mode:7} perplexity {score.perplexity:.2f}, from its numbers {ours:.2f}")

# %%
before, after = (side.strip() for side in story.text.split("[blank]"))
left, right = (ml.viz.token_texts(lab.tokenizer, side) for side in (before, after))
ids = ml.decoder.continuation_ids(lab.tokenizer, " " + story.fills[0])
middle = [
    ml.decoder.decode_after(lab.tokenizer, ids[:i], [token])
    for i, token in enumerate(ids)
]
for mode, name in (("causal", "left only"), ("infill", "both sides")):
    found = lab.score_infill(story.text, story.fills, mode=mode).log_probs[0].exp()
    nothing = [[float("nan")] * len(side) for side in (left, right)]
    values = [*nothing[0], *found.tolist(), *nothing[1]]
    display(show("likelihood", [*left, *middle, *right], values, title=name))

# %% [markdown]
# Compare the tokens in the two pictures: the brighter, the likelier. A single story tells what happened in a single
# story.
#
# ### Over many stories: Table 4
# Four rows: the base model from the left, as in the paper; the base model under a mask that it was never trained with;
# the adapter, left only; the adapter, both sides.

# %%
MANY = 80
rows = {
    "base": (base, "causal"),
    "base under the MAGNET mask": (base, "infill"),
    "MAGNET, left context only": (lab, "causal"),
    "MAGNET": (lab, "infill"),
}
scores = {
    row: [
        who.score_infill(s.text, s.fills, mode=mode).log_probs[0]
        for s in stories[:MANY]
    ]
    for row, (who, mode) in rows.items()
}

# %% [markdown]
# How sure can we be of a number from 80 stories? With other 80 it would be another. The **bootstrap** makes other
# eighties out of the ones we have: draw 80 stories *with replacement*, so that some come twice and some not at all,
# measure again, a thousand times. The middle 95 % of what comes is the interval.


# %%
def by_loop(units, draws=1000):
    generator, values = np.random.default_rng(0), []
    for _ in range(draws):
        drawn = generator.integers(len(units), size=len(units))
        values.append(infilling.perplexity([units[place] for place in drawn]))
    return np.percentile(values, [2.5, 97.5])


low, high = by_loop(scores["MAGNET"])
library = bootstrap(scores["MAGNET"], infilling.perplexity)
print(f"by loop {low:.3f} to {high:.3f}")
print(f"library {library.low:.3f} to {library.high:.3f}")
print("equal:", np.allclose([low, high], [library.low, library.high]))

# %%
column = "perplexity of the missing sentence"
measured = {
    row: {column: bootstrap(found, infilling.perplexity)}
    for row, found in scores.items()
}
show("results", measured, title=f"Perplexity of the true sentence, {MANY} stories")

# %% [markdown]
# Why draw stories, and not tokens? The tokens of a story may stand and fall together: a story about a barbell surprises
# at every turn. To draw single tokens would then pretend that there are as many independent witnesses as tokens, and
# the interval would come out too narrow. Is it so here?

# %%
tokens = [token[None] for token in torch.cat(scores["MAGNET"])]
pretended = bootstrap(
    tokens, lambda drawn: infilling.perplexity([torch.cat(drawn)]), draws=300
)
for name, found in {"stories": library, "tokens": pretended}.items():
    width = found.high - found.low
    print(f"drawing {found.n:5} {name}: {found.low:.1f} to {found.high:.1f},", end=" ")
    print(f"{width:.1f} wide")

# %% [markdown]
# If the second interval is clearly narrower, that was the pretence. If it is about as wide, or even wider, then
# each of these short sentences has easy and hard tokens of its own, and nothing would have been lost. One cannot know
# before; so one draws what was sampled, and that was stories.
#
# ### Is the difference real?
# The intervals of two rows may overlap although one is better on almost every story: hard stories are hard for both.
# The same stories were scored in both rows, so let us draw *pairs*, and look at the ratio of the two perplexities. An
# interval that does not hold 1 says that there is a difference.


# %%
def ratio(pairs):
    one, other = zip(*pairs, strict=True)
    return infilling.perplexity(list(one)) / infilling.perplexity(list(other))


questions = {
    "both sides / left only, same adapter": ("MAGNET", "MAGNET, left context only"),
    "both sides / left only, base model": ("base under the MAGNET mask", "base"),
    "MAGNET, both sides / base, left only": ("MAGNET", "base"),
}
for question, (one, other) in questions.items():
    found = bootstrap(list(zip(scores[one], scores[other], strict=True)), ratio)
    answer = (
        "lower" if found.high < 1 else "higher" if found.low > 1 else "cannot be told"
    )
    print(f"{question:38} {found.value:.2f}", end=" ")
    print(f"({found.low:.2f} to {found.high:.2f}): {answer}")

# %% [markdown]
# - The **first line** is what the right side is worth: the same weights, the same words, only the mask differs.
# - The **second** is the same for a model that was never trained with that mask: the right to look is not yet the art
#   of it.
# - The **third** is the paper's comparison (Table 4). It mixes two things, what is seen and what was trained on: the
#   adapter has been trained further, on stories much like these. That is why our table has four rows where
#   the paper's has two. Where the answer is *cannot be told*, the paper's gain is not reached with this model.
#
# What the paper found with LLaMA-2-7B, and where this project has measured the same at full length, what it found:

# %%
from magnet_lab.evaluation.table4 import EXPERIMENT

theirs = reproduce.published()["table4"]
for row, values in theirs["rows"].items():
    print(f"paper: {row:7}", dict(zip(theirs["columns"], values, strict=True)))

for model in ("tiny", "small"):
    result = reproduce.shipped(model, "table4")
    print(f"\n{model}:", "not measured yet" if result is None else "")
    if result is not None:
        print(reproduce.table(EXPERIMENT, result))

# %% [markdown]
# (Numbers of different models are not to be compared with each other: a tokenizer that cuts words into more pieces has
# a lower perplexity for each piece. Only ratios within one model tell something.)
#
# ## Copies
# A likely infill need not be a good one. The easiest way to be likely is to say again what is there already. So we
# count copies: an infill is one if it repeats any four words of its story in a row.
#
# **By hand**: the story says *He threw it over the wall.* and the infill *Then he threw it away.* Runs of three words
# of the infill: `then he threw`, `he threw it`, `threw it away`. The second stands in the story: a copy, for n = 3. For
# n = 4 it is none. **As a loop**, and by the library:


# %%
def runs(text, n):
    words = [word.strip(".,!?").lower() for word in text.split()]
    found = set()
    for first in range(len(words) - n + 1):
        found.add(tuple(words[first : first + n]))
    return found


told, infill = "Tom had a ball. He threw it over the wall.", "Then he threw it away."
for n in (3, 4):
    print(n, runs(told, n) & runs(infill, n) or "nothing in common",
          "· library:", infilling.copies(told, infill, n))  # fmt: skip

# %% [markdown]
# Over what our systems wrote, and over what the paper prints of its own:


# %%
def copies(texts, sentences):
    return [
        infilling.copies(text.replace("[blank]", " "), s)
        for text, s in zip(texts, sentences, strict=True)
    ]


asked = [story.text for story in stories[:COUNT]]
for name, found in written.items():
    rate = wilson(sum(copies(asked, found)), COUNT)
    print(f"{name:16} {rate.value:5.1f} % copies ({rate.low:.0f} to {rate.high:.0f})")

# %% [markdown]
# (The intervals are Wilson's, for shares. A bootstrap of twelve stories without a copy would draw nothing but stories
# without a copy, and say "0 to 0": it knows only what it has seen. Twelve tosses can hide quite a few.)

# %%
for table, found in printed.items():
    for system in found[shown]:
        flags = copies(list(found), [said[system] for said in found.values()])
        print(f"paper, {table:8} {system:16} {sum(flags)} of {len(flags)} copy")

# %% [markdown]
# Look at the second list first. In the paper's own examples each zero-shot prompt leads to copies (look for the rows of
# Table 9 against those of Table 10). A few stories that somebody chose are no measurement, but it is what Appendix B.1
# says in words. In the first list look at whether *this* model does the same: one that does not understand the request
# does not copy either, it writes anything. For it, the rate of copies alone would be no praise: read the sentences
# above as well.
#
# What this project has measured with `small` so far, over more stories:

# %%
kept = SHIPPED / "small" / "adapters.json"
wanted = {
    "causal": "perplexity, left only",
    "infill": "perplexity, both sides",
    "copy_rate": "copies (%)",
}
if kept.is_file():
    result = json.loads(kept.read_text(encoding="utf-8"))
    many, few, _ = result["limits"]
    print(f"{many} stories for the perplexities, {few} for the copies")
    for who, found in result["figures"].items():
        line = "  ".join(f"{name} {found[key]:6.1f}" for key, name in wanted.items())
        print(f"{who:8} {line}")

# %% [markdown]
# (`base`, both sides, is not the prompts: it is the base model under the MAGNET mask, without training.) Where the two
# perplexities of a row hardly differ, that adapter has not learnt to make use of the right side, however much likelier
# than the base model it finds the stories.
#
# ### A copy can beat the truth
# Why does one need to count at all: does a copy not get a bad score? Put the sentence that stands *before* the blank
# into the blank once more, and compare its score with that of the true sentence.

# %%
from magnet_lab.paraphrase import sentences as split

for name, who in {"base": base, "MAGNET": lab}.items():
    wins = []
    for story in stories[:40]:
        again = split(story.text.split("[blank]")[0], shortest=1, longest=1000)[-1]
        true, copy = (
            who.score_infill(story.text, [f]).log_probs[0].mean()
            for f in (story.fills[0], again)
        )
        wins.append(bool(copy > true))
    print(f"{name:7} finds the copy likelier", end=" ")
    print(f"in {sum(wins)} of {len(wins)} stories")

# %% [markdown]
# No reader would accept a single one of these copies. Whoever ranks systems by how likely their *own* sentences are
# puts a parrot first, in many of the stories. That is why Table 4 scores the true sentence, Table 5 asks people, and
# the library puts infills that stutter behind others.
#
# ## Turn it yourself
# Write a story with a `[blank]`, and look at the candidates; each token is shaded by its probability.

# %% tags=["interactive"]
from magnet_lab.widgets import infill_playground

infill_playground(lab, stories[1].text)

# %% [markdown]
# ## Exercises
# ### 1 · Perplexity of several texts (●○○, 5 minutes)
# `log_probs` is a list of tensors, one a text, with the natural logarithm of each token's probability. Return the
# perplexity over *all tokens of all texts together*: a text of twenty tokens counts twenty times as much as one of a
# single token.
#
# <details><summary>Hint</summary>
#
# `torch.cat` first.
#
# </details>


# %%
def perplexity(log_probs):
    ### BEGIN SOLUTION
    return float(torch.cat(log_probs).mean().neg().exp())
    ### END SOLUTION


# %%
check.perplexity(perplexity)

# %% [markdown]
# ### 2 · Which length fits best? (●○○, 5 minutes)
# `log_probs` is a list of tensors again, one a candidate. Return the candidates' indices, best first, by the mean.
#
# <details><summary>Hint</summary>
#
# `sorted(range(len(log_probs)), key=..., reverse=...)`.
#
# </details>


# %%
def rank_candidates(log_probs):
    ### BEGIN SOLUTION
    return sorted(
        range(len(log_probs)), key=lambda i: float(log_probs[i].mean()), reverse=True
    )
    ### END SOLUTION


# %%
check.rank_candidates(rank_candidates)

# %% [markdown]
# ### 3 · The copy rate (●●○, 10 minutes)
# `contexts` and `infills` are lists of strings of one length. Return the share, from 0 to 1, of infills that repeat any
# `n` words of *their own* context in order, whatever their case, and without the punctuation around words.
#
# <details><summary>Hint</summary>
#
# `runs` above is most of it. An infill copies or it does not: how much of it is copied makes no difference.
#
# </details>


# %%
def copy_rate(contexts, infills, n):
    ### BEGIN SOLUTION
    copied = [
        bool(runs(context, n) & runs(infill, n))
        for context, infill in zip(contexts, infills, strict=True)
    ]
    return sum(copied) / len(copied)
    ### END SOLUTION


# %%
check.copy_rate(copy_rate)

# %% [markdown]
# ### 4 · Better on how many? (●●●, 15 minutes)
# A test without a bootstrap: the **sign test**. `one` and `other` are lists of tensors of log-probabilities, one a
# story. Count the stories where `one` has the higher mean. If there were no difference, each story would be the toss of
# a coin. Return the count, and the probability that a fair coin, tossed as often, gives a count *at least as far from
# half* as this one (two-sided). Nothing is tied here.
#
# <details><summary>Hint</summary>
#
# $\binom{n}{k} / 2^n$ is the probability of exactly $k$ (`math.comb`). Add up all $k$ with $|k - n/2| \ge |\text{count}
# - n/2|$.
#
# </details>


# %%
def sign_test(one, other):
    ### BEGIN SOLUTION
    from math import comb

    n = len(one)
    count = sum(bool(a.mean() > b.mean()) for a, b in zip(one, other, strict=True))
    as_far = [k for k in range(n + 1) if abs(k - n / 2) >= abs(count - n / 2)]
    return count, sum(comb(n, k) for k in as_far) / 2**n
    ### END SOLUTION


# %%
from scipy.stats import binomtest

pair = scores["MAGNET"], scores["MAGNET, left context only"]
count = sum(bool(a.mean() > b.mean()) for a, b in zip(*pair, strict=True))
true = binomtest(count, len(pair[0])).pvalue
try:
    yours, chance = sign_test(*pair)
    good = yours == count and abs(chance - true) < 1e-9
    print(
        f"{yours} of {len(pair[0])}, by chance {chance:.3g}:",
        "right" if good else f"not yet: {count}, {true:.3g}",
    )
except NotImplementedError:
    print("sign_test is yours to write")

# %% [markdown]
# <details><summary>What to make of it</summary>
#
# The sign test knows only who was better, not by how much; the bootstrap of the ratio knows both. Where they disagree,
# look at the stories: a few with a large difference may carry the ratio.
#
# </details>
#
# ## Summary
# - A prompt shows a model the right side as text; whether it can use it is a matter of what it has learnt. A mask shows
#   it as context.
# - A blank of open length is filled at several lengths at once. The mean log-probability ranks them; the sum prefers
#   the shortest.
# - Perplexity of the *true* sentence measures without a reader. Compare within one model, on the same words.
# - Give an interval; draw stories, not tokens; for a difference, draw pairs.
# - A copy is likely. So count copies, and do not let systems score themselves.
#
# ## Do you know now?
# 1. The base model is prompted and sees the end of the story. Why is that not the same as the MAGNET mask?
# 2. A colleague ranks candidates by the sum of the log-probabilities. What do you expect to see?
# 3. Model A has a perplexity of 20, model B of 30, with different tokenizers. Is A better?
# 4. Two intervals overlap. Is there no difference?
# 5. A system never copies a single run of four words. Is it good?
#
# <details><summary>Answers</summary>
#
# 1. In the prompt the end is one more piece of text before the answer, and the answer must be made to fit by what the
#    model knows of requests. Under the mask it stands at its own place, after the gap, and training was about just
#    that.
# 2. Short fills, many of them broken off.
# 3. One cannot tell: fewer, longer tokens are harder to predict one by one.
# 4. Not said: they may come from stories that are hard for both. Draw pairs.
# 5. Not said either: it may write anything at all, as a model does that has not understood the request.
#
# </details>
#
# **Go on** with 07, what the same adapter's vectors are good for. **In the app**: the pages *Infill*, where you write
# the story, and *Judge*, where you are the reader of Table 5 (`magnet-lab app`).
