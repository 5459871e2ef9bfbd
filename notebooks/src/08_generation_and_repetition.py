# %% [markdown]
# # 08 · Generation and repetition
#
# **What does training for both directions break in a model that is to write, and how do you measure it?**
#
# - **You will** count repetition by hand, as a loop and with a set (Rep-n, Rep-Sen); compare what a base model and its
#   adaptations write from the same beginnings; see why a loop feeds itself; write with a mask token, as is done with BERT;
#   measure what an adaptation costs in perplexity; and train next-token prediction with both sides in view, to see what
#   falls apart.
# - **You need** notebooks 00 and 02.
# - **Time**: 30 minutes to read, 65 with the exercises; runs in about a minute on two cores.
#
# The source is Section 4.4 of the MAGNET paper (Khosla et al.): Figures 5 and 6, Equation 6, Table 11, and Appendix F.

# %%
# In Colab, once: %pip install -q magnet-lab
import json
import math
from statistics import fmean

import numpy as np
import torch

import magnet_lab as ml
from magnet_lab import attention, decoder
from magnet_lab.baselines import MaskFilling
from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.evaluation import appendix_f, infilling, reproduce
from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import SHIPPED, bootstrap
from magnet_lab.evaluation.repetition import continuations, rep_n, rep_sen
from magnet_lab.evaluation.verdicts import more
from magnet_lab.paraphrase import sentences
from magnet_lab.viz import palette, show
from magnet_lab.viz.picture import Picture

MODEL = "tiny"  # or "small", or "llama-2-7b" where there is a GPU
lab = start(MODEL)

# %% [markdown]
# The base model, MAGNET, and, where the model comes with them, the two steps of LLM2Vec: MNTP under the bidirectional mask,
# then SimCSE. LLM2Vec trains for vectors alone; nothing in its training asks it to write. MAGNET trains for vectors too, but
# one of its three objectives (MSG) is to write.

# %%
labs = {"base": lab.use(None), "MAGNET": lab}
for adapter, name in {"mntp": "LLM2Vec [MNTP]", "llm2vec": "LLM2Vec"}.items():
    if adapter in ml.zoo.adapters(MODEL):
        labs[name] = lab.use(adapter)
    else:
        print(f"{MODEL} comes without the adapter {adapter!r}: {name} is left out here")
modes = {"causal": attention.causal, "both ways": attention.bidirectional}
print("compared here:", ", ".join(labs))

# %% [markdown]
# ## The picture
# The paper gives each model the beginning of a text and lets it write on, always taking the likeliest token (*greedy*
# decoding): after the first sentence of a story, and after the first five words of an encyclopedia's paragraph. We do the
# same, with 16 of each.

# %%
COUNT, NEW = 16, 64  # beginnings of each kind, tokens to write
stories, passages = Data().stories(COUNT), Data().passages(COUNT)
parts = [sentences(story, shortest=1, longest=1000) for story in stories]
beginnings = {
    "stories": [part[0] for part in parts],
    "Wikitext": [" ".join(passage.split()[:5]) for passage in passages],
}
written = {
    name: {
        kind: continuations(one, texts, new_tokens=NEW)
        for kind, texts in beginnings.items()
    }
    for name, one in labs.items()
}


# %%
def marked(text, n=4):
    """A text with brackets around the words of every run of n words that was there before."""
    words = text.split()
    inside = [0] * len(words)
    seen = set()
    for first in range(len(words) - n + 1):
        run = tuple(words[first : first + n])
        if run in seen:
            inside[first : first + n] = [1] * n
        seen.add(run)
    return ml.viz.strip_text([" " + word for word in words], inside)


for name in labs:
    print(f"{name}:", beginnings["stories"][0], "…")
    print(marked(written[name]["stories"][0]), "\n")

