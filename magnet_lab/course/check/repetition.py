"""Does a text say things twice, or copy its context? Rep-n, Rep-Sen (Equation 6, Figure 5) and the share of copies."""

import re
from itertools import pairwise

from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.evaluation import infilling, repetition
from magnet_lab.paraphrase import sentences


def rep_n(function) -> Verdict:
    """Share of n-word runs that were said before (Equation 6): `rep_n(text, n)`.

    1 - (different runs of n words) / (all runs of n words). Words are what stands between spaces, in lower case.

    Args of your function:
        text: a string.
        n: words of a run.

    It returns a number from 0 to 1, and 0 for a text of fewer than n words.

        rep_n("the cat saw the cat", 2)  ->  1 - 3/4 = 0.25
    """
    cases = [
        ("the cat saw the cat", 2),
        ("a a a a", 1),
        ("once upon a time there was a cat", 4),
        ("too short", 4),
        ("The cat ran and the cat ran and THE cat ran", 3),
        ("he said no . he said no . he said yes .", 4),
        ("row row row your boat", 2),
    ]

    def runs(text, n):
        words = text.lower().split()
        return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]

    def share(found, of=None):
        return 1 - len(set(found)) / (of or len(found)) if found else 0.0

    def once(found):
        return sum(found.count(run) > 1 for run in found) / len(found) if found else 0.0

    judge = compare(
        cases,
        lambda text, n: float(repetition.rep_n(text, n)),
        mistakes=[
            Mistake(
                "this is the share of runs that are new: Rep-n is 1 minus that",
                lambda text, n: 1 - share(runs(text, n)) if runs(text, n) else 0.0,
            ),
            Mistake(
                "the last run is missing: there are len(words) - n + 1 of them, and range leaves its end out",
                lambda text, n: share(runs(text, n)[:-1]),
            ),
            Mistake(
                "the runs do not overlap: they must begin at every word, not at every n-th one",
                lambda text, n: share(runs(text, n)[::n]),
            ),
            Mistake(
                "upper and lower case are told apart: The and the are one word; use text.lower()",
                lambda text, n: share(
                    [tuple(text.split()[start : start + n]) for start in range(len(text.split()) - n + 1)]
                ),
            ),
            Mistake(
                "these are runs of characters: a run is n *words*; use text.split()",
                lambda text, n: share([text.lower()[start : start + n] for start in range(len(text) - n + 1)]),
            ),
            Mistake(
                "the first time counts as a repetition too: only what was said *before* does, so a run that comes "
                "twice is one repetition; 1 - different / all",
                lambda text, n: once(runs(text, n)),
            ),
            Mistake(
                "divided by the number of words: it is a share of the runs, of which there are n - 1 fewer",
                lambda text, n: (
                    (len(runs(text, n)) - len(set(runs(text, n)))) / len(text.split()) if runs(text, n) else 0.0
                ),
            ),
            Mistake(
                "the words of a run are sorted, or a set: their order counts, the cat is not cat the",
                lambda text, n: share([tuple(sorted(run)) for run in runs(text, n)]),
            ),
            Mistake(
                "the words of a run are sorted, or a set: their order counts, the cat is not cat the",
                lambda text, n: share([frozenset(run) for run in runs(text, n)]),
            ),
            Mistake(
                "n is not used: these are single words",
                lambda text, n: share(runs(text, 1)),
            ),
            Mistake(
                "a text with fewer than n words counts as repeating itself: it has no run at all, so its share is 0",
                lambda text, n: share(runs(text, n)) if runs(text, n) else 1.0,
            ),
            Mistake(
                "the answer is in per cent: a share from 0 to 1 is wanted",
                lambda text, n: 100 * share(runs(text, n)),
            ),
            Mistake(
                "this counts repetitions: a share of all runs is wanted",
                lambda text, n: float(len(runs(text, n)) - len(set(runs(text, n)))),
            ),
            Mistake(
                "only a run that follows itself at once counts: it may have been said anywhere before",
                lambda text, n: (
                    sum(a == b for a, b in pairwise(runs(text, n))) / len(runs(text, n)) if runs(text, n) else 0.0
                ),
            ),
        ],
    )
    praise = "Overlapping runs, upper and lower case, texts too short for one, and nothing but repetition."
    return examine(function, "rep_n(text, n)", judge, praise)


