# %% [markdown]
# # 07 · Representations
#
# **What does a decoder's vector know of a word, of a sentence, and how do you find out without fooling yourself?**
#
# - **You will** read word vectors off a decoder, at the place where the paper reads them, and test that place; train a
#   linear probe on frozen states; turn sentences into vectors in three ways and hold their cosines against people's
#   judgement; cluster texts; and put a plain baseline and an interval beside every number.
# - **You need** notebook 00. Notebooks 02 (masked next-token prediction) and 03 (contrastive learning) say how the
#   vectors were trained.
# - **Time**: 35 minutes to read, 75 with the exercises; runs in about a minute on two cores.
#
# The source is Sections 4.1 and 4.2 of the MAGNET paper (Khosla et al.): Tables 1, 2 and 3, and Table 8 for the
# instructions.

# %%
# In Colab, once: %pip install -q magnet-lab
import numpy as np
import torch

import magnet_lab as ml
from magnet_lab import attention, decoder, encoding
from magnet_lab.course import check
from magnet_lab.course.start import start
from magnet_lab.evaluation import reproduce, table1, table2, table3
from magnet_lab.evaluation.data import Data
from magnet_lab.evaluation.experiment import bootstrap
from magnet_lab.evaluation.similarity import spearman
from magnet_lab.evaluation.verdicts import more
from magnet_lab.viz import palette, show
from magnet_lab.viz.picture import Picture

MODEL = "tiny"  # or "small", or "llama-2-7b" where there is a GPU
lab = start(MODEL)

# %% [markdown]
# Several trainings of one base model are compared: the base as it came, MAGNET, and, where the model comes with them, the
# two steps of LLM2Vec (BehnamGhader et al., 2024). They share the base weights, so that all are in memory at once.

# %%
labs = {"base": lab.use(None), "MAGNET": lab}
for adapter, name in {"mntp": "LLM2Vec [MNTP]", "llm2vec": "LLM2Vec"}.items():
    if adapter in ml.zoo.adapters(MODEL):
        labs[name] = lab.use(adapter)
    else:
        print(f"{MODEL} comes without the adapter {adapter!r}: {name} is left out here")
print("compared here:", ", ".join(labs))

# %% [markdown]
# ## The picture
# A decoder has one output for every token it reads, and none of them is "the vector of the word" or "of the sentence". We
# have to say which outputs stand for what. The paper's choice, for the sentence of its Section 4.1, three words of two
# tokens each:

# %%
tokens = ["<s>", "w1a", "w1b", "w2a", "w2b", "w3a", "w3b", "[EOS]"]
tokens_of_words = [[1, 2], [3, 4], [5, 6]]  # positions of each word's tokens
weights = torch.zeros(len(tokens_of_words) + 1, len(tokens))
for word, places in enumerate(tokens_of_words):
    for place in places:
        weights[word, place - 1] += 1 / len(places)
weights[-1, -1] = 1  # the sentence


# %%
def readings(weights, rows, columns):
    figure = palette.card(7.2, 2.9)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap=palette.WEIGHTS, vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(weights.numpy()):
        ink = palette.INK if value > 0.5 else "#FFFFFF"
        axes.text(column, row, f"{value:g}", ha="center", va="center", color=ink)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlabel("output at this token")
    lines = [f"{row}: " + " ".join(f"{w:g}" for w in weight.tolist())
             for row, weight in zip(rows, weights, strict=True)]  # fmt: skip
    return Picture(figure, "\n".join(["outputs: " + " ".join(columns), *lines]))


names = ["word 1", "word 2", "word 3", "the sentence"]
readings(weights, names, tokens)

# %% [markdown]
# Each row says how much every output counts for one vector. A **word** is the mean over its tokens, but every token is read
# one place to its *left*, at token − 1. The **sentence** is one output alone, that of an end-of-text token put after it.
#
# ## Words
# ### Why one place to the left?
# A decoder was trained to say the *next* token: its output at position $l$ is asked for the token at $l+1$. MNTP (notebook
# 02) keeps it so: a hidden token at $l+1$ is predicted from $l$. So what a model has gathered *about* token $l+1$ should
# stand at $l$. We can ask the model itself. Send every output through the head over the vocabulary, and look which token
# of the text it names: the one before, its own, the next, or the one after that?

# %%
train, test = Data().tagged()  # sentences of words.conll, with a tag for every word
modes = {"causal": attention.causal, "both ways": attention.bidirectional}


def ids_of(text):
    ids = decoder.start_ids(lab.tokenizer, required=True)
    ids = ids + decoder.text_ids(lab.tokenizer, text)
    return torch.tensor([ids], device=lab.device)


@torch.no_grad()
def named(lab, text, mode):
    """The token that each output names, and the tokens that are there."""
    ids = ids_of(text)
    scores = decoder.logits(lab.model, ids, mode(torch.ones_like(ids)))
    return scores[0].argmax(dim=-1), ids[0]


# %%
texts = [" ".join(sentence.words) for sentence in test[:30]]
for name, mode in [("base", "causal"), *((name, "both ways") for name in labs)]:
    counts = torch.zeros(4)
    for text in texts:
        said, there = named(labs[name], text, modes[mode])
        middle = torch.arange(2, len(there) - 2)
        counts += torch.tensor([(said[middle] == there[middle + k]).float().mean()
                                for k in (-1, 0, 1, 2)]) / len(texts)  # fmt: skip
    shares = "  ".join(
        f"{k:+}: {100 * x:4.1f} %" for k, x in zip((-1, 0, 1, 2), counts, strict=True)
    )
    print(f"{name:15} {mode:9} names the token at {shares}")