# %% [markdown]
# In brackets is what the text has said before, word for word. A picture shows it at a glance: put the words of a text along
# both edges, and a dot wherever two of them are the same. The diagonal is every word with itself. A **line beside the
# diagonal** is a run of words that comes again. Here is, of everything that the base model has just written, the text that
# repeats the most:


# %%
def dot_plot(text, title=""):
    words = text.lower().split()
    same = np.array([[a == b for a in words] for b in words])
    figure = palette.card(5.2, 5.2)
    axes = figure.add_subplot()
    axes.imshow(~same, cmap="gray", vmin=-0.15, vmax=1)
    axes.set_xlabel("word")
    axes.set_ylabel("word")
    figure.suptitle(title, fontsize=12, parse_math=False)
    rows = ("".join("■" if cell else "·" for cell in row) for row in same)
    return Picture(figure, "\n".join([title, *rows]))


everything = [text for texts in written["base"].values() for text in texts]
worst = max(everything, key=rep_n)
print(marked(worst))
dot_plot(worst, title="base: its most repetitive text of 32")

# %% [markdown]
# For comparison, what a person wrote: the story that the first beginning was taken from.

# %%
dot_plot(" ".join(parts[0][1:]), title="a person: the rest of the first story")

# %% [markdown]
# ## Counting it
# ### Rep-n by hand
# Equation 6 of the paper:
#
# $$\text{Rep-}n = 1 - \frac{|\text{unique } n\text{-grams}|}{|n\text{-grams}|} \qquad
# \text{Rep-Sen} = 1 - \frac{|\text{unique sentences}|}{|\text{sentences}|}$$
#
# Take `the cat saw the cat` and $n = 2$. The runs of two words, which overlap: *the cat*, *cat saw*, *saw the*, *the cat*. Four
# runs, three of them different. So Rep-2 is $1 - 3/4 = 0.25$.
#
# ### As a loop
# Go through the runs and ask of each: was it there before?

# %%
words = ["the", "cat", "saw", "the", "cat"]
seen, before = [], 0
for first in range(len(words) - 1):
    run = words[first : first + 2]
    print(run, "was there before" if run in seen else "is new")
    before += run in seen
    seen.append(run)
print("Rep-2 =", before / len(seen))

# %% [markdown]
# ### With a set, and the library's line
# A set keeps one of each: how many runs there are minus how many different ones is how many were there before. `rep_n` does
# so (in lower case; words are what stands between spaces). All that the models have written, four words a run:


# %%
def by_loop(text, n):
    words, seen, before = text.lower().split(), [], 0
    for first in range(len(words) - n + 1):
        before += words[first : first + n] in seen
        seen.append(words[first : first + n])
    return before / len(seen) if seen else 0.0


texts = [text for kinds in written.values() for some in kinds.values() for text in some]
agree = sum(
    math.isclose(by_loop(text, 4), rep_n(text, 4), abs_tol=1e-12) for text in texts
)
print(f"loop and library agree on {agree} of {len(texts)} texts")
print("by hand 0.25, library", rep_n("the cat saw the cat", 2))

# %% [markdown]
# **Rep-Sen** is the same with whole sentences: `He ran. He ran. He fell.` has three, two of them different.

# %%
print(f"by hand {1 - 2 / 3:.4f}, library {rep_sen('He ran. He ran. He fell.'):.4f}")

# %% [markdown]
# ## Who repeats more? (Figure 5)
# The mean over the beginnings, with its 95 % interval (bootstrap). The first row is people: what really followed, cut to
# about the same length. A measure of repetition has to be near 0 there, or it measures something else.

# %%
people = {
    "stories": [" ".join(part[1:]) for part in parts],
    "Wikitext": [" ".join(passage.split()[5:55]) for passage in passages],
}


def figures(kinds):
    found = {}
    for kind, texts in kinds.items():
        for name, measure in (("Rep-Sen", rep_sen), ("Rep-4", rep_n)):
            found[f"{kind} {name}"] = bootstrap(
                [measure(text) for text in texts], fmean
            )
    return found