def rep_sen(function) -> Verdict:
    """Share of sentences that were said before (Figure 5): `rep_sen(text)`.

    1 - (different sentences) / (all sentences), whatever their case. A sentence ends at . ! or ? before a space or at
    the end of the text.

    Args of your function:
        text: a string.

    It returns a number from 0 to 1, and 0 for an empty text.

        rep_sen("He ran. He ran. He fell.")  ->  1 - 2/3 = 0.3333
    """
    cases = [
        ("He ran. He ran. He fell.",),
        ("Only one sentence here.",),
        ("",),
        ("Why? Because! Why? Because!",),
        ("It cost 3.50 now. it cost 3.50 now. It cost 3.50 then.",),
        ("Tom ran. Tom sat. Tom ran. Tom ran. Tom ate.",),
    ]

    def parts(text):
        return [sentence.strip().lower() for sentence in sentences(text, shortest=1, longest=1000)]

    def share(found):
        return 1 - len(set(found)) / len(found) if found else 0.0

    def twice(found):
        return sum(found.count(sentence) > 1 for sentence in found) / len(found) if found else 0.0

    def at_dots(text):
        return text.lower().split(".")

    judge = compare(
        cases,
        lambda text: float(repetition.rep_sen(text)),
        mistakes=[
            Mistake(
                "an empty piece counts as a sentence: text.split('.') leaves one after the last dot; leave out what is "
                "empty",
                lambda text: share([part.strip() for part in at_dots(text)]),
            ),
            Mistake(
                "an empty piece counts as a sentence: text.split('.') leaves one after the last dot; leave out what is "
                "empty",
                lambda text: share(at_dots(text)),
            ),
            Mistake(
                "only the full stop ends a sentence here, and every one does: ! and ? end sentences too, and the dot "
                "in 3.50 does not; split where a mark is followed by a space",
                lambda text: share([part.strip() for part in at_dots(text) if part.strip()]),
            ),
            Mistake(
                "every mark ends a sentence: the dot in 3.50 does not; split where a mark is followed by a space",
                lambda text: share([part.strip() for part in re.split(r"[.!?]", text.lower()) if part.strip()]),
            ),
            Mistake(
                "upper and lower case are told apart: use text.lower()",
                lambda text: share([part.strip() for part in sentences(text, shortest=1, longest=1000)]),
            ),
            Mistake(
                "this is the share of sentences that are new: Rep-Sen is 1 minus that",
                lambda text: 1 - share(parts(text)) if text else 0.0,
            ),
            Mistake(
                "the first time counts as a repetition too: a sentence that comes twice is *one* repetition; "
                "1 - different / all",
                lambda text: twice(parts(text)),
            ),
            Mistake(
                "only a sentence that follows itself at once counts: it may have been said anywhere before",
                lambda text: sum(a == b for a, b in pairwise(parts(text))) / len(parts(text)) if text else 0.0,
            ),
            Mistake(
                "only a sentence that follows itself at once counts: it may have been said anywhere before",
                lambda text: (
                    sum(a == b for a, b in pairwise(parts(text))) / (len(parts(text)) - 1)
                    if len(parts(text)) > 1
                    else 0.0
                ),
            ),
            Mistake(
                "these are words: the share is of whole sentences",
                lambda text: share(text.lower().split()),
            ),
            Mistake(
                "this counts repetitions: a share of all sentences is wanted",
                lambda text: float(len(parts(text)) - len(set(parts(text)))),
            ),
        ],
    )
    praise = "All three marks, a number with a dot, another case, no text at all."
    return examine(function, "rep_sen(text)", judge, praise)