# %% [markdown]
# The column `+1` is the largest in every row: the outputs speak of the next token, and hardly ever of their own. That also
# holds for the base model under a mask it has never seen. So the paper's place is the one that training suggests.
#
# There is a counter-argument, and we shall test it. A Transformer carries each token's own embedding upwards on its
# residual stream. At position $l$ the word itself is at hand for free; at $l-1$ it has to be *fetched*, by attention to the
# right, and a model must have learnt to do that.
#
# ### By hand, as a loop, as one product
# Take the paper's sentence with outputs that are single numbers, so that we can follow. Position 0 is the opening token.

# %%
states = torch.tensor([[10.0], [20], [30], [40], [50], [60], [70], [80]])
print("word 2 by hand:", (states[2] + states[3]).item() / 2)  # its tokens are 3 and 4
example = (states[2] + states[3] + states[4]).item() / 3
print("the formula printed in Section 4.1:", example)


# %%
def word_vector(states, places):
    total = torch.zeros(states.shape[1])
    for place in places:
        total += states[place - 1]
    return total / len(places)


by_loop = torch.stack([word_vector(states, places) for places in tokens_of_words])
product = weights[:3] @ states  # the matrix of the picture
print("loop:   ", by_loop[:, 0].tolist())
print("product:", product[:, 0].tolist(), torch.equal(by_loop, product))

# %% [markdown]
# The words of the section, "the representation of the token at position $i$ is given by the embedding at position $i-1$",
# give the first number. Its printed example adds one output more, that *of* the word's last token, which speaks of the next
# word, and gives the second. The two cannot both be meant. `magnet_lab` follows the words.
#
# ### On a real sentence
# A tokenizer says where in the text each token stands. We give every character to a word, and every token to the word of
# its last character.


# %%
def positions(words):
    """Ids behind an opening token, and for each word the positions of its tokens."""
    word_of = [number for number, word in enumerate(words)
               for _ in range(len(word) + (number > 0))]  # its space stands before it  # fmt: skip
    made = lab.tokenizer(
        " ".join(words), add_special_tokens=False, return_offsets_mapping=True
    )
    opening = decoder.start_ids(lab.tokenizer, required=True)
    groups = [[] for _ in words]
    for place, (_, stop) in enumerate(made["offset_mapping"], start=len(opening)):
        groups[word_of[max(stop, 1) - 1]].append(place)
    return opening + made["input_ids"], groups


words = ["Lily", "unwrapped", "the", "biggest", "present", "."]
ids, groups = positions(words)
for word, places in zip(words, groups, strict=True):
    print(f"{word:10} tokens {places}, read at {[place - 1 for place in places]}")


# %%
@torch.no_grad()
def outputs(lab, words, mode):
    """The last hidden states of a sentence, (length, hidden)."""
    ids = torch.tensor([positions(words)[0]], device=lab.device)
    span_ids = mode(torch.ones_like(ids))
    return decoder.hidden_states(lab.model, ids, span_ids)[0].float().cpu()


states = outputs(lab, words, attention.bidirectional)
ours = torch.stack([word_vector(states, places) for places in groups])
library = lab.encode_words([words])[0]
difference = (ours - library).abs().max()
print(f"{len(library)} vectors, largest difference {difference:.1e}")

# %% [markdown]
# Our loop and the library's line agree (up to rounding).
#
# ### A linear probe
# Do these vectors know whether a word is a noun or a verb? A **probe** answers: freeze the vectors, train nothing but one
# linear layer to read the part of speech off them, and test it on other sentences. If a single matrix can read it, it is
# there, and in plain sight. Table 1 does this for parts of speech, chunks and names, on CoNLL-2003. Ours is `words.conll`:
# a few hundred sentences of the same kind, tagged for this project.

# %%
sentence = test[0]
for word, tag in zip(sentence.words[:6], sentence.tags["POS"], strict=False):
    print(f"{word:10} {tag}")
tags = sorted({tag for one in (*train, *test) for tag in one.tags["POS"]})
number_of = {tag: number for number, tag in enumerate(tags)}
print(f"{len(train)} sentences to train on, {len(test)} to test on, {len(tags)} tags")

# %% [markdown]
# First the **baselines**: how far does one get without any vector? (a) Always say the commonest tag. (b) Say the tag that the
# word had most often in training, and the commonest one for words that never occurred.

# %%
from collections import Counter

seen = Counter(
    pair for one in train for pair in zip(one.words, one.tags["POS"], strict=True)
)
usual = {}
for (word, tag), _ in seen.most_common():
    usual.setdefault(word, tag)
tag_counts = Counter(tag for one in train for tag in one.tags["POS"])
commonest = tag_counts.most_common(1)[0][0]
print(f"commonest tag: {commonest} · words with a usual tag: {len(usual)}")


# %%
def scored(found):
    """Accuracy (%) with its 95 % interval, from the tags found for each test sentence."""
    pairs = [(one.tags["POS"], tags) for one, tags in zip(test, found, strict=True)]
    return {"POS": bootstrap(pairs, table1.accuracy, draws=200)}


rows = {
    "commonest tag": scored([[commonest] * len(one.words) for one in test]),
    "usual tag": scored(
        [[usual.get(word, commonest) for word in one.words] for one in test]
    ),
}
for name, row in rows.items():
    print(
        f"{name:15} {row['POS'].value:.1f} % ({row['POS'].low:.1f} to {row['POS'].high:.1f})"
    )

# %% [markdown]
# The **interval** comes from drawing as many test sentences with replacement, 200 times, and counting anew: the middle 95 %.
# The accuracy by hand is just a count:

# %%
found = [usual.get(word, commonest) for word in sentence.words]
right = sum(a == b for a, b in zip(found, sentence.tags["POS"], strict=True))
print(f"by hand: {100 * right / len(found):.1f} %, "
      f"library: {table1.accuracy([(sentence.tags['POS'], found)]):.1f} %")  # fmt: skip

# %% [markdown]
# Now the vectors. One pass over the sentences gives all outputs; from those we read at token − 1, and at the token itself.
# `table1.probe` trains the linear layer (`magnet-lab reproduce table1` takes 4,000 steps; here 300).


# %%
kept = {}  # outputs are made once: a training and a mask -> a tensor for each sentence


def read(name, mode, shift):
    """For each sentence, to train on and to test on: word vectors and tag numbers."""
    if (name, mode) not in kept:
        every = [outputs(labs[name], one.words, modes[mode]) for one in (*train, *test)]
        kept[name, mode] = every
    made = []
    for one, states in zip((*train, *test), kept[name, mode], strict=True):
        groups = positions(one.words)[1]
        vectors = [
            states[[place - shift for place in places]].mean(0) for places in groups
        ]
        made.append((torch.stack(vectors), [number_of[tag] for tag in one.tags["POS"]]))
    return made[: len(train)], made[len(train) :]


# %%
def probed(name, mode, shift):
    trained_on, tested_on = read(name, mode, shift)
    found = table1.probe(trained_on, tested_on, len(tags), steps=300)
    return scored([[tags[number] for number in one] for one in found])


rows["base, causal, at the token"] = probed("base", "causal", 0)
for name in labs:
    rows[f"{name}, token − 1"] = probed(name, "both ways", 1)
rows["MAGNET, at the token"] = probed("MAGNET", "both ways", 0)
show("results", rows, title="Parts of speech read off frozen vectors (%)")


# %%
def say(one, other, rows, column):
    """Which of two rows is higher, as far as their intervals tell."""
    answer = more(rows[one][column], rows[other][column])
    words = {True: "is above", False: "is below", None: "cannot be told from"}[answer]
    print(
        f"{one} ({rows[one][column].value:.1f}) {words} {other} ({rows[other][column].value:.1f})"
    )


say("MAGNET, token − 1", "base, token − 1", rows, "POS")
say("MAGNET, token − 1", "MAGNET, at the token", rows, "POS")
say("MAGNET, token − 1", "base, causal, at the token", rows, "POS")
say("MAGNET, token − 1", "usual tag", rows, "POS")

# %% [markdown]
# Read the four lines one after the other.
#
# 1. *MAGNET against base at the same place*: has training taught the model to fetch a word from its right?
# 2. *The same model at two places*: the counter-argument from above. A part of speech hangs mostly on the word itself, and at
#    its own place the word comes for free.
# 3. *Each as its own authors read it*: MAGNET at token − 1, the base under its causal mask at the token. This is what Table 1
#    compares.
# 4. *A probe against a table of words*: without this line one could take any of the numbers for understanding.
#
# The paper finds MAGNET ahead in line 3, with a model of seven billion parameters and 4,200 steps of training:

# %%
printed = {name: dict(zip(table["columns"], values, strict=True))
           for table in [reproduce.published()["table1"]]
           for name, values in table["rows"].items()}  # fmt: skip
for name, values in printed.items():
    print(
        f"{name:18}", "  ".join(f"{task} {value:.2f}" for task, value in values.items())
    )

# %% [markdown]
# Where the lines that *you* see say something else than the paper's, that is a result too, and a likely reason is size: a
# model of five million parameters that saw some hundred steps has not learnt to fetch as well as the large one. Run the
# notebook with another `MODEL` before you believe it.
#
# ### What would break? A probe that learns by heart
# A probe is a model too, with hidden size × tags weights. Give it **nonsense** to learn: deal out the training tags at
# random. And ask it twice, on the sentences it was trained on, and on the others.

# %%
trained_on, tested_on = read("MAGNET", "both ways", 0)
chance = torch.Generator().manual_seed(0)
flat = torch.tensor([tag for _, numbers in trained_on for tag in numbers])
dealt = iter(flat[torch.randperm(len(flat), generator=chance)].tolist())
nonsense = [
    (vectors, [next(dealt) for _ in numbers]) for vectors, numbers in trained_on
]

# %%
for name, lesson in (("true tags", trained_on), ("nonsense", nonsense)):
    found = table1.probe(lesson, [*lesson, *tested_on], len(tags), steps=1000)
    for where, part in (("its own sentences", lesson), ("others", tested_on)):
        answers = found[: len(lesson)] if where != "others" else found[len(lesson) :]
        pairs = [
            (numbers, answer)
            for (_, numbers), answer in zip(part, answers, strict=True)
        ]
        print(f"{name:10} asked on {where:18} {table1.accuracy(pairs):5.1f} %")

# %% [markdown]
# On its own sentences the probe gets far more of the nonsense right than on others, though there is nothing to know: it has
# learnt by heart. On others it is down to guessing. Had we tested on the training sentences, *every* number above would have
# been too good, and larger vectors would have looked better for their size alone. So: other sentences, always, and a control
# of this kind when vectors of different sizes are compared.

# %% [markdown]
# ### One word, two meanings
# What can a vector know that a table of words cannot? That a `bat` may be an animal or a piece of wood. Twelve words with two
# meanings each, two sentences a meaning. All begin `The …`, so that whatever tells the meanings apart stands to the **right**.