# %%
def papers(name):
    """The paper's numbers: row -> column -> number."""
    table = reproduce.published()[name]
    columns = table["columns"]
    return {
        row: dict(zip(columns, some, strict=True))
        for row, some in table["rows"].items()
    }


rows = {"people": figures(people)}
rows |= {name: figures(kinds) for name, kinds in written.items()}
title = f"Repetition, {MODEL}; hollow: the paper's"
show("results", rows, printed=papers("figure5"), title=title)


# %%
def say(one, other, column, rows):
    """Which of two rows is higher, as far as their intervals tell."""
    answer = more(rows[one][column], rows[other][column])
    words = {True: "is above", False: "is below", None: "cannot be told from"}[answer]
    print(f"{column:16} {one} ({rows[one][column].value:.3g}) {words} "
          f"{other} ({rows[other][column].value:.3g})")  # fmt: skip


for column in ("stories Rep-4", "Wikitext Rep-4"):
    say("base", "people", column, rows)
    for name in labs:
        if name != "base":
            say(name, "base", column, rows)
    if "LLM2Vec" in labs:
        say("LLM2Vec", "MAGNET", column, rows)

# %% [markdown]
# How to read it beside the paper. Its base model, seven billion parameters, hardly repeats a sentence; LLM2Vec makes it repeat
# many times as many, MAGNET a few times as many. A **small** model repeats itself under greedy decoding *before any
# adaptation*: it has not much to say, and the likeliest next word is soon one that it has just said. There is then less left
# to break, and an adaptation can even mend it (the table under "Measured at length" has such a case). So the first question
# is always the row *base*; and 16 beginnings of each kind give wide intervals, so that the printed lines often say that
# nothing can be told.
#
# The paper puts its result as a ratio. A ratio needs care for the same reason: look at what stands below the line.

# %%
theirs = papers("figure5")
for name in ("LLM2Vec", "MAGNET"):
    ratio = theirs[name]["Wikitext Rep-Sen"] / theirs["base"]["Wikitext Rep-Sen"]
    below = theirs["base"]["Wikitext Rep-Sen"]
    print(f"the paper: {name} repeats {ratio:.1f} times as many sentences as {below}")

# %% [markdown]
# ### Repetition grows with length
# Rep-n compares a text with *all that came before*, so a long text has more chances. Numbers from texts of different lengths
# cannot be compared. Here is Rep-4 of the first words of each text.


# %%
def so_far(texts):
    at = range(10, 51, 10)
    return {f"Rep-4 of the first words, {n} words":
            bootstrap([rep_n(" ".join(text.split()[:n])) for text in texts], fmean)
            for n in at}  # fmt: skip


curves = {name: so_far([text for texts in kinds.values() for text in texts])
          for name, kinds in {"people": people, **written}.items()
          if name in ("people", "base", "MAGNET", "LLM2Vec")}  # fmt: skip
show("results", curves, title="The longer the text, the more of it was there before")

# %% [markdown]
# ## Why a loop feeds itself
# A language model is trained to go on as the text has begun. If a text has said a sentence twice, the likeliest way to go on
# is to say it again (Xu et al., 2022, whom the paper cites). We can measure this without writing a word: put a sentence into
# the text again and again, and look how surprised the model is by each copy. *Perplexity*: between how many equally likely
# tokens it wavers.


# %%
@torch.no_grad()
def surprise(lab, sentence, times=5):
    """Mean negative log-probability (nats a token) of each copy of a sentence."""
    copy = decoder.continuation_ids(lab.tokenizer, " " + sentence)
    opening = decoder.start_ids(lab.tokenizer, required=True)
    ids = torch.tensor([opening + copy * times], device=lab.device)
    scores = decoder.logits(lab.model, ids, attention.causal(torch.ones_like(ids)))[0]
    losses = torch.nn.functional.cross_entropy(
        scores[len(opening) - 1 : -1].float(), ids[0, len(opening) :], reduction="none"
    )
    return losses.view(times, len(copy)).mean(dim=1).tolist()


