"""What the adapters of a model changed, in one table, on data that none of them was trained on.

Every model sees the same stories, the same missing sentences, the same prefixes and the same pairs, so a column
compares with its neighbour line by line.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path

from torch import cosine_similarity
from tqdm import tqdm

from magnet_lab import zoo
from magnet_lab.bench._report import hardware
from magnet_lab.data.pairs import read
from magnet_lab.data.rows import Corpus, texts
from magnet_lab.evaluation import infilling, masked, repetition, similarity
from magnet_lab.model import Magnet
from magnet_lab.paraphrase import sentences

STORIES, TRIPLETS = "stories-held-out.txt", "sentences-held-out.tsv"

FIGURES = "\n## Figures\n\nOn texts that no adapter was trained on, by `magnet-lab bench adapters`.\n\n"

ROWS = {
    "masked": "masked tokens found (%)",
    "causal": "perplexity of missing sentences, left context only",
    "infill": "perplexity of missing sentences, MAGNET mask",
    "copy_rate": "infills that copy 4 words of their context (%)",
    "true_copy_rate": "… true sentences that do (%)",
    "triplets": "paraphrase closer than look-alike (%)",
    "rep_sen": "Rep-Sen",
    "rep_4": "Rep-4",
}


def main() -> None:
    """Measure the base model and its adapters, and print them side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="small", help="tiny, small, or the folder or hub id of a decoder")
    parser.add_argument("--adapters", nargs="*", metavar="NAME", help="names or folders; by default all of the model's")
    parser.add_argument("--stories", nargs="+", metavar="FILE", help="held-out stories (the project's own)")
    parser.add_argument("--sts", nargs="+", default=[], metavar="FILE", help="lines of score, sentence, sentence")
    parser.add_argument("--limit", type=int, default=150, help="stories; pairs: ten times as many (%(default)s)")
    parser.add_argument("--infills", type=int, default=40, help="infills written for the copy rate (%(default)s)")
    parser.add_argument("--prefixes", type=int, default=32, help="continuations for Rep-Sen and Rep-4 (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file; what it holds already is kept")
    parser.add_argument("--cards", action="store_true", help="add the table to the model cards of the adapters")
    options = parser.parse_args()
    stories = [" ".join(text.split()) for text in texts(Corpus(options.stories or [STORIES]))][: options.limit]
    pairs = {Path(path).name: similarity.read_pairs(Path(path), options.limit * 10) for path in options.sts}
    base = Magnet.from_pretrained(options.model, adapter=None)
    names = zoo.adapters(options.model) if options.adapters is None else options.adapters
    result = {
        "model": options.model,
        "stories": [Path(path).name for path in options.stories or [STORIES]],
        "pairs": list(pairs),
        "limits": [options.limit, options.infills, options.prefixes],
        "hardware": hardware(),
        "versions": {package: version(package) for package in ("torch", "transformers", "peft", "magnet-lab")},
    }
    found = figures_so_far(options.json, result)
    for name in tqdm([None, *names], desc="models", disable=not names):
        title = Path(name).name if name else "base"
        if title not in found:
            found[title] = measure(base.use(name), stories, pairs, infills=options.infills, prefixes=options.prefixes)
            if options.json:
                options.json.write_text(json.dumps(result | {"figures": found}, indent=1) + "\n", encoding="utf-8")
    found = {title: found[title] for title in ["base", *(Path(name).name for name in names)]}
    if options.json:
        options.json.write_text(json.dumps(result | {"figures": found}, indent=1) + "\n", encoding="utf-8")
    print(table(found))
    if options.cards:
        for name in names:
            card = Path(zoo.adapter_path(options.model, name)) / "README.md"
            text = card.read_text(encoding="utf-8").split(FIGURES)[0]
            card.write_text(f"{text}{FIGURES}{table(found)}\n", encoding="utf-8")


def figures_so_far(path: Path | None, result: dict) -> dict[str, dict[str, float]]:
    """Figures of an earlier run that was stopped, where it measured on the same."""
    if path is None or not path.is_file():
        return {}
    earlier = json.loads(path.read_text(encoding="utf-8"))
    same = all(earlier.get(key) == result[key] for key in ("model", "stories", "pairs", "limits"))
    return earlier["figures"] if same else {}


def measure(lab: Magnet, stories: list[str], pairs: dict, *, infills: int, prefixes: int) -> dict[str, float]:
    """All figures of one model: the keys of `ROWS`, and for each file of pairs two, by pooling."""
    missing = infilling.remove_sentences(stories)
    figures = {"masked": masked.accuracy(lab, stories)}
    for mode in ("causal", "infill"):
        figures[mode] = infilling.perplexity(infilling.log_probs(lab, missing, mode=mode))
    figures["copy_rate"], figures["true_copy_rate"] = copy_rates(lab, missing[:infills])
    figures["triplets"] = triplets(lab)
    for file, (scores, first, second) in pairs.items():
        for pooling in ("last", "mean"):
            cosines = similarity.cosines(lab, first, second, pooling=pooling)
            figures[f"{file}, {pooling}"] = similarity.spearman(scores, cosines.tolist())
    openings = [sentences(story, shortest=1, longest=1000)[0] for story in stories[:prefixes]]
    written = repetition.continuations(lab, openings)
    figures["rep_sen"] = sum(map(repetition.rep_sen, written)) / len(written)
    figures["rep_4"] = sum(map(repetition.rep_n, written)) / len(written)
    return figures


def copy_rates(lab: Magnet, missing: list[infilling.Missing]) -> tuple[float, float]:
    """Percentages of greedy infills, and of the true sentences, that repeat a 4-gram of their story."""
    copied = true = 0
    for story in tqdm(missing, desc="infilling", unit=" stories", leave=False):
        context = story.text.replace("[blank]", " ")
        copied += infilling.copies(context, lab.infill(story.text).spans[0])
        true += infilling.copies(context, story.fills[0])
    return 100 * copied / len(missing), 100 * true / len(missing)


def triplets(lab: Magnet) -> float:
    """Percentage of held-out sentences that lie closer to their paraphrase than to a sentence that looks like them."""
    sentence, same, other = zip(*read("triplets", Corpus([TRIPLETS])), strict=True)
    vectors = lab.encode([*sentence, *same, *other]).view(3, len(sentence), -1)
    closer = cosine_similarity(vectors[0], vectors[1]) > cosine_similarity(vectors[0], vectors[2])
    return 100 * float(closer.float().mean())


def table(found: dict[str, dict[str, float]]) -> str:
    """The figures as a Markdown table, a column a model."""
    lines = [["", *found], ["---", *["---:"] * len(found)]]
    for key in next(iter(found.values())):
        label = ROWS.get(key, f"Spearman ({key} token)" if key.endswith("last") else f"Spearman ({key})")
        lines.append([label, *(f"{figures[key]:.3g}" for figures in found.values())])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