# %%
MEANINGS = """
bat: flew out of the dark cave / slept in a tree all day
   | was made of wood and he hit the ball with it / broke when he hit the ball
bark: of the dog was loud / woke the cat up at night
   | of the tree was brown / came off the old tree
ring: was made of gold and fit her finger / on her hand was shiny
   | of the phone woke him up / of the bell was loud
trunk: of the elephant was long / helped the elephant drink water
   | of the car was full of bags / was open and dad put the bags in the car
nail: on her finger was red / of her thumb was pink
   | went into the wood with a hammer / held the picture on the wall
letter: came in the mail from her friend / was in an envelope with a stamp
   | A is the first one she learned to read / B comes after A
band: played a happy song / sang loud music all night
   | of rubber held the cards together / was stretched around the box
match: lit the fire in the dark / burned his finger
   | ended when our team won the game / was fun and the team played well
seal: swam in the sea and ate a fish / lay on the ice near the sea
   | on the jar was tight / of the envelope was broken
light: in the room was very bright / came from the lamp
   | bag was easy to carry / box was not heavy at all
bank: gave him money / kept her coins safe
   | of the river was muddy / was wet because of the river
pen: wrote in blue ink / fell on the paper
   | was full of pigs on the farm / kept the sheep in at night
"""
meanings = {}
for line in MEANINGS.strip().replace("\n   |", " / ").splitlines():
    word, ends = line.split(": ")
    meanings[word] = [["The", word, *end.split(), "."] for end in ends.split("/")]


# %%
def gap(lab, sentences, mode, shift):
    """Mean cosine of the word within a meaning, and across the two."""
    vectors = []
    for words in sentences:
        places = [place - shift for place in positions(words)[1][1]]
        vectors.append(outputs(lab, words, mode)[places].mean(0))
    alike = encoding.similarity(torch.stack(vectors), torch.stack(vectors))
    within = (alike[0, 1] + alike[2, 3]) / 2
    return round(float(within), 4), round(float(alike[:2, 2:].mean()), 4)


settings = [("base", "causal", 0), *((name, "both ways", 1) for name in labs)]
for name, mode, shift in settings:
    pairs = [gap(labs[name], some, modes[mode], shift) for some in meanings.values()]
    apart = bootstrap([a - b for a, b in pairs], np.mean)
    more_alike = sum(a - b > 1e-4 for a, b in pairs)
    print(f"{name:15} {mode:9} within {np.mean(pairs, axis=0)[0]:.3f}, "
          f"across {np.mean(pairs, axis=0)[1]:.3f}, gap {apart.value:.3f} "
          f"({apart.low:.3f} to {apart.high:.3f}), {more_alike} of 12")  # fmt: skip

# %% [markdown]
# The first line is not an approximation: 1.000 within and across, gap 0. Under the **causal mask** the vector of `bat` in `The
# bat …` has seen `The bat` and nothing else. It is the same vector in every sentence, whatever is learnt, however large the
# model.
#
# Under the bidirectional mask the vectors *can* differ. Whether they differ *by meaning* is the last column: in how many of
# twelve words two sentences of one meaning are more alike than two of different meanings (about six would be chance), and the
# gap, with its interval. An interval that holds 0 says that these twelve words cannot tell.
#
# The similarities of one word as a picture: the first two rows are one meaning, the last two the other.

# %%
sentences = meanings["bat"]
vectors = torch.stack([lab.encode_words([words])[0][1] for words in sentences])
alike = encoding.similarity(vectors, vectors)
show(
    "similarity",
    alike,
    [" ".join(words) for words in sentences],
    title="bat, four times",
)

# %% [markdown]
# ## Sentences
# ### Three ways to pool
# - **last**: put an end-of-text token after the sentence and take its output. The paper's choice: this output has no next
#   token to speak of, so training leaves it free to stand for the whole.
# - **mean**: the mean over the sentence's tokens. LLM2Vec's choice.
# - **echo**: keep the *causal* mask, write the sentence twice, and take the mean over the second copy (Springer et al.).
#
# Why twice? Under a causal mask the first word has seen nothing of the sentence. In the second copy every word has seen all
# of the first. Look at the lower half of the mask: each row sees a whole sentence.

# %%
twice = ["The", " dog", " ran", ".", "The", " dog", " ran", "."]
mask = attention.attention_mask(attention.causal(torch.ones(1, 8)))[0, 0]
show("mask", mask, twice, title="Echo: the last four rows are pooled")

# %% [markdown]
# Put it to the test: exchange the last word of a sentence and count whose outputs have moved.


# %%
def moved(first, second):
    """Of each token: has its output moved, under the causal mask?"""
    one, other = ids_of(first), ids_of(second)
    with torch.no_grad():
        a, b = (decoder.hidden_states(lab.model, x, attention.causal(torch.ones_like(x)))[0]
                for x in (one, other))  # fmt: skip
    return ((a - b).norm(dim=-1) > 1e-4).int().tolist()


a, b = "Tom saw a dog", "Tom saw a cat"
print("once: ", moved(a, b))
print("twice:", moved(f"{a}. {a}.", f"{b}. {b}."))

# %% [markdown]
# Read once, only the exchanged word notices. Read twice, all of the second copy does (from the first exchanged word on). The
# price is twice the tokens.
#
# Pooling by hand, for three tokens, and the library's line for a real sentence:

# %%
states = torch.tensor([[1.0, 0.0], [2.0, 3.0], [9.0, 6.0]])  # the last one is [EOS]
print("last:", states[2].tolist(), " mean:", states[:2].mean(dim=0).tolist())
text = "The dog ran home."
for pooling in ("last", "mean"):
    ids, first, stop = encoding.sentence_ids(lab.tokenizer, text, "", pooling)
    row = torch.tensor([ids], device=lab.device)
    with torch.no_grad():
        states = decoder.hidden_states(
            lab.model, row, attention.bidirectional(row.ge(0))
        )
    ours = states[0, first:stop].float().mean(dim=0).cpu()
    library = lab.encode([text], instruction="", pooling=pooling)[0]
    print(f"{pooling}: outputs {first} to {stop - 1} of {len(ids)}, "
          f"equal: {torch.allclose(ours, library, atol=1e-4)}")  # fmt: skip

# %% [markdown]
# ### Do cosines rank pairs as people do?
# Table 2 takes pairs of sentences with a score from 0 (nothing in common) to 5 (the same), and asks whether the cosine of
# the two vectors puts the pairs in the same **order**. Only the order: a scale is a matter of taste. Our pairs are
# `graded.tsv`, written for this project.

# %%
scores, first, second = next(iter(Data().similarity().values()))
scores, first, second = scores[::2], first[::2], second[::2]  # every other one: time
for place in (0, 1, 2):
    print(f"{scores[place]:.1f}  {first[place]}\n     {second[place]}")
print(len(scores), "pairs")

# %% [markdown]
# **Spearman's correlation by hand.** Five pairs. Write down the rank of each in both lists, and the differences $d$. Without
# ties,
#
# $$\rho = 1 - \frac{6 \sum d^2}{n\,(n^2 - 1)}$$

# %%
people = [0.5, 4.0, 2.5, 5.0, 1.0]
cosine = [0.97, 0.99, 0.96, 0.995, 0.98]
ranks = [[1, 4, 3, 5, 2], [2, 4, 1, 5, 3]]
d2 = sum((a - b) ** 2 for a, b in zip(*ranks, strict=True))
print("sum of d² =", d2, " rho =", 1 - 6 * d2 / (5 * 24))


# %%
def ranks_of(values):
    """By a loop: one more than how many are smaller; ties share their middle."""
    return [
        sum(x < v for x in values) + (sum(x == v for x in values) + 1) / 2
        for v in values
    ]


print(ranks_of(people), ranks_of(cosine))
without_loop = np.corrcoef(ranks_of(people), ranks_of(cosine))[0, 1]
print("correlation of the ranks:", round(without_loop, 6))
print("library, times 100:      ", round(spearman(people, cosine), 4))

# %% [markdown]
# All the cosines of this example lie between 0.96 and 1, and yet their order is not far from people's. That is why ranks are
# used: a base model's vectors all point much the same way (notebook 03).
#
# Now all pairs. Each method with the pooling of its own paper, and with the other one beside it: is a gain the method's, or
# the pooling's? And a **baseline** that has no vectors at all: the share of words that two sentences have in common.


# %%
def overlap(a, b):
    a, b = ({word.strip(".,!?").lower() for word in text.split()} for text in (a, b))
    return len(a & b) / len(a | b)


def ranked(cosines):
    pairs = list(zip(scores, cosines, strict=True))
    return {
        "pairs": bootstrap(
            pairs, lambda some: spearman(*zip(*some, strict=True)), draws=200
        )
    }


shared = [overlap(a, b) for a, b in zip(first, second, strict=True)]
results = {"words in common": ranked(shared)}

# %%
vectors = {}  # of all sentences, by row: wanted again below
todo = [("base", "last"), ("base", "mean"), ("base", "echo")]
for name in labs:
    if name not in (
        "base",
        "LLM2Vec [MNTP]",
    ):  # a step on the way, not yet for sentences
        todo += [(name, "last"), (name, "mean")]
for name, pooling in todo:
    row = "Echo" if pooling == "echo" else f"{name}, {pooling}"
    made = labs[name].encode([*first, *second], pooling=pooling)
    vectors[row] = made[: len(first)], made[len(first) :]
    results[row] = ranked(torch.cosine_similarity(*vectors[row]).tolist())
show(
    "results", results, title=f"Spearman (x 100) on {len(scores)} graded pairs, {MODEL}"
)

# %%
say("MAGNET, last", "base, last", results, "pairs")
say("MAGNET, mean", "MAGNET, last", results, "pairs")
say("MAGNET, mean", "base, mean", results, "pairs")
say("MAGNET, mean", "words in common", results, "pairs")
print("\nthe paper, LLaMA-2-7B, mean of seven sets:")
theirs = reproduce.published()["table2"]
for name in ("base", "Echo", "LLM2Vec", "MAGNET"):
    print(f"  {name:8} {theirs['rows'][name][theirs['columns'].index('average')]:.2f}")

# %% [markdown]
# Look at the intervals before the dots. With so few pairs they are wide, and most differences of a few points cannot be told
# from none; the printed lines say which can. Also ask what the sentences are about: our pairs are of
# everyday life and of the news, and a small model that has read little but stories has hardly met some of the words. The
# paper's gap between base and MAGNET is that of a model that has met them all.
#
# ### What the order hides: alignment and uniformity
# Two numbers say how vectors of length 1 lie on their sphere (Wang and Isola, 2020). **Alignment**: how far apart are pairs
# that mean the same? **Uniformity**: are all the others spread out, or in one heap?
#
# $$\text{alignment} = \frac1n \sum_i \lVert a_i - p_i \rVert^2 \qquad
# \text{uniformity} = \log \frac{2}{n(n-1)} \sum_{i<j} e^{-2 \lVert a_i - a_j \rVert^2}$$
#
# By hand, in the plane: two anchors at a right angle, and two positives, of which one lies on its anchor and one does not.