print(
    [round(math.exp(nats), 1) for nats in surprise(labs["base"], "The dog ran home.")]
)

# %%
said = [part[1] for part in parts]  # a sentence of each story
echoes = {}
for name, one in labs.items():
    every = np.array([surprise(one, sentence) for sentence in said])
    echoes[name] = {
        f"perplexity of a copy, {k} times": bootstrap(
            list(every[:, k - 1]), lambda x: math.exp(np.mean(x))
        )
        for k in range(1, 6)
    }
show("results", echoes, title=f"{COUNT} sentences, each said five times over")

# %% [markdown]
# The second copy is far less of a surprise than the first, in every model. The ones after it change little beside that.
# Greedy decoding takes the likeliest token, so that a sentence that has come twice is hard to leave. This mechanism
# is in the base model already; what differs between models is how soon they have nothing likelier to say.
#
# ### Is it the model, or the decoding?
# The same base model, other ways to take the next token: drawing at random (*sampling*) at two temperatures; and greedy with
# the rule never to write four tokens that were there before. Beside Rep-4 stands how likely the model itself finds what was
# written, read alone, without its beginning.

# %%
ways = {
    "greedy": {},
    "temperature 0.7": {"temperature": 0.7, "top_k": 0, "seed": 0},
    "temperature 1": {"temperature": 1.0, "top_k": 0, "seed": 0},
    "greedy, no 4 tokens twice": {"no_repeat_ngram_size": 4},
}
base = labs["base"]
for name, way in ways.items():
    first = beginnings["stories"][:5]
    texts = [base.generate(text, max_new_tokens=36, **way) for text in first]
    nats = [appendix_f.log_probs(base, text) for text in texts if text.strip()]
    print(f"{name:26} Rep-4 {fmean(map(rep_n, texts)):.3f}, "
          f"perplexity of what it wrote {infilling.perplexity(nats):6.1f}")  # fmt: skip
print(texts[0])

# %% [markdown]
# Drawing at random takes repetition away and pays with likelihood. The last line has hardly any repetition **by
# construction**: the rule forbids what the measure counts. It says nothing about whether the text got better; read the
# sample. A measure that can be satisfied by a rule is a symptom, not the disease. That is why the paper decodes greedily: it
# wants to see the symptom.

# %% [markdown]
# ## Writing with a mask (Table 11)
# An encoder such as BERT has no causal mask. To make it write, the paper puts a mask token at the end of the text, asks what
# it hides, puts the answer in its place, and appends the next mask. Our decoder can be made to write in the same way, under
# the bidirectional mask; MNTP has taught it to say what a mask hides, from one place to its left. As a loop:


# %%
@torch.no_grad()
def fill_masks(lab, text, count):
    mask = ml.views.mask_token_id(lab.tokenizer)
    ids = decoder.start_ids(lab.tokenizer) + decoder.text_ids(lab.tokenizer, text)
    before = len(ids)
    for _ in range(count):
        row = torch.tensor([[*ids, mask]], device=lab.device)
        both_ways = attention.bidirectional(row.ge(0))
        scores = decoder.logits(lab.model, row, both_ways)[0, -2]  # left of the mask
        scores[[mask, *lab.tokenizer.all_special_ids]] = -torch.inf  # no answers
        ids.append(int(scores.argmax()))
    return decoder.decode_after(lab.tokenizer, ids[:before], ids[before:])


filler = MaskFilling(lab, "mntp" if "LLM2Vec [MNTP]" in labs else lab.adapter)
for beginning in beginnings["stories"][:2]:
    by_hand = fill_masks(filler.lab, beginning, 24)
    print(beginning, "…", marked(by_hand))
    print(
        "the library writes the same:",
        filler.generate(beginning, max_new_tokens=24) == by_hand,
    )

