"""Table 5: do people find the sentences fitting that were written into stories?

`magnet-lab reproduce table5` writes them, keeps them in its result, and takes figures that need no reader: a stand-in,
and no more. Then people judge:

    python -m magnet_lab.evaluation.table5 sheet results/small/table5.json
    python -m magnet_lab.evaluation.table5 score results/small/table5.json anna.csv ben.csv

The first command writes `table5-sheet.csv`, a copy of which each rater fills in without knowing who wrote what, and
`table5-key.csv`, which says so. The second one puts the raters' scores into the result, where `magnet-lab results
table5` shows them beside the paper's. The paper's two raters judged four systems; here the true sentences are among
them as well, since not even those are always found fitting.
"""

import argparse
import sys
from pathlib import Path
from statistics import fmean

from tqdm import tqdm

from magnet_lab.evaluation import judgement
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Result, Row, Setting, bootstrap, texts
from magnet_lab.evaluation.verdicts import row_more
from magnet_lab.evaluation.written import COPIES, SYSTEMS, Written, middle_sentences, percentage, write

SCORE, KAPPA, ALL = "score", "Cohen's kappa", "all together"
STAND_IN = "stand-in: gain of what follows (nats a token)"
NOT_COPIED = "stand-in, without copies"
TRUE = "true sentence"


def _row(system: str):
    def measure(setting: Setting) -> Row:
        stories = middle_sentences(setting.data, setting.some(100, 3), seed=setting.seed)
        base = setting.lab(None)
        if system == TRUE:
            written = [Written(story, story.fills[0]) for story in stories]
        else:
            written = write(SYSTEMS[system](setting), stories)
        gains = [each.gain(base) for each in tqdm(written, desc="what follows", unit=" stories", leave=False)]
        copied = [each.copies for each in written]
        figures = {STAND_IN: bootstrap(gains, fmean), COPIES: bootstrap(copied, percentage)}
        if not_copied := [gain for gain, copy in zip(gains, copied, strict=True) if not copy]:
            figures[NOT_COPIED] = bootstrap(not_copied, fmean)
        return Row(figures, {each.missing.text: each.sentence for each in written})

    return measure


def _better(other: str, column: str = SCORE):
    return lambda rows: row_more(rows, "MAGNET", other, column)


EXPERIMENT = Experiment(
    id="table5",
    title="Infillings that people found fitting (%)",
    rows={system: _row(system) for system in ("base", "zero-shot", "five-shot", "MAGNET", TRUE)},
    claims=[
        Claim(
            "People find MAGNET's sentences fitting more often than the base model's (62.0 to 53.5)", _better("base")
        ),
        Claim("… than zero-shot ones (62.0 to 5.5)", _better("zero-shot")),
        Claim("… than five-shot ones (62.0 to 54.5)", _better("five-shot")),
        Claim(
            "By the stand-in, which is no reader: what follows gains more by MAGNET's sentences than by the "
            "base model's, copies left out",
            _better("base", NOT_COPIED),
        ),
    ],
)


def sheet(result: Result) -> list[judgement.Item]:
    """All sentences of a result in the order in which raters see them, the same for the same result."""
    return judgement.shuffled(texts(result.rows), seed=result.seed)


def score(result: Result, key: list[judgement.Item], raters: list[judgement.Ratings]) -> None:
    """Put the raters' scores into a result: a column for each system, and a row for their agreement.

    Raises:
        ValueError: for fewer than two raters, or where the result's sentences are not the ones that were judged.
    """
    if len(raters) < 2:
        raise ValueError(f"{len(raters)} rater's sheet is given; the agreement of people takes two at least")
    ours = texts(result.rows)
    for item in key:
        if ours.get(item.system, {}).get(item.text) != item.sentence:
            raise ValueError(
                f"sentence {item.id} of the key is not in the result, which was measured again since; write a new "
                "sheet, or take the result that this one was made of"
            )
    for system, figure in judgement.scores(key, raters).items():
        result.rows[system][SCORE] = figure
    together: dict[str, Figure] = {}
    if (kappa := judgement.agreement(raters, seed=result.seed)) is not None:
        together[KAPPA] = kappa
    result.rows[ALL] = Row(together)


def main(arguments: list[str] | None = None) -> int:
    """The two commands above."""
    parser = argparse.ArgumentParser(prog="python -m magnet_lab.evaluation.table5", description="Let people judge.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help in (("sheet", "write the sheet and its key"), ("score", "take in the sheets that were filled in")):
        command = commands.add_parser(name, help=help)
        command.add_argument("result", type=Path, help="the JSON file that `magnet-lab reproduce table5` wrote")
    command.add_argument("raters", type=Path, nargs="+", metavar="SHEET", help="a sheet filled in, one for each rater")
    options = parser.parse_args(arguments)
    try:
        _sheet(options.result) if options.command == "sheet" else _score(options.result, options.raters)
    except (ValueError, OSError) as error:
        print(f"table5: {error}", file=sys.stderr)
        return 1
    return 0


def _sheet(path: Path) -> None:
    if not (items := sheet(_load(path))):
        raise ValueError(f"{path} holds no sentences; measure it again with magnet-lab reproduce table5")
    for_raters, key = _beside(path, "sheet"), _beside(path, "key")
    if for_raters.exists():
        raise ValueError(f"{for_raters} is there already, and may hold judgements; move it away first")
    judgement.write_sheet(items, for_raters)
    judgement.write_key(items, key)
    print(f"{len(items)} sentences are in {for_raters}: a copy for each rater. Keep {key} from them.")


def _score(path: Path, sheets: list[Path]) -> None:
    from magnet_lab.evaluation.reproduce import report

    result, key = _load(path), judgement.read_key(_beside(path, "key"))
    score(result, key, [judgement.read_ratings(file, key) for file in sheets])
    result.save(path)
    print(report(EXPERIMENT, result))
    kappa = result.rows[ALL].get(KAPPA)
    told = f"{kappa.value:.2f} ({kappa.low:.2f} to {kappa.high:.2f})" if kappa else "undefined: all said the same"
    print(f"{len(sheets)} raters, Cohen's kappa over all {len(key)} sentences: {told}.")


def _load(path: Path) -> Result:
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}; magnet-lab reproduce table5 writes one")
    if (result := Result.load(path)).id != EXPERIMENT.id:
        raise ValueError(f"{path} is a result of {result.id}, not of {EXPERIMENT.id}")
    return result


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.stem}-{what}.csv")


if __name__ == "__main__":
    sys.exit(main())
