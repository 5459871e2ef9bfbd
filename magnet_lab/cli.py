"""The command line, `magnet-lab`. Nothing heavy is imported before a command needs it, so that `--help` is quick."""

import argparse
import importlib
import os
import pkgutil
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from magnet_lab import __version__
from magnet_lab.training import __main__ as training


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code: 0, 1 with one sentence on standard error, or 130 when interrupted.
    """
    if hasattr(sys.stdout, "reconfigure"):  # a terminal without UTF-8 must not end the work
        sys.stdout.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except KeyboardInterrupt:
        return _complain("interrupted", code=130)
    except BrokenPipeError:  # the reader, `head` say, has had enough
        sys.stdout = None
        return 0
    except (ValueError, OSError) as error:
        return _complain(error)
    except RuntimeError as error:
        if not type(error).__module__.startswith("magnet_lab."):
            raise
        return _complain(error)  # a ModelUnavailable, say: its message is written for the user


def _complain(problem: object, code: int = 1) -> int:
    print(f"magnet-lab: {problem}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="magnet-lab", description="One decoder-only language model that generates, encodes and infills."
    )
    parser.add_argument("--version", action="version", version=f"magnet-lab {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(run, name: str, summary: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        added.set_defaults(run=run)
        return added

    app = command(_app, "app", "serve the app in the browser")
    app.add_argument("--model", default="small", help=MODEL_HELP)
    app.add_argument("--host", default="127.0.0.1", help="address to serve on (%(default)s)")
    app.add_argument("--port", type=int, default=7860, help="port to serve on (%(default)s)")
    app.add_argument(
        "--ratings", metavar="FOLDER", help="where the page Judge keeps its ratings (the user's data folder)"
    )

    infill = command(_infill, "infill", "fill the blanks of a text")
    infill.add_argument("text", metavar="TEXT", help="with [blank], [blank:12] or [blank:8-16] in it; - reads it")
    _add_model(infill)
    infill.add_argument("--candidates", type=int, default=1, metavar="N", help="how many to show (%(default)s)")
    infill.add_argument("--sequential", action="store_true", help="fill one blank after the other, so that they agree")
    _add_sampling(infill)

    encode = command(_encode, "encode", "turn texts into vectors, and compare them")
    encode.add_argument(
        "texts",
        nargs="+",
        metavar="TEXT",
        help="a text; - reads one from each line; with --out FOLDER/ a corpus: .txt, .jsonl, .parquet, or a hub id",
    )
    _add_model(encode)
    encode.add_argument("--pooling", default="last", help="last (the default), mean or echo")
    encode.add_argument("--instruction", help="what the vectors are for")
    encode.add_argument("--truncate", action="store_true", help="cut texts that are too long for the model")
    encode.add_argument(
        "--out", help="save the vectors instead of comparing them: FILE.safetensors, or FOLDER/ for those of a corpus"
    )
    encode.add_argument("--column", default="text", help="of a corpus: where its texts are (%(default)s)")

    generate = command(_generate, "generate", "go on with a text")
    generate.add_argument("text", metavar="TEXT", help="the text; - reads it")
    _add_model(generate)
    generate.add_argument("--max-new-tokens", type=int, default=50, metavar="N", help="at most so many (%(default)s)")
    _add_sampling(generate)

    training.add_arguments(command(_train, "train", "train an adapter by a recipe"))
    plan = command(_plan, "plan", "say what a recipe will take: memory, operations, time")
    plan.add_argument("recipe", nargs="?", default="paper", help="a recipe's name or YAML file (%(default)s)")
    plan.add_argument("--model", help="another model than the recipe's")
    plan.add_argument("--gpu", default="here", help="h200, h100, a100, rtx-4090, l4, or this machine (%(default)s)")
    plan.add_argument("--micro-batch", type=int, help="rows in one forward pass; fewer need less memory")

    reproduce = command(_reproduce, "reproduce", "measure a table or figure of the paper, its rows beside ours")
    reproduce.add_argument("ids", nargs="+", metavar="ID", help="table2, figure5 …, all of the paper's, or relatives")
    reproduce.add_argument("--model", default="small", help="tiny, small, or the folder or hub id of a decoder")
    reproduce.add_argument("--data", help="samples (of the project), hub, or a folder (samples for tiny, else hub)")
    reproduce.add_argument("--quick", action="store_true", help="few examples, to see that everything runs")
    reproduce.add_argument("--seed", type=int, default=0)
    reproduce.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (%(default)s)")
    results = command(_results, "results", "show what has been measured, and which of the paper's claims hold")
    results.add_argument("ids", nargs="*", metavar="ID", help="by default all")
    results.add_argument("--model", default="small")
    results.add_argument("--claims", action="store_true", help="all claims in one table, a column a model")
    results.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (%(default)s)")

    notebooks = command(_notebooks, "notebooks", "copy the course into a folder and open it in JupyterLab")
    notebooks.add_argument("folder", nargs="?", type=Path, default=Path("magnet_lab_course"), help="(%(default)s)")
    notebooks.add_argument("--copy-only", action="store_true", help="open nothing")

    command(_models, "models", "list the models: where they are and what they come with")
    command(_doctor, "doctor", "check the installation, and say how to mend it")

    bench = command(_bench, "bench", "run one of the measurements that the README quotes")
    bench.add_argument("name", nargs="?", help="which one; without it, their names are listed")
    bench.add_argument("options", nargs=argparse.REMAINDER, help="passed on to it")
    return parser


MODEL_HELP = "tiny, small (the default), llama-2-7b, or the folder or hub id of a decoder"


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", default="small", help=MODEL_HELP)
    command.add_argument(
        "--adapter", default="magnet", help="magnet (the default) where there is one, a folder, a hub id, or none"
    )


def _add_sampling(command: argparse.ArgumentParser) -> None:
    command.add_argument("--temperature", type=float, default=0.0, help="0 always takes the likeliest (%(default)s)")
    command.add_argument("--top-p", type=float, default=1.0, metavar="P", help="share of probability drawn from")
    command.add_argument("--top-k", type=int, default=0, metavar="K", help="number of tokens drawn from; 0 is all")
    command.add_argument("--seed", type=int, help="makes the draws repeatable")


def _app(options) -> None:
    from magnet_lab import zoo
    from magnet_lab.app.port import check_port

    # A taken port and a wrong name show before the app's slow imports.
    check_port(options.host, options.port)
    zoo.resolve(options.model)  # fetches `small`
    if options.ratings:
        os.environ["MAGNET_LAB_RATINGS"] = options.ratings
    from magnet_lab.app.build import serve

    serve(model=options.model, host=options.host, port=options.port)


def _infill(options) -> None:
    from magnet_lab.blanks import parse

    text = _text(options.text)
    parse(text)  # a mistake in the text shows before the model is loaded
    snapshots = _lab(options).infill(
        text,
        num_candidates=options.candidates,
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        seed=options.seed,
        sequential=options.sequential,
        stream=True,
    )
    with _LiveLine() as live:
        for result in snapshots:
            live.show(result.text)
    for number, candidate in enumerate(result.candidates, start=1):
        print(candidate.text)
        place = f"{number}. " if len(result.candidates) > 1 else ""
        spans = " | ".join(span.text.strip() for span in candidate.spans)
        print(f"  {place}{spans}  (score {candidate.score:.2f})")


def _encode(options) -> None:
    if options.out and not options.out.endswith(".safetensors"):
        return _encode_corpus(options)
    if file := next((text for text in options.texts if os.path.isfile(text)), None):
        raise ValueError(f"{file} is a file: say with --out FOLDER/ where its vectors go")
    texts = [line for text in options.texts for line in (_lines() if text == "-" else [text])]
    if not texts:
        raise ValueError("there is no text on standard input")
    vectors = _lab(options).encode(
        texts, instruction=options.instruction, pooling=options.pooling, truncate=options.truncate
    )
    if options.out:
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        try:
            save_file({"vectors": vectors.contiguous()}, options.out)
        except SafetensorError as error:
            raise OSError(f"{options.out} cannot be written: {error}") from error
        print(f"{len(vectors)} vectors of {vectors.shape[1]} numbers in {options.out}")
        return
    from magnet_lab.encoding import similarity

    print(" " * 4 + "".join(f"{number:>7}" for number in range(1, len(texts) + 1)))
    for number, (text, row) in enumerate(zip(texts, similarity(vectors, vectors).tolist(), strict=True), start=1):
        print(f"{number:>3} " + "".join(f"{value:>7.3f}" for value in row) + f"  {_shortened(text, 60)}")


def _encode_corpus(options) -> None:
    from magnet_lab import corpus
    from magnet_lab.data.rows import Corpus, local_file

    if text := next((text for text in options.texts if "/" not in text and local_file(text) is None), None):
        raise ValueError(f"there is no file {text!r}; texts themselves are saved with --out FILE.safetensors")
    here = corpus.process()
    manifest = corpus.encode_corpus(
        _lab(options, device=here.device),
        Corpus(options.texts, column=options.column),
        options.out,
        instruction=options.instruction,
        pooling=options.pooling,
        truncate=options.truncate,
        progress=True,
    )
    if here.is_main_process:
        print(f"{sum(manifest['shards']):,} vectors of {manifest['width']} numbers in {options.out}")


def _generate(options) -> None:
    from magnet_lab.spans import Sampling

    Sampling(options.temperature, options.top_p, options.top_k, options.seed)  # refuses what makes no sense
    decoding = {"max_new_tokens": options.max_new_tokens}
    if options.temperature > 0:
        decoding |= {
            "do_sample": True,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "top_k": options.top_k,
        }
    text = _text(options.text)
    pieces = _lab(options).generate(text, stream=True, seed=options.seed, **decoding)
    print(text, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


def _models(options) -> None:
    from magnet_lab import zoo

    rows = [("name", "parameters", "memory", "adapters", "where")]
    for card in zoo.MODELS.values():
        where = zoo.find(card.name)
        rows.append(
            (
                card.name,
                f"{card.parameters / 1e6:,.1f} M",
                f"{card.memory_gb:g} GB",
                ", ".join(zoo.adapters(card.name)) or "none",
                str(where) if where else f"not here yet: {card.source}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()
    for card in zoo.MODELS.values():
        print(f"{card.name}: {card.description} ({card.licence}).")


def _train(options) -> None:
    _quiet()
    training.run(options)


def _plan(options) -> None:
    from magnet_lab.training import plan
    from magnet_lab.training import recipe as recipes

    recipe = training.changed(recipes.load(options.recipe), model=options.model, micro_batch=options.micro_batch)
    processor = plan.processor(options.gpu, recipe.precision)
    _quiet()
    print(plan.report(plan.plan(recipe), recipe, processor, options.gpu))


def _reproduce(options) -> None:
    from magnet_lab.evaluation import reproduce
    from magnet_lab.evaluation.data import Data
    from magnet_lab.evaluation.experiment import Setting

    _quiet()
    known = reproduce.experiments()
    source = options.data or ("samples" if options.model == "tiny" else "hub")
    setting = Setting(options.model, Data(source), quick=options.quick, seed=options.seed)
    for name in _ids(options.ids, known):
        print(reproduce.report(known[name], reproduce.run(known[name], setting, options.out)))


def _results(options) -> None:
    from magnet_lab.evaluation import overview, reproduce
    from magnet_lab.evaluation.experiment import SHIPPED, Result

    known = reproduce.experiments()
    if options.claims:
        print(overview.table(known, overview.measured(known, options.out, SHIPPED)))
        return
    for name in _ids(options.ids or ["all"], known):
        model = known[name].model(options.model)
        path = options.out / model / f"{name}.json"
        result = Result.load(path) if path.is_file() else reproduce.shipped(model, name)
        if result is None:
            print(
                f"## {name}: {known[name].title}\n\nnot measured: magnet-lab reproduce {name} --model {options.model}\n"
            )
        else:
            print(reproduce.report(known[name], result))


def _ids(given: list[str], known) -> list[str]:
    """Names of experiments, with "all" (of the paper) and "relatives" (of the other systems) spelled out."""
    relatives = [name for name, experiment in known.items() if experiment.own_models]
    groups = {"all": [name for name in known if name not in relatives], "relatives": relatives}
    if unknown := [name for name in given if name not in known | groups]:
        raise ValueError(f"there is no experiment {unknown[0]!r}; there are {', '.join(known | groups)}")
    return [name for one in given for name in groups.get(one, [one])]


def _notebooks(options) -> int:
    import subprocess

    from magnet_lab.course import copy

    written, kept = copy.course(options.folder)
    print(
        f"{written} notebooks in {options.folder}"
        + (f"; {kept} that you have changed were left as they are" * bool(kept))
    )
    return 0 if options.copy_only else subprocess.call([sys.executable, "-m", "jupyterlab", str(options.folder)])


def _doctor(options) -> int:
    from magnet_lab import doctor

    return doctor.main()


def _bench(options) -> None:
    import magnet_lab.bench

    names = sorted(module.name for module in pkgutil.iter_modules(magnet_lab.bench.__path__) if module.name[0] != "_")
    if options.name is None:
        print("\n".join(names))
    elif options.name not in names:
        raise ValueError(f"there is no measurement {options.name!r}; there are {', '.join(names) or 'none yet'}")
    else:
        sys.argv = [f"magnet-lab bench {options.name}", *options.options]
        importlib.import_module(f"magnet_lab.bench.{options.name}").main()


def _lab(options, device=None):
    """The model that the options name."""
    _quiet()
    from magnet_lab import Magnet

    adapter = None if options.adapter == "none" else options.adapter
    return Magnet.from_pretrained(options.model, adapter=adapter, device=device)


def _quiet() -> None:
    """What the libraries say while they work is kept to what matters to a user of the command line."""
    warnings.showwarning = lambda message, kind, *_, **__: (
        print(f"note: {message}", file=sys.stderr) if kind is UserWarning else None
    )
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def _text(text: str) -> str:
    return sys.stdin.read().rstrip("\n") if text == "-" else text


def _lines() -> list[str]:
    return [line for line in sys.stdin.read().splitlines() if line.strip()]


def _shortened(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


class _LiveLine:
    """One line on a terminal, written over and over and removed at the end; elsewhere nothing."""

    def __enter__(self) -> "_LiveLine":
        return self

    def show(self, text: str) -> None:
        if sys.stderr.isatty():
            print(
                f"\r\x1b[K{_shortened(text, shutil.get_terminal_size().columns - 1)}",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def __exit__(self, *_) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