# %% [markdown]
# It costs more, too. Every token sees every other, so that a new one changes the outputs of all that was there:


# %%
@torch.no_grad()
def changed(lab, text, mode):
    """How far the outputs of a text turn (1 - cosine) when one more word follows."""
    rows = [decoder.start_ids(lab.tokenizer) + decoder.text_ids(lab.tokenizer, some)
            for some in (text, text + " again")]  # fmt: skip
    states = [decoder.hidden_states(lab.model, ids, mode(ids.ge(0)))[0, : len(rows[0])]
              for ids in (torch.tensor([row], device=lab.device) for row in rows)]  # fmt: skip
    return float((1 - torch.cosine_similarity(*states, dim=-1)).mean())


for name, mode in modes.items():
    print(
        f"{name:10} outputs of what is there turn by {changed(base, beginnings['stories'][0], mode):.4f}"
    )

# %% [markdown]
# Under the causal mask the past stays as it is, and its keys and values can be kept (the cache). Here nothing can. How many
# tokens have to be put through the model to write $m$ tokens after $p$?

# %%
p = len(decoder.text_ids(lab.tokenizer, beginnings["stories"][0]))
for m in (10, 100):
    kept, anew = p + m, sum(p + step + 1 for step in range(m))
    print(
        f"{m:3} tokens after {p}: {kept:4} with a cache, {anew:5} without: {anew / kept:.0f} times"
    )

# %% [markdown]
# And does it repeat itself? The same four beginnings from each kind, mask by mask and from left to right, with equally many
# tokens:

# %%
few = [text for texts in beginnings.values() for text in texts[:4]]
table = {
    f"{filler.lab.adapter or 'base'}, mask by mask": [
        filler.generate(text, max_new_tokens=32) for text in few
    ]
}
for name, one in labs.items():
    table[f"{name}, left to right"] = continuations(one, few, new_tokens=32)
table = {
    name: {"Rep-4": bootstrap([rep_n(text) for text in texts], fmean)}
    for name, texts in table.items()
}
show("results", table, title=f"Table 11 in small: {len(few)} beginnings, 32 tokens")

# %% [markdown]
# The paper's Table 11 shows single texts, among them one by BERT, which repeats words. Eight texts of 32 tokens are few as
# well, and the intervals say how little they tell. What is certain is the price: a full pass for every token.
#
# ## What it costs: perplexity (Appendix F)
# Repetition sees a gross fault. A finer question: how surprised is the model, as a plain writer from left to right, by text
# that people wrote? By hand: three tokens got the probabilities 1/2, 1/2 and 1/8. The model wavered between
# $\sqrt[3]{2 \cdot 2 \cdot 8}$ tokens.

# %%
probabilities = [0.5, 0.5, 0.125]
print("by hand      ", round((2 * 2 * 8) ** (1 / 3), 4))
total = 0.0
for probability in probabilities:
    total -= math.log(probability)
print("by a loop    ", round(math.exp(total / 3), 4))
nats = torch.tensor(probabilities).log()
print("without loop ", round(float(nats.mean().neg().exp()), 4))
print("library      ", round(infilling.perplexity([nats]), 4))

# %% [markdown]
# Now for each model, on stories and on paragraphs; the paper's two numbers are for LLaMA-2-7B on Wikitext-103.

# %%
costs = {}
for name, one in labs.items():
    costs[name] = {
        column: bootstrap(
            [appendix_f.log_probs(one, text) for text in texts],
            infilling.perplexity,
            draws=200,
        )
        for column, texts in (
            ("perplexity of stories", stories),
            ("perplexity", passages),
        )
    }
show(
    "results",
    costs,
    printed=papers("appF"),
    title=f"Perplexity from left to right, {MODEL}",
)

# %%
for column in ("perplexity of stories", "perplexity"):
    for name in labs:
        if name != "base":
            ratio = costs[name][column].value / costs["base"][column].value
            print(f"{column:22} {name}: {ratio:.2f} times the base model's")