# %%
anchors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
positives = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
print("alignment by hand ", (0 + (1 + 1)) / 2)
print("uniformity by hand", np.log(np.exp(-2 * 2)))
a, u = ml.encoding.alignment(anchors, positives), ml.encoding.uniformity(anchors)
print(f"library {a:.4f} and {u:.4f}")

# %%
close = torch.tensor([score >= 4 for score in scores])
points = {}
for name in ("base, last", "base, mean", "MAGNET, last"):
    a, b = vectors[name]
    points[name] = ml.encoding.alignment(a[close], b[close]), ml.encoding.uniformity(a)
show(
    "alignment",
    points,
    title=f"{int(close.sum())} pairs that mean the same; all sentences",
)

# %% [markdown]
# A heap has a perfect alignment: where everything is one point, pairs that mean the same are close, and so are all others. A
# good model is low on *both* axes. Compare the two "last" points: the contrastive objective is there to spread the heap out
# and yet to keep the pairs together. See how far each has moved, and where the base model's mean lies.
#
# ### What would break? A vector that hangs on its neighbours
# In a batch, short texts are padded on the right. The tempting line for "the last output" is `states[:, -1]`. Try it on 48 of
# our sentences, all in one batch, and compare with the vector that each text has when it is alone.

# %%
some = [*first[:24], *second[:24]]
prompt = encoding.DEFAULT_INSTRUCTION
made = [encoding.sentence_ids(lab.tokenizer, text, prompt, "last")[0] for text in some]
ids, there = decoder.pad(made)
with torch.no_grad():
    span_ids = attention.bidirectional(there).to(lab.device)
    states = (
        decoder.hidden_states(lab.model, ids.to(lab.device), span_ids).float().cpu()
    )
padded = ~there[:, -1]
print(f"{int(padded.sum())} of {len(some)} texts are padded in this batch")

# %%
alone = torch.cat([lab.encode([text]) for text in some])
for name, found in (("states[:, -1]", states[:, -1]), ("lab.encode", lab.encode(some))):
    same = torch.cosine_similarity(found, alone)
    longest = f"{same[~padded].mean():.3f}" if (~padded).any() else "–"
    print(f"{name:14} cosine with the text's vector alone: not padded {longest}, "
          f"padded {same[padded].mean():.3f} (lowest {same[padded].min():.3f})")  # fmt: skip

# %% [markdown]
# What `states[:, -1]` reads of a padded text is the output at a *padding* token. It is a vector, it has even read the text; but
# no training has asked it to stand for anything. The longest texts of the batch keep their own vector. So a text's vector
# hangs on what happens to stand beside it, no error is raised, and with one text at a time everything looks fine. Exercise 2 is
# about this.
#
# ## Clusters
# Table 3 asks whether texts of one topic lie together: cluster the vectors with k-means, as many clusters as topics, and
# compare the clusters with the topics. The measure is the **v-measure**. With topics $C$ and clusters $K$, and $H$ for
# entropy,
#
# $$h = 1 - \frac{H(C \mid K)}{H(C)} \qquad c = 1 - \frac{H(K \mid C)}{H(K)} \qquad v = \frac{2hc}{h + c}$$
#
# $h$, homogeneity: is each cluster of one topic? $c$, completeness: is each topic in one cluster? By hand, six texts:

# %%
topic = ["a", "a", "a", "b", "b", "b"]
cluster = [1, 1, 2, 2, 2, 2]
H_C, H_K = np.log(2), -(2 / 6 * np.log(2 / 6) + 4 / 6 * np.log(4 / 6))
# Cluster 1 is all a. Cluster 2, two thirds of the texts, has one a and three b.
H_C_given_K = 4 / 6 * -(1 / 4 * np.log(1 / 4) + 3 / 4 * np.log(3 / 4))
# Topic a, half of the texts, is split 2 to 1; topic b is not split.
H_K_given_C = 3 / 6 * -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3))
h, c = 1 - H_C_given_K / H_C, 1 - H_K_given_C / H_K
print(f"h = {h:.4f}, c = {c:.4f}, v = {2 * h * c / (h + c):.4f}")


# %%
def entropy(names):
    shares = np.array(list(Counter(names).values())) / len(names)
    return -(shares * np.log(shares)).sum()


def v_measure(topic, cluster):
    """The conditional entropy by a loop over groups, each with its share of the texts."""

    def given(names, groups):
        parts = [
            [n for n, g in zip(names, groups, strict=True) if g == group]
            for group in set(groups)
        ]
        return sum(len(part) / len(names) * entropy(part) for part in parts)

    h = 1 - given(topic, cluster) / entropy(topic)
    c = 1 - given(cluster, topic) / entropy(cluster)
    return 2 * h * c / (h + c)


# %%
from sklearn.metrics import v_measure_score

print(
    f"loop {v_measure(topic, cluster):.6f}, scikit-learn {v_measure_score(topic, cluster):.6f}"
)

# %% [markdown]
# Now 180 texts of twelve topics, with two baselines: **chance**, a cluster drawn at random for every text, and **words**, the
# usual TF-IDF counts. k-means falls out differently with each seed, so five seeds; the interval is the spread over them.

# %%
from sklearn.feature_extraction.text import TfidfVectorizer

topics, texts = Data().topics(180)["topics"]
draw = np.random.default_rng(0)
chance = [
    100 * v_measure_score(topics, draw.integers(12, size=len(topics))) for _ in range(5)
]
by_words = TfidfVectorizer(stop_words="english").fit_transform(texts).toarray()
values = {
    "chance": chance,
    "words (TF-IDF)": table3.v_measures(by_words, topics, range(5)),
}

