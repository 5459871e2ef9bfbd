"""Paraphrases by rule: a second way to say a sentence, offline and in no time.

The paper paraphrases with a T5 model (Parrot). These few rules say less, but they say it in other words: synonyms,
contractions, phrases of time that move, two names that swap, words that add nothing and go. What is the
same on both sides of a pair is then the sense more than the words, which is all that the contrastive objective wants.
"""

import re

import torch

SYNONYMS = [
    ("big", "large"),
    ("small", "little", "tiny"),
    ("happy", "glad", "cheerful"),
    ("sad", "unhappy"),
    ("scared", "afraid", "frightened"),
    ("angry", "mad", "cross"),
    ("pretty", "beautiful"),
    ("nice", "kind"),
    ("quickly", "fast"),
    ("began", "started"),
    ("shouted", "yelled", "cried"),
    ("saw", "noticed", "spotted"),
    ("mom", "mother", "mommy"),
    ("dad", "father", "daddy"),
    ("kids", "children"),
    ("road", "street", "path"),
    ("forest", "woods"),
    ("find", "discover"),
    ("many", "lots of"),
    ("shop", "store"),
    ("rabbit", "bunny"),
    ("begin", "start"),
    ("answer", "reply"),
    ("hurt", "injured"),
    ("near", "close to", "next to"),
    ("because", "since"),
]
CONTRACTIONS = [
    ("did not", "didn't"),
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("was not", "wasn't"),
    ("is not", "isn't"),
    ("were not", "weren't"),
    ("could not", "couldn't"),
    ("can not", "can't"),
    ("will not", "won't"),
    ("would not", "wouldn't"),
    ("I am", "I'm"),
    ("it is", "it's"),
    ("he is", "he's"),
    ("she is", "she's"),
    ("they are", "they're"),
    ("we are", "we're"),
    ("you are", "you're"),
    ("let us", "let's"),
]
_ADDS_NOTHING = re.compile(r"\b(very|really|just|quite|even|suddenly) (?=\w)", re.IGNORECASE)
_TIME_FIRST = re.compile(
    r"^(One day|The next day|Every day|One night|One morning|Later|That night|After a while|Today|Yesterday),? "
    r"(\w[^,;:\"]+)([.!?])$"
)
_TWO_NAMES = re.compile(r"\b([A-Z][a-z]+) and ([A-Z][a-z]+)\b")


def paraphrase(text: str, generator: torch.Generator) -> str:
    """Another way to say a sentence; each rule that fits is used with an even chance, and at least one if one fits."""
    changes = [change for rule in (_move_time, _swap_names, _contract, _synonyms, _drop) if (change := rule(text))]
    if not changes:
        return text
    numbers = torch.rand(len(changes), generator=generator)
    chosen = [change for change, number in zip(changes, numbers, strict=True) if number < 0.5]
    chosen = chosen or [changes[int(numbers.argmin())]]
    for rule in chosen:
        text = rule(text, generator)
    text = re.sub(r"\b([Aa]) (?=[aeio]|un(?!i))", r"\1n ", text)  # a synonym may start with another sound
    return re.sub(r"\b([Aa])n (?=[^aeiouAEIOUh\W])", r"\1 ", text)


def sentences(text: str, shortest: int = 5, longest: int = 40) -> list[str]:
    """The sentences of a text that have so many words."""
    found = re.split(r"(?<=[.!?])[\"']?\s+", text)
    return [sentence for sentence in found if shortest <= len(sentence.split()) <= longest]


def _move_time(text: str):
    if _TIME_FIRST.match(text):
        return lambda text, _: _TIME_FIRST.sub(lambda m: f"{_capital(m[2])} {m[1].lower()}{m[3]}", text)
    return None


def _swap_names(text: str):
    if _TWO_NAMES.search(text):
        return lambda text, _: _TWO_NAMES.sub(r"\2 and \1", text)
    return None


def _contract(text: str):
    for long, short in CONTRACTIONS:
        for one, other in ((long, short), (short, long)):
            if pattern := _word(one, text):
                return lambda text, _, pattern=pattern, other=other: pattern.sub(_in_case(other), text)
    return None


def _synonyms(text: str):
    fitting = [(word, group) for group in SYNONYMS for word in group if _word(word, text)]
    if not fitting:
        return None

    def change(text: str, generator: torch.Generator) -> str:
        for word, group in fitting:
            others = [other for other in group if other != word]
            other = others[int(torch.randint(len(others), (), generator=generator))]
            if pattern := _word(word, text):
                text = pattern.sub(_in_case(other), text)
        return text

    return change


def _drop(text: str):
    if _ADDS_NOTHING.search(text):
        return lambda text, _: _capital(_ADDS_NOTHING.sub("", text))
    return None


def _word(word: str, text: str) -> re.Pattern | None:
    pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    return pattern if pattern.search(text) else None


def _in_case(word: str):
    return lambda match: _capital(word) if match[0][0].isupper() else word


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