theirs = papers("appF")
print(
    f"the paper: {theirs['MAGNET']['perplexity'] / theirs['base']['perplexity']:.2f} times"
)

# %% [markdown]
# Every adaptation is a training on *some* text, and moves the model towards it. On text of that kind it may get better, on
# other text worse; that is why there are two columns. Perplexities of two models may be compared only if they share the
# tokenizer, as these do: a model with longer tokens has fewer and harder choices.
#
# ## The same fault in infilling: copying
# A model that infills can also repeat: what stands *around* the blank. `infilling.copies` says whether a fill has four words in
# a row in common with its context. Five stories, a sentence of each missing, ten tokens to write:

# %%
missing = infilling.remove_sentences(stories[:5])
fills = {"people": [one.fills[0] for one in missing]}
for name in ("base", "MAGNET"):
    asked = [one.text.replace("[blank]", "[blank:10]") for one in missing]
    fills[name] = [labs[name].infill(text).spans[0] for text in asked]
for name, some in fills.items():
    contexts = [one.text.replace("[blank]", "") for one in missing]
    copied = [infilling.copies(*pair) for pair in zip(contexts, some, strict=True)]
    print(f"{name:6} {sum(copied)} of {len(missing)} copy. The first: {some[0]}")

# %% [markdown]
# Five are very few; the table under "Measured at length" has the share for the model `small`, in its last column, and exercise
# 4 lets you write the measure.
#
# ## What would break? Both directions, and nothing hidden
# MNTP hides a token before it asks for it; MSG lets a span see what is before it alone. What if one spares the trouble? The
# model knows next-token prediction already: open the mask in both directions, and train on. Two copies of the base model, 40
# short steps on the same stories (none of those that we measure on), one mask each.

# %%
from magnet_lab.relatives import llm2vec

lessons = Data().stories(200)[40:]


def next_token(mode):
    def loss(model, step, generator):
        drawn = torch.randint(len(lessons), (6,), generator=generator).tolist()
        ids, tokens, _ = llm2vec.text_batch(lab.tokenizer, [lessons[d] for d in drawn])
        ids, tokens = ids[:, :40].to(lab.device), tokens[:, :40].to(lab.device)
        scores = decoder.logits(model, ids, mode(tokens))[:, :-1].flatten(0, 1)
        return torch.nn.functional.cross_entropy(scores.float(), ids[:, 1:].flatten())

    return loss


# %%
trained, losses = {"before": base}, {}
for name, mode in modes.items():
    model, losses[name] = llm2vec.adapt(
        base.model, next_token(mode), 40, seed=0, lr=2e-3
    )
    trained[name] = ml.Magnet(model, lab.tokenizer)
show(
    "losses", losses, quantity="next-token loss (nats)", title="40 steps, one mask each"
)

# %% [markdown]
# By its loss, the second training is a triumph. Now let both write, and ask how surprised they are, as plain writers from left
# to right, by people's stories:

# %%
for name, one in trained.items():
    nats = [appendix_f.log_probs(one, story) for story in stories]
    print(f"{name}: perplexity of stories {infilling.perplexity(nats):.1f}")
    print(one.generate(beginnings["stories"][0], max_new_tokens=32))

# %% [markdown]
# Under the bidirectional mask the next token stands in view, one place to the right. What the training teaches is to look there
# and copy: the loss falls far below that of the causal training on the same words, and in use, where nothing stands to the
# right yet, the writer is far worse. Compare the perplexities: the same steps under the causal mask may cost something too,
# for they are large, but nowhere near as much. So the harm is mostly not that of training as such, nor of the mask as such; it
# is that of a task that the open mask makes trivial. Hiding (MNTP) and causal spans (MSG) keep the task honest.
#
# ## Measured at length
# `magnet-lab bench adapters` has measured all adapters of the model `small`, on more texts. Its figures come with the project:

# %%
path = SHIPPED / "small" / "adapters.json"
found = (
    json.loads(path.read_text(encoding="utf-8"))["figures"] if path.is_file() else {}
)
print(f"{'small':10} {'Rep-Sen':>8} {'Rep-4':>8} {'perplexity':>11} {'copies (%)':>11}")
for name, row in found.items():
    print(
        f"{name:10} {row['rep_sen']:8.3f} {row['rep_4']:8.3f} {row['causal']:11.1f} {row['copy_rate']:11.0f}"
    )

# %% [markdown]
# (Perplexity: of missing sentences from their left context.) Look at *base* first, once more: this small instructed model
# loops under greedy decoding as it came. Then compare `llm2vec` with `magnet` in each column.
#
# `magnet-lab reproduce figure5 figure6 table11 appF` measures the paper's figures themselves. Figure 6 follows the repetition
# *along* the training. Where results of `small` come with the project, here they are.


# %%
from magnet_lab.evaluation import figure5, figure6, table11


def measured(experiment):
    name = experiment.id
    found = reproduce.shipped("small", name)
    if found is None:
        print(
            f"no {name} of small comes with the project yet: magnet-lab reproduce {name} --model small"
        )
        return None
    for claim, verdict in reproduce.claims(experiment, found):
        print(f"{verdict:>20}: {claim}")
    return show(
        "results", found.rows, printed=papers(name), title=f"{experiment.title}, small"
    )


measured(figure5.EXPERIMENT)

# %%
measured(figure6.EXPERIMENT)

# %%
measured(table11.EXPERIMENT)

# %%
measured(appendix_f.EXPERIMENT)

# %% [markdown]
# ## Try it yourself
# A beginning of your own, and the dot plot of what the model goes on to write. Find one after which it repeats itself, then
# raise the temperature and watch the lines beside the diagonal go.

# %% tags=["interactive"]
from magnet_lab.widgets.controls import choice, explore, slider, writing


def loop_explorer(beginning, model, temperature, tokens):
    way = {"temperature": temperature, "seed": 0} if temperature else {}
    text = labs[model].generate(beginning, max_new_tokens=tokens, **way)
    return dot_plot(
        text, title=f"{model}: Rep-4 {rep_n(text):.2f}, Rep-Sen {rep_sen(text):.2f}"
    )


explore(
    loop_explorer,
    beginning=writing("beginning", beginnings["stories"][0]),
    model=choice("model", list(labs), "base"),
    temperature=slider("temperature (0: greedy)", 0.0, 0.0, 1.5, 0.1),
    tokens=slider("tokens", 48, 16, 128, 16),
)

# %% [markdown]
# ## Exercises
# ### 1 · Rep-n (●○○, 8 minutes)
# Write Rep-n for any text and any $n$, without a loop over what was seen before. Upper and lower case are the same word;
# a text of fewer than $n$ words has no run, and its Rep-n is 0.
#
# <details><summary>Hint</summary>
#
# A list cannot go into a set, a tuple can. A text of $w$ words has $w - n + 1$ runs.
#
# </details>