# %%
topic_vectors = {}
ways = [("base", "last"), ("base", "echo"), ("MAGNET", "last"), ("MAGNET", "mean")]
ways += [("LLM2Vec", "mean")] if "LLM2Vec" in labs else []
for name, pooling in ways:
    made = labs[name].encode(texts, pooling=pooling, instruction=table3.INSTRUCTION)
    row = "Echo" if pooling == "echo" else f"{name}, {pooling}"
    topic_vectors[row] = torch.nn.functional.normalize(made, dim=-1)
    values[row] = table3.v_measures(topic_vectors[row].numpy(), topics, range(5))
print("the instruction (Table 8):", table3.INSTRUCTION)

# %%
from magnet_lab.evaluation.experiment import Figure

found = {
    name: {"v-measure": Figure(np.mean(v), min(v), max(v), len(v))}
    for name, v in values.items()
}
show("results", found, title=f"Topics found again by k-means, {MODEL}")

# %% [markdown]
# The row to look at first is *chance*. It is far from 0: with twelve topics and so few texts, any clustering looks a little
# like them. A table that leaves this row out makes 20 look like a fifth of the way. Plain words hardly do better here, since
# short texts of one topic seldom share a word: what stands above *chance* and *words* is more than words can tell. Which rows
# do?

# %%
for name in found:
    if name not in ("chance", "words (TF-IDF)"):
        say(name, "words (TF-IDF)", found, "v-measure")
say("MAGNET, last", "base, last", found, "v-measure")
say("MAGNET, mean", "base, last", found, "v-measure")

# %% [markdown]
# The paper's numbers, on sets of its own:

# %%
theirs = reproduce.published()["table3"]
print(" " * 9, "  ".join(theirs["columns"]))
for name, row in theirs["rows"].items():
    print(
        f"{name:8} ",
        "  ".join(
            f"{x:{len(c)}.2f}" for c, x in zip(theirs["columns"], row, strict=True)
        ),
    )

# %% [markdown]
# ### A map
# Twelve short sentences in plain words, four each of three topics, on the plane on which their vectors lie furthest apart. A
# map of two directions out of hundreds leaves most out: the axes say how much of the variance it shows.

# %%
plain = ["The dog ran after the cat.", "A puppy barked at the bird."]
plain += ["The cat sat in the tree.", "The bunny hopped on the grass."]
plain += ["Mom baked a cake.", "She cooked soup for dinner."]
plain += ["Dad made bread and cookies.", "They ate warm pie with milk."]
plain += ["It rained all day.", "The snow was cold and white."]
plain += ["The wind blew the leaves.", "The sun was hot today."]
places = lab.encode(plain)
show("map", places, plain, title="1–4 animals, 5–8 cooking, 9–12 weather")

# %% [markdown]
# Do not judge a map by eye; count. How often has the nearest other text the same topic? For these twelve, and for the 180
# texts of above, whose words are harder:


# %%
def same_topic_nearest(vectors, names):
    alike = encoding.similarity(vectors, vectors).fill_diagonal_(-1)
    nearest = [names[place] for place in alike.argmax(dim=1).tolist()]
    own = np.mean([a == b for a, b in zip(nearest, names, strict=True)])
    others = np.mean([(names.count(name) - 1) / (len(names) - 1) for name in names])
    return f"{own:.0%} have a nearest text of their own topic; by chance {others:.0%}"


topic_of = ["animals"] * 4 + ["cooking"] * 4 + ["weather"] * 4
print("the twelve:", same_topic_nearest(places, topic_of))
print("the 180:   ", same_topic_nearest(topic_vectors["MAGNET, last"], topics))

# %% [markdown]
# Change the sentences and the pooling yourself:

# %% tags=["interactive"]
from magnet_lab import widgets

widgets.embedding_map(lab, plain[:8])

# %% [markdown]
# ## Measured at length
# `magnet-lab reproduce table1 table2 table3` measures all of this on more texts, with more steps. Where results of the model
# `small` come with the project, here they are, the paper's numbers hollow beside ours.


# %%
def measured(experiment):
    found = reproduce.shipped("small", experiment.id)
    if found is None:
        name = experiment.id
        print(
            f"no {name} of small comes with the project yet: magnet-lab reproduce {name} --model small"
        )
        return None
    for claim, verdict in reproduce.claims(experiment, found):
        print(f"{verdict:>20}: {claim}")
    theirs = reproduce.published()[experiment.id]
    printed = {
        name: dict(zip(theirs["columns"], row, strict=True))
        for name, row in theirs["rows"].items()
    }
    return show(
        "results", found.rows, printed=printed, title=f"{experiment.title}, small"
    )


measured(table1.EXPERIMENT)

# %%
measured(table2.EXPERIMENT)

# %%
measured(table3.EXPERIMENT)

# %% [markdown]
# ## Exercises
# ### 1 · One vector for each word (●●○, 10 minutes)
# `states` is `(length, hidden)`, `tokens_of_words` a list with the positions of each word's tokens. Return `(words, hidden)`:
# for each word the mean of the outputs at token − 1. No matrix of weights this time, and mind that a token may belong to no
# word.
#
# <details><summary>Hint</summary>
#
# A list of positions works as an index: `states[[2, 3]]` has two rows. `torch.stack` puts vectors on top of each other.
#
# </details>


# %%
def word_vectors(states, tokens_of_words):
    ### BEGIN SOLUTION
    vectors = []
    for places in tokens_of_words:
        before = [place - 1 for place in places]
        vectors.append(states[before].mean(dim=0))
    return torch.stack(vectors)
    ### END SOLUTION


