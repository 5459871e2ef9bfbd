"""Answers to the checks of repetition and copies."""

import re
from itertools import pairwise

from magnet_lab.course.answers import right, wrong

# rep_n(text, n)


@right("rep_n")
def rep_n_by_a_set(text, n):
    words = text.lower().split()
    runs = [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
    if not runs:
        return 0.0
    return 1 - len(set(runs)) / len(runs)


@right("rep_n")
def rep_n_by_counting(text, n):
    words = text.lower().split()
    said, again, count = [], 0, 0
    for i in range(len(words) - n + 1):
        run = words[i : i + n]
        again += run in said
        said.append(run)
        count += 1
    return again / count if count else 0


@wrong("rep_n", "the share of runs that are new")
def rep_n_of_new_ones(text, n):
    words = text.lower().split()
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return len(set(runs)) / len(runs) if runs else 0.0


@wrong("rep_n", "the last run is missing")
def rep_n_off_by_one(text, n):
    words = text.lower().split()
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


@wrong("rep_n", "the runs do not overlap")
def rep_n_of_chunks(text, n):
    words = text.lower().split()
    runs = [tuple(words[i : i + n]) for i in range(0, len(words) - n + 1, n)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


@wrong("rep_n", "upper and lower case")
def rep_n_with_case(text, n):
    words = text.split()
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


@wrong("rep_n", "runs of characters")
def rep_n_of_characters(text, n):
    text = text.lower()
    runs = [text[i : i + n] for i in range(len(text) - n + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


@wrong("rep_n", "the first time counts as a repetition too")
def rep_n_of_all_that_recur(text, n):
    words = text.lower().split()
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return sum(1 for run in runs if runs.count(run) > 1) / len(runs) if runs else 0.0


@wrong("rep_n", "divided by the number of words")
def rep_n_over_words(text, n):
    words = text.lower().split()
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return (len(runs) - len(set(runs))) / len(words)


@wrong("rep_n", "ZeroDivisionError")
def rep_n_without_a_guard(text, n):
    words = text.lower().split()
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(runs)) / len(runs)


@wrong("rep_n", "their order counts")
def rep_n_of_sets(text, n):
    words = text.lower().split()
    runs = [frozenset(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


@wrong("rep_n", "per cent")
def rep_n_in_per_cent(text, n):
    return 100 * rep_n_by_a_set(text, n)


# rep_sen(text)


@right("rep_sen")
def rep_sen_by_splitting(text):
    parts = [part for part in re.split(r"(?<=[.!?])\s+", text.lower().strip()) if part]
    return 1 - len(set(parts)) / len(parts) if parts else 0.0


@right("rep_sen")
def rep_sen_by_walking(text):
    parts, part = [], ""
    for i, character in enumerate(text.lower()):
        part += character
        if character in ".!?" and (i + 1 == len(text) or text[i + 1] == " "):
            parts.append(part.strip())
            part = ""
    again = sum(part in parts[:i] for i, part in enumerate(parts))
    return again / len(parts) if parts else 0


@wrong("rep_sen", "an empty piece counts as a sentence")
def rep_sen_with_empty_pieces(text):
    parts = [part.strip() for part in text.lower().split(".")]
    return 1 - len(set(parts)) / len(parts)


@wrong("rep_sen", "only the full stop")
def rep_sen_of_full_stops(text):
    parts = [part.strip() for part in text.lower().split(".") if part.strip()]
    return 1 - len(set(parts)) / len(parts) if parts else 0.0


@wrong("rep_sen", "every mark ends a sentence")
def rep_sen_of_every_mark(text):
    parts = [part.strip() for part in re.split("[.!?]", text.lower()) if part.strip()]
    return 1 - len(set(parts)) / len(parts) if parts else 0.0


@wrong("rep_sen", "upper and lower case")
def rep_sen_with_case(text):
    parts = [part for part in re.split(r"(?<=[.!?])\s+", text) if part]
    return 1 - len(set(parts)) / len(parts) if parts else 0.0


@wrong("rep_sen", "the first time counts as a repetition too")
def rep_sen_of_all_that_recur(text):
    parts = [part for part in re.split(r"(?<=[.!?])\s+", text.lower()) if part]
    return sum(parts.count(part) > 1 for part in parts) / len(parts) if parts else 0.0


@wrong("rep_sen", "follows itself at once")
def rep_sen_of_neighbours(text):
    parts = [part for part in re.split(r"(?<=[.!?])\s+", text.lower()) if part]
    return sum(a == b for a, b in pairwise(parts)) / len(parts) if parts else 0.0


@wrong("rep_sen", "ZeroDivisionError")
def rep_sen_without_a_guard(text):
    parts = [part for part in re.split(r"(?<=[.!?])\s+", text.lower()) if part]
    return 1 - len(set(parts)) / len(parts)


@wrong("rep_sen", "the share of sentences that are new")
def rep_sen_of_new_ones(text):
    parts = [part for part in re.split(r"(?<=[.!?])\s+", text.lower()) if part]
    return len(set(parts)) / len(parts) if parts else 0.0


# copy_rate(contexts, infills, n)


def _words(text):
    return re.findall(r"[a-z']+", text.lower())


@right("copy_rate")
def copy_rate_by_sets(contexts, infills, n):
    copies = 0
    for context, infill in zip(contexts, infills, strict=True):
        here, there = _words(context), _words(infill)
        seen = {tuple(here[i : i + n]) for i in range(len(here) - n + 1)}
        copies += any(tuple(there[i : i + n]) in seen for i in range(len(there) - n + 1))
    return copies / len(infills)


@right("copy_rate")
def copy_rate_by_search(contexts, infills, n):
    found = []
    for context, infill in zip(contexts, infills, strict=True):
        here, there = f" {' '.join(_words(context))} ", _words(infill)
        runs = [f" {' '.join(there[i : i + n])} " for i in range(len(there) - n + 1)]
        found.append(any(run in here for run in runs))
    return sum(found) / len(found)


@wrong("copy_rate", "order does not count")
def copy_rate_of_common_words(contexts, infills, n):
    pairs = list(zip(contexts, infills, strict=True))
    return sum(len(set(_words(a)) & set(_words(b))) >= n for a, b in pairs) / len(pairs)


@wrong("copy_rate", "neither case nor punctuation")
def copy_rate_of_raw_words(contexts, infills, n):
    copies = 0
    for context, infill in zip(contexts, infills, strict=True):
        here, there = context.split(), infill.split()
        seen = {tuple(here[i : i + n]) for i in range(len(here) - n + 1)}
        copies += any(tuple(there[i : i + n]) in seen for i in range(len(there) - n + 1))
    return copies / len(infills)


@wrong("copy_rate", "punctuation counts")
def copy_rate_with_punctuation(contexts, infills, n):
    copies = 0
    for context, infill in zip(contexts, infills, strict=True):
        here, there = context.lower().split(), infill.lower().split()
        seen = {tuple(here[i : i + n]) for i in range(len(here) - n + 1)}
        copies += any(tuple(there[i : i + n]) in seen for i in range(len(there) - n + 1))
    return copies / len(infills)


@wrong("copy_rate", "upper and lower case")
def copy_rate_with_case(contexts, infills, n):
    copies = 0
    for context, infill in zip(contexts, infills, strict=True):
        here, there = (re.findall(r"[A-Za-z']+", text) for text in (context, infill))
        seen = {tuple(here[i : i + n]) for i in range(len(here) - n + 1)}
        copies += any(tuple(there[i : i + n]) in seen for i in range(len(there) - n + 1))
    return copies / len(infills)


@wrong("copy_rate", "mean share of copied runs")
def copy_rate_of_runs(contexts, infills, n):
    total = 0.0
    for context, infill in zip(contexts, infills, strict=True):
        here, there = _words(context), _words(infill)
        seen = {tuple(here[i : i + n]) for i in range(len(here) - n + 1)}
        runs = {tuple(there[i : i + n]) for i in range(len(there) - n + 1)}
        total += len(runs & seen) / max(1, len(runs))
    return total / len(infills)


@wrong("copy_rate", "compared with all contexts")
def copy_rate_of_all_contexts(contexts, infills, n):
    everything = " ".join(contexts)
    return copy_rate_by_sets([everything] * len(infills), infills, n)


@wrong("copy_rate", "this counts copies")
def copy_rate_count(contexts, infills, n):
    return copy_rate_by_sets(contexts, infills, n) * len(infills)


@wrong("copy_rate", "the whole infill")
def copy_rate_of_whole_infills(contexts, infills, n):
    pairs = zip(contexts, infills, strict=True)
    return sum(infill.lower() in context.lower() for context, infill in pairs) / len(infills)


@wrong("copy_rate", "infills that do *not* copy")
def copy_rate_of_originals(contexts, infills, n):
    return 1 - copy_rate_by_sets(contexts, infills, n)