def copy_rate(function) -> Verdict:
    """How many infills copy their context: `copy_rate(contexts, infills, n)`.

    The share of infills that repeat any n words of their own context in order, whatever their case and without the
    punctuation marks around words.

    Args of your function:
        contexts, infills: lists of strings of one length; the i-th infill belongs to the i-th context.
        n: how many words in a row make a copy.

    It returns a number from 0 to 1.

        copy_rate(["He saw a cat. It ran."], ["Then he saw a dog."], 3)  ->  1.0: "he saw a" stands in both
    """
    story = "Tom had a red ball. He threw it over the wall."
    cases = [
        ([story], ["He threw it over the wall."], 4),
        ([story], ["A dog took it away."], 3),
        (["He saw a cat. It ran."], ["Then he saw a dog."], 3),
        ([story, "Anna went home."], ["The ball red a had Tom.", "Anna went home early."], 3),
        (["It was late, very late.", "Sam sat down."], ["Sam sat down.", "It was late very late."], 3),
        ([story, story, story], ["Tom had a cat.", "Tom had a red car.", "It rained."], 4),
    ]

    def ngrams(text, n, clean=infilling.ngrams):
        return clean(text, n)

    def rate(judge_one):
        return lambda contexts, infills, n: (
            sum(judge_one(one, other, n) for one, other in zip(contexts, infills, strict=True)) / len(infills)
        )

    def raw(text, n):
        words = text.split()
        return {tuple(words[start : start + n]) for start in range(len(words) - n + 1)}

    def overlap(one, other, n):
        found = ngrams(other, n)
        return len(ngrams(one, n) & found) / len(found) if found else 0.0

    judge = compare(
        cases,
        rate(infilling.copies),
        mistakes=[
            Mistake(
                "order does not count here: n words in common make no copy, they must follow each other in both",
                rate(lambda one, other, n: len(ngrams(one, 1) & ngrams(other, 1)) >= n),
            ),
            Mistake(
                "upper and lower case are told apart: a sentence's first word has a capital letter; use lower()",
                rate(
                    lambda one, other, n: bool(
                        {tuple(w.strip(".,!?") for w in run) for run in raw(one, n)}
                        & {tuple(w.strip(".,!?") for w in run) for run in raw(other, n)}
                    )
                ),
            ),
            Mistake(
                "punctuation counts as a part of a word: late, and late are one word; strip the marks",
                rate(lambda one, other, n: bool(raw(one.lower(), n) & raw(other.lower(), n))),
            ),
            Mistake(
                "neither case nor punctuation is taken off: compare words in lower case and without marks",
                rate(lambda one, other, n: bool(raw(one, n) & raw(other, n))),
            ),
            Mistake(
                "this is the mean share of copied runs: an infill copies or it does not; count those that do",
                rate(overlap),
            ),
            Mistake(
                "every infill is compared with all contexts: the i-th belongs to the i-th context alone",
                lambda contexts, infills, n: (
                    sum(any(infilling.copies(c, infill, n) for c in contexts) for infill in infills) / len(infills)
                ),
            ),
            Mistake(
                "this counts copies: a share of all infills is wanted",
                lambda contexts, infills, n: rate(infilling.copies)(contexts, infills, n) * len(infills),
            ),
            Mistake(
                "this is the share of infills that do *not* copy",
                lambda contexts, infills, n: 1 - rate(infilling.copies)(contexts, infills, n),
            ),
            Mistake(
                "the whole infill is looked for in the context: n words in a row are enough",
                rate(lambda one, other, n: other.lower() in one.lower()),
            ),
            Mistake(
                "the whole infill is looked for in the context: n words in a row are enough",
                rate(lambda one, other, n: other.lower().strip(".") in one.lower()),
            ),
            Mistake(
                "runs of n characters are compared: n *words* in a row make a copy",
                rate(
                    lambda one, other, n: any(
                        other.lower()[start : start + n] in one.lower() for start in range(len(other) - n + 1)
                    )
                ),
            ),
        ],
    )
    praise = "Case, punctuation, order, and each infill beside its own context."
    return examine(function, "copy_rate(contexts, infills, n)", judge, praise)