# %%
check.word_vectors(word_vectors)

# %% [markdown]
# ### 2 · One vector for each text of a batch (●●○, 15 minutes)
# `states` is `(batch, length, hidden)`; `tokens` is `(batch, length)`, True at a token and False at padding, **which may stand on
# either side**; `pooling` is `"last"` or `"mean"`. Return `(batch, hidden)`.
#
# <details><summary>Hint</summary>
#
# For the mean: multiply by `tokens[:, :, None]`, sum, and divide by how many tokens there are. For the last one: the largest
# index at which `tokens` is True. `torch.arange(length) * tokens` has its maximum there.
#
# </details>


# %%
def sentence_vector(states, tokens, pooling):
    ### BEGIN SOLUTION
    if pooling == "mean":
        weights = tokens[:, :, None].to(states.dtype)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)
    last = (torch.arange(tokens.shape[1]) * tokens).argmax(dim=1)
    return states[torch.arange(len(states)), last]
    ### END SOLUTION


# %%
check.sentence_vector(sentence_vector)

# %% [markdown]
# ### 3 · Alignment and uniformity (●●○, 15 minutes)
# Write both formulas of above for `anchors` and `positives`, `(n, hidden)` each. The vectors come with any length. Return the
# two numbers, alignment first.
#
# <details><summary>Hint</summary>
#
# Bring them to length 1: `x / x.norm(dim=-1, keepdim=True)`. `torch.pdist(x)` has the distances of all pairs $i < j$, not
# squared.
#
# </details>


# %%
def alignment_uniformity(anchors, positives):
    ### BEGIN SOLUTION
    a = anchors / anchors.norm(dim=-1, keepdim=True)
    p = positives / positives.norm(dim=-1, keepdim=True)
    alignment = (a - p).square().sum(dim=-1).mean()
    uniformity = torch.pdist(a).square().mul(-2).exp().mean().log()
    return float(alignment), float(uniformity)
    ### END SOLUTION


# %%
check.alignment_uniformity(alignment_uniformity)

# %% [markdown]
# ### 4 · Echo with a bidirectional mask? (●○○, 5 minutes)
# Think before you run. Echo reads a text twice because of the causal mask. Write the share of a mask's *second half of rows*
# (the second copy) that sees the whole first half of columns, for a text of `length` tokens written twice, under `mode` (a
# function such as `attention.causal`). Is there anything left for the second copy to gain under the bidirectional mask?
#
# <details><summary>Hint</summary>
#
# `attention.attention_mask(mode(torch.ones(1, 2 * length)))[0, 0]` is the mask, `(2 · length, 2 · length)`; a block of it is
# `mask[length:, :length]`.
#
# </details>


# %%
def second_sees_first(length, mode):
    ### BEGIN SOLUTION
    mask = attention.attention_mask(mode(torch.ones(1, 2 * length)))[0, 0]
    return float(mask[length:, :length].all(dim=1).float().mean())
    ### END SOLUTION


# %%
try:
    for name, mode in modes.items():
        first_copy = attention.attention_mask(mode(torch.ones(1, 5)))[0, 0]
        alone = float(first_copy.all(dim=1).float().mean())
        print(f"{name:10} read once {alone:.0%} of the tokens see the whole text, "
              f"in the second copy {second_sees_first(5, mode):.0%}")  # fmt: skip
except NotImplementedError:
    print("second_sees_first is yours to write")

# %% [markdown]
# <details><summary>What to make of it</summary>
#
# Under the bidirectional mask every token has seen the whole text at the first reading: the second copy adds tokens and no
# news. Echo is what one does when the mask may not be changed.
#
# </details>
#
# ## Summary
# - A word is read at token − 1, because a decoder's output speaks of the next token. Whether that place is the best one is a
#   question to measure, and depends on how well the model has learnt to fetch.
# - A probe shows what is in plain sight in a vector. Beside it belong a table of words and test sentences of its own.
# - Under a causal mask a word's vector cannot know what follows. No training changes that; a mask does.
# - Cosines are judged by their order (Spearman), clusters by v-measure, and neither number means anything without the plain
#   baseline and the interval beside it.
# - A pooling is part of the method: compare each method with its own, and with the others' beside it.
# - `states[:, -1]` in a padded batch reads padding: a text's vector then hangs on its neighbours.
#
# ## Do you know now?
# 1. The outputs at the token itself carry the word's embedding for free. Why does the paper read at token − 1 all the same?
# 2. Two models reach 90 % with a linear probe; one has vectors four times as long. What do you ask?
# 3. Why is the cosine of `bat` in `The bat flew` and `The bat broke` exactly 1 under the causal mask?
# 4. Spearman 30 with an interval from 15 to 45, and a rival with 36. What may you say?
# 5. A clustering has v-measure 20. Is that good?
#
# <details><summary>Answers</summary>
#
# 1. Because pre-training, MNTP and MSG all ask the output at $l$ for the token at $l+1$: what the model gathers about a token
#    stands one place to its left.
# 2. How both do on nonsense tags, and on the same test sentences: longer vectors make it easier to learn by heart.
# 3. The output at `bat` has seen `The bat`, in both sentences the same two tokens at the same places.
# 4. That this test cannot tell them apart. More pairs, or the difference on the same pairs.
# 5. Ask what chance gives for so many topics and texts, and what plain words give.
#
# </details>
#
# **Go on** with 08, generation and repetition: what all this costs a model that is also to write. **In the app**: the page
# *Embeddings*, where you compare sentences and words, and *Results* (`magnet-lab app`).
