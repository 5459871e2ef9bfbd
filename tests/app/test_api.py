"""Every page by its name, as a client of the API calls it."""

import html
import json
import os
import re
import socket
import subprocess
import sys
import urllib.request

import pytest
from gradio_client import Client
from gradio_client.exceptions import ValidationError

from magnet_lab.app.build import PAGES

HOSTILE = "<s></s><img src=x onerror=alert(1)> ${alert(2)}"
STORY = "Tom went to the park. [blank:4] He was very sad."

NAMES = {
    "/compare_sentences", "/compare_words", "/embeddings_example", "/embeddings_model", "/generate",
    "/generate_measured", "/generate_model", "/infill", "/infill_by_each", "/infill_example", "/infill_model",
    "/judge_answer", "/judge_answers", "/judge_begin", "/judge_figures", "/judge_next", "/masks", "/masks_clear",
    "/masks_leak", "/masks_mark", "/masks_picture", "/masks_side_by_side", "/objectives", "/objectives_contrast",
    "/objectives_model", "/objectives_pictures", "/objectives_predict", "/objectives_total", "/prefix_lm",
    "/prefix_masks", "/read_sentences", "/restore", "/results_claims", "/results_table", "/score_infill", "/start",
    "/start_example", "/start_model", "/start_try", "/train", "/train_on", "/train_stop", "/unilmv2_step",
}  # fmt: skip


@pytest.fixture(scope="module")
def client(app_address):
    return Client(app_address, verbose=False, analytics_enabled=False)


def seen(markup: str) -> str:
    """What a reader sees of some HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def test_the_names_are_those_promised(client):
    assert set(client.view_api(return_format="dict")["named_endpoints"]) == NAMES


def test_start_draws_three_masks(client):
    *pictures, text = client.predict(api_name="/start")
    assert all('<img src="data:image/png;base64,' in picture for picture in pictures)
    assert "infill: MAGNET" in text


@pytest.mark.parametrize(
    "name", ["/start_model", "/infill_model", "/embeddings_model", "/objectives_model", "/generate_model"]
)
def test_pages_say_which_model_they_have(client, name):
    assert "tiny" in client.predict(api_name=name)


def test_masks(client):
    asked = {"text": "Tom ran home.", "mode": "magnet", "spans": "1-2", "prefix_length": 0, "leak": False, "layers": 1}
    problem, strip, sentences = client.predict(**asked, token=1, api_name="/masks")
    assert seen(problem) == "" and seen(strip) == "Tom ran home."
    assert "It sees 0–1, 3 (3 of 4)." in seen(sentences)
    picture, text = client.predict(**asked, token=1, api_name="/masks_picture")
    assert '<img src="data:image/png;base64,' in picture and "1 [ran]  ■ ■ · ■" in text


def test_masks_show_any_text_as_typed(client):
    _, strip, *_ = client.predict(text=HOSTILE, mode="causal", spans="", api_name="/masks")
    assert seen(strip) == HOSTILE and "<img" not in strip


def test_masks_say_what_is_wrong(client):
    problem, *_ = client.predict(text="Tom ran.", spans="<b>7", api_name="/masks")
    assert "cannot be read" in problem and "<b>" not in problem


def test_marks(client):
    assert client.predict(text="Tom ran home.", spans="", token=2, api_name="/masks_mark")[1] == "2-"
    assert client.predict(text="Tom ran home.", spans="2-", token=1, api_name="/masks_mark")[1] == "1-2"
    assert client.predict(api_name="/masks_clear") == ""


def test_infill_streams_and_ends_with_candidates(client):
    job = client.submit(story=STORY, candidates=2, temperature=0, seed=0, in_turn=False, api_name="/infill")
    filled, left_only, candidates, _ = job.result(timeout=120)
    assert re.fullmatch(r".*Tom went to the park\. \[.+\] He was very sad\.", seen(filled))
    assert re.fullmatch(r".*Tom went to the park\. \[.+\] He was very sad\.", seen(left_only))
    assert [row[0] for row in candidates["data"]] == [1, 2]
    assert len(job.outputs()) >= 2


@pytest.mark.parametrize(
    ("story", "sentence"),
    [("", "is empty"), ("no blanks", "has no blank"), ("word " * 10_000 + "[blank]", "50,007 characters")],
)
def test_infill_says_what_is_wrong(client, story, sentence):
    with pytest.raises(ValidationError, match=sentence):
        client.predict(story=story, api_name="/infill")


def test_an_answer_is_scored(client):
    scores, verdict = client.predict(story=STORY, own="He fell down.", api_name="/score_infill")
    assert [row[0] for row in scores["data"]] == ["both sides (infill)", "the left side only (causal)"]
    assert all(row[1] > 1 for row in scores["data"]) and "likelier on average" in verdict
    with pytest.raises(ValidationError, match="2 line"):
        client.predict(story=STORY, own="one\ntwo", api_name="/score_infill")


def test_sentences_and_words_are_compared(client):
    *_, text = client.predict(sentences="A dog ran.\nA cat slept.", pooling="mean", api_name="/compare_sentences")
    assert "A cat slept." in text and "nearest" in text
    _, verdict, text = client.predict(first="The dog ran", second="A big dog", api_name="/compare_words")
    assert "“dog” is" in verdict and "ran" in text
    with pytest.raises(ValidationError, match="1 sentence"):
        client.predict(sentences="alone", api_name="/compare_sentences")


def test_every_page_has_an_address(app_address):
    for page in ("", *(page.PATH for page in PAGES)):
        with urllib.request.urlopen(f"{app_address}/{page}") as answer:
            assert answer.status == 200


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_taken_port_is_named_in_a_sentence(free_port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port))
        taken.listen()
        served = subprocess.run(
            [sys.executable, "-m", "magnet_lab.app"],
            env={**os.environ, "PORT": str(free_port), "MODEL": "tiny"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert served.returncode == 1
    assert f"Port {free_port} on 127.0.0.1 cannot be had" in served.stderr and "Traceback" not in served.stderr


GUARDED = """
import socket, sys
connect, look_up = socket.socket.connect, socket.getaddrinfo

def guarded(host):
    if str(host) not in ("127.0.0.1", "localhost", "::1"):
        print("asked for", host, flush=True)

socket.socket.connect = lambda self, address: (guarded(address[0]), connect(self, address))[1]
socket.getaddrinfo = lambda host, *rest, **more: (guarded(host), look_up(host, *rest, **more))[1]
from magnet_lab.app.build import serve
serve("tiny", port=int(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_fresh_start_asks_no_other_host(free_port):
    """A proxy is set, in vain."""
    served = subprocess.Popen(
        [sys.executable, "-c", GUARDED, str(free_port)],
        env={**os.environ, "http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"},
        stdout=subprocess.PIPE,
        text=True,
    )
    address = f"http://127.0.0.1:{free_port}"
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    try:
        assert served.stdout.readline() == f"magnet_lab is at {address}\n"
        assert ask(f"{address}/").status == 200
        call = urllib.request.Request(
            f"{address}/gradio_api/call/score_infill",
            json.dumps({"data": [STORY, "He fell down."]}).encode(),
            {"Content-Type": "application/json"},
        )
        event = json.load(ask(call))["event_id"]
        assert "likelier on average" in ask(f"{address}/gradio_api/call/score_infill/{event}").read().decode()
    finally:
        served.kill()
    assert served.stdout.read() == ""
    served.wait()