# %%
def my_rep_n(text, n):
    ### BEGIN SOLUTION
    words = text.lower().split()
    runs = [tuple(words[first : first + n]) for first in range(len(words) - n + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0
    ### END SOLUTION


# %%
check.rep_n(my_rep_n)

# %% [markdown]
# ### 2 · Rep-Sen (●●○, 10 minutes)
# The same with sentences. A sentence ends at `.`, `!` or `?` that stands before a space or at the end of the text, so that the
# dot in `3.50` ends nothing. Case does not count; an empty text has Rep-Sen 0.
#
# <details><summary>Hint</summary>
#
# `re.split(r"(?<=[.!?])\s+", text)` splits at spaces that follow a mark, and keeps the mark.
#
# </details>


# %%
def my_rep_sen(text):
    ### BEGIN SOLUTION
    import re

    found = re.split(r"(?<=[.!?])\s+", text.lower().strip())
    found = [sentence for sentence in found if sentence]
    return 1 - len(set(found)) / len(found) if found else 0.0
    ### END SOLUTION


# %%
check.rep_sen(my_rep_sen)

# %% [markdown]
# ### 3 · Perplexity over several texts (●●○, 8 minutes)
# `log_probs` is a list with a tensor for each text: the natural logarithms of its tokens' probabilities. Return *one*
# perplexity for all. Is it the mean of the texts' perplexities?
#
# <details><summary>Hint</summary>
#
# Every token counts alike, in a long text as in a short one. `torch.cat`.
#
# </details>


# %%
def my_perplexity(log_probs):
    ### BEGIN SOLUTION
    return float(torch.cat(log_probs).mean().neg().exp())
    ### END SOLUTION


# %%
check.perplexity(my_perplexity)

# %% [markdown]
# ### 4 · How many infills copy? (●●○, 12 minutes)
# `contexts` and `infills` are lists of the same length. Return the share of infills that have any `n` words in a row in common
# with their *own* context, whatever the case, and without the punctuation marks around words.
#
# <details><summary>Hint</summary>
#
# `word.strip(".,;:!?\"'()-").lower()` takes marks off both ends. Make a set of runs for each of the two texts; `&` is what they
# have in common.
#
# </details>


# %%
def my_copy_rate(contexts, infills, n):
    ### BEGIN SOLUTION
    def runs(text):
        words = [word.strip(".,;:!?\"'()-").lower() for word in text.split()]
        words = [word for word in words if word]
        return {tuple(words[first : first + n]) for first in range(len(words) - n + 1)}

    pairs = zip(contexts, infills, strict=True)
    return sum(bool(runs(one) & runs(other)) for one, other in pairs) / len(infills)
    ### END SOLUTION


# %%
check.copy_rate(my_copy_rate)

# %% [markdown]
# ## Summary
# - Rep-n and Rep-Sen count what a text has said before. They grow with its length; compare equal lengths, and look at what
#   people's texts get.
# - Repetition feeds itself: what has been said once is far likelier to be said again, and greedy decoding takes the likeliest.
# - The paper finds that training for vectors alone (LLM2Vec) makes a large model loop, and that MAGNET's objective of writing
#   spans keeps most of that away, though not all: compare its Rep-4 with the base model's in Figure 5. A small model loops
#   before any training; look at the row *base* first.
# - A rule against repetition cures the measure, not the model.
# - Under the bidirectional mask there is no fixed past: writing needs a mask token and a full pass for every token.
# - Next-token prediction with both directions in view teaches copying: a wonderful loss, and a far worse writer.
# - Perplexity from left to right is the finer measure of what an adaptation costs, and depends on the text.
#
# ## Do you know now?
# 1. `a a a a`: what is Rep-1, and what Rep-4?
# 2. Model A has Rep-4 0.2 on texts of 50 words, model B 0.3 on texts of 200. Which repeats more?
# 3. Why does the paper decode greedily, if sampling repeats less?
# 4. Why can mask filling keep no cache?
# 5. A new adapter has a perplexity of stories of 0.9 times the base model's. Is it the better writer?
#
# <details><summary>Answers</summary>
#
# 1. Rep-1 is $1 - 1/4 = 0.75$. There is one run of four words, and it is new: Rep-4 is 0.
# 2. That cannot be said: longer texts have more to repeat. Cut B's texts to 50 words.
# 3. It asks what training has done to the model, and greedy decoding shows its likeliest text; sampling would hide the loops.
# 4. Under the bidirectional mask every output depends on every token, so that each new token changes them all.
# 5. On stories, and in likelihood, yes. On other text it may be worse, and it may still loop: measure all three.
#
# </details>
#
# **Go on** with 09, ablations: is it the objectives or the mask? **In the app**: the pages *Generate*, which shades what a
# model writes, and *Results* (`magnet-lab app`).
