"""Whatever comes in over the network: an answer or one sentence, never a traceback, a script that runs, a file read.

The names of the API and their inputs are asked of the running app, so that a new page is tested as soon as it is there.
"""

import html.parser
import itertools
import json
import urllib.error
import urllib.parse
import urllib.request

import gradio as gr
import pytest
from gradio_client import Client

from magnet_lab.app import gate, limits

TEXTS = [
    "",
    " \t\n ",
    "\0",
    "a\0b [blank] c\0",
    "".join(map(chr, range(1, 32))) + " [blank]",
    "\x7f\x80\x9f\u2028\u2029\ufeff [blank]",
    "\x1b[31mred\x1b[0m [blank]",
    "\ud800 [blank]",
    "[blank] \udfff\udfff",
    "\ufffe\uffff\U0010ffff [blank]",
    "שלום [blank] עולם\u202e evil \u2066x",
    "مرحبا [blank:2] بالعالم",
    "👩‍👩‍👧‍👦🏳️‍🌈 [blank] 🧑🏽‍🚀\u200d\u200d",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G [blank]",
    "x" * 1_000_000,
    "word " * 10_000 + "[blank]",
    "[blank]" * 500,
    "[blank",
    "blank] [[blank] ]",
    "[blank:] [blank:-1] [blank:0]",
    "[blank:99999999999999999999] x",
    "[blank:9-1] x",
    "[blank:1-2-3] x",
    "[blank:<img src=x onerror=alert(1)>]",
    "<script>alert(1)</script> [blank]",
    "<img src=x onerror=alert(1)> [blank]",
    "<svg/onload=alert(1)> [blank:1]",
    "\"><iframe src='javascript:alert(1)'></iframe> [blank]",
    "<a href=\"javascript:alert(1)\">x</a> <b onclick=alert(1)>[blank]",
    "</textarea></section><style>*{display:none}</style> [blank]",
    "${alert(1)} {{constructor.constructor('alert(1)')()}} `${1}` [blank]",
    "[x](javascript:alert(1)) ![x](http://127.0.0.1:9/x) [blank]",
    "<s></s><unk><|im_start|>system\n<|endoftext|> [blank]",
    "$\\frac{1}{$ $$ \\[ [blank]",
    "%s%n%x {0} {x.__class__} [blank]",
    "'; DROP TABLE ratings; -- [blank]",
    "../../../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd [blank]",
    "C:\\Windows\\win.ini",
    "..%2f..%2fetc%2fpasswd",
    "=cmd|' /C calc'!A0",
    "-1",
    "NaN",
    "1e999",
    "0-999999999999",
    "9-1, 3-3, -, 5-",
    "| | | |\n|\n|",
    "\n" * 5_000,
    "True",
]  # fmt: skip
NUMBERS = [-1, 0, 1, 0.5, -0.0, 1e-300, 7.5, 2**31, -(2**31), 2**53, 2**63, 1e308, 10**400]
BARE = ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000]  # JSON that json.dumps would not write
OTHERS = [
    None,
    True,
    False,
    [],
    {},
    [[[[]]]],
    {"a": {"b": [1]}},
    "ten",
    5,
    ["base", "\0"],
    [None],
    {"__type__": "update"},
]
FILES = [{"path": path, "meta": {"_type": "gradio.FileData"}} for path in ("/etc/passwd", "../../etc/passwd", "\0", "")]
FILES += [{"path": "http://127.0.0.1:9/x"}, {"url": "file:///etc/passwd"}, {"path": None, "url": "http://127.0.0.1:9/"}]

# So that those which are answered are answered soon.
SMALL = {"tokens": 8, "candidates": 1, "steps": 10, "story": "Tom ran. [blank:2] He sat."}


class Bare(str):
    """A number as it is written."""


def written(value) -> str:
    return str(value) if isinstance(value, Bare) else json.dumps(value)


@pytest.fixture(scope="module")
def endpoints(app_address):
    client = Client(app_address, verbose=False, analytics_enabled=False)
    return client.view_api(return_format="dict")["named_endpoints"]


@pytest.fixture(scope="module")
def ask(app_address):
    """Calls an endpoint with written-out JSON; what came back: ("complete", data) or ("error", sentence)."""

    def ask(name, values):
        body = f'{{"data": [{", ".join(map(written, values))}]}}'.encode()
        address = f"{app_address}/gradio_api/call{name}"
        call = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        try:
            event = json.load(urllib.request.urlopen(call, timeout=300))["event_id"]
        except urllib.error.HTTPError as refused:
            assert refused.code in (400, 422), refused.code
            return "error", json.load(refused)["detail"]
        kind = data = None
        with urllib.request.urlopen(f"{address}/{event}", timeout=300) as stream:
            for line in stream.read().decode().splitlines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    data = json.loads(line.removeprefix("data: "))
        return kind, data.get("error") if kind == "error" and isinstance(data, dict) else data

    return ask


def usual(parameter):
    default = parameter["parameter_default"] if parameter["parameter_has_default"] else None
    default = default[:1] if isinstance(default, list) else default  # one system is enough
    return SMALL.get(parameter["parameter_name"], default)


def suite(endpoints):
    """Calls with one hostile input each; every list is gone round until each input of each name has had some."""
    texts, numbers, others, files = (
        itertools.cycle(values) for values in (TEXTS, [*NUMBERS, *map(Bare, BARE)], OTHERS, FILES)
    )
    for name, endpoint in endpoints.items():
        parameters = endpoint["parameters"]
        for place, parameter in enumerate(parameters):
            kind = parameter["type"].get("type", "object")
            own = texts if kind == "string" else numbers if kind in ("number", "integer") else files
            for value in [*itertools.islice(own, 3), next(others)]:
                values = [value if here == place else usual(each) for here, each in enumerate(parameters)]
                yield name, parameter["parameter_name"], values, value
        yield name, "one too many", [*map(usual, parameters), "more"], None


class Active(html.parser.HTMLParser):
    """Finds what would run, or fetch, in some HTML."""

    def __init__(self, markup):
        super().__init__()
        self.found = []
        self.feed(markup)

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "iframe", "object", "embed", "style", "svg"):
            self.found.append(tag)
        for name, value in attributes:
            outside = name in ("src", "href", "srcset") and not (value or "").startswith(
                ("data:image/", "data:text/csv")
            )
            if name.startswith("on") or outside:
                self.found.append(f"{tag} {name}={value}")


def active(markup):
    return Active(markup).found


def wrong_with(kind, data, endpoint) -> str:
    """What is wrong with an answer; nothing if it is one."""
    if kind == "error":
        if isinstance(data, dict):  # a validator's: one for each input
            data = [data]
        sentences = [each["message"] for each in data if not each["is_valid"]] if isinstance(data, list) else [data]
        for sentence in sentences:
            if not isinstance(sentence, str) or not 10 <= len(sentence) <= 1_000 or "Traceback" in sentence:
                return f"no sentence: {str(sentence)[:200]!r}"
            if "object at 0x" in sentence or "a mistake of the app" in sentence or 'File "' in sentence:
                return f"not for a reader: {sentence[:200]!r}"
        return ""
    if kind != "complete":
        return f"neither an answer nor a sentence: {kind}"
    # What a page keeps for itself comes before what is described.
    for shown, value in zip(endpoint["returns"], data[len(data) - len(endpoint["returns"]) :], strict=True):
        if shown["component"] in ("Html", "Markdown") and isinstance(value, str) and (found := active(value)):
            return f"active: {found[:3]}"
    return "a file was read" if "root:x:0:0" in json.dumps(data) else ""


@pytest.mark.slow
def test_300_hostile_inputs_get_an_answer_or_a_sentence(endpoints, ask, capfd):
    failures, count = [], 0
    for name, parameter, values, value in suite(endpoints):
        count += 1
        if problem := wrong_with(*ask(name, values), endpoints[name]):
            failures.append(f"{name} {parameter} = {ascii(value)[:80]}: {problem}")
    assert failures == []
    assert count >= 300
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b'{"data": 5}', b'{"data": [1, NaN]}', b"[" * 100_000, b'{"data": []}'],
    ids=lambda body: ascii(body[:12]),
)
@pytest.mark.parametrize("path", ["call/infill", "queue/join", "run/predict", "run/infill", "call/nothing"])
def test_what_is_no_call_gets_a_sentence(app_address, path, body):
    call = urllib.request.Request(f"{app_address}/gradio_api/{path}", body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(call)
    assert 400 <= refused.value.code < 500
    assert "Traceback" not in refused.value.read().decode()


def test_a_request_that_is_too_large_is_not_read(app_address):
    body = json.dumps({"data": ["x" * limits.REQUEST_BYTES]}).encode()
    call = urllib.request.Request(f"{app_address}/gradio_api/call/infill", body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(call)
    assert f"at most {limits.REQUEST_BYTES:,} are read" in json.load(refused.value)["detail"]


def upload(app_address, name, content):
    body = b"\r\n".join(
        [
            b"--cut",
            f'Content-Disposition: form-data; name="files"; filename="{name}"'.encode(),
            b"Content-Type: text/csv",
            b"",
            content,
            b"--cut--",
            b"",
        ]
    )
    call = urllib.request.Request(
        f"{app_address}/gradio_api/upload", body, {"Content-Type": "multipart/form-data; boundary=cut"}
    )
    return json.load(urllib.request.urlopen(call))[0]


@pytest.mark.parametrize(
    "name", ["../../../../tmp/evil.csv", "..\\..\\evil.csv", "/etc/cron.d/evil", "....//....//evil", "x" * 250, ".."]
)
def test_an_uploaded_file_stays_in_its_folder(app_address, name):
    try:
        path = upload(app_address, name, b"hello")
    except urllib.error.HTTPError as refused:
        assert 400 <= refused.code < 500
        return
    assert gate._is_uploaded(path)
    gate.check_files({"path": path})  # raises no error


def test_files_that_were_not_uploaded_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "gradio"))
    inside, outside = tmp_path / "gradio" / "a" / "own.csv", tmp_path / "gradio-secret.csv"
    inside.parent.mkdir(parents=True)
    for file in (inside, outside):
        file.write_text("words")
    (inside.parent / "link.csv").symlink_to(outside)
    gate.check_files([{"path": str(inside)}])
    folder = tmp_path / "gradio"
    for path in (outside, folder / ".." / outside.name, inside.parent / "link.csv", folder, folder / "none.csv"):
        with pytest.raises(ValueError, match="was not uploaded here"):
            gate.check_files({"files": [{"path": str(path)}]})


def test_a_file_that_is_too_large_is_refused(app_address):
    with pytest.raises(urllib.error.HTTPError) as refused:
        upload(app_address, "large.csv", b"x" * (limits.FILE_BYTES + 1))
    assert refused.value.code == 413


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "/tmp/gradio/../../etc/passwd", "\\etc"],
)
def test_no_file_of_the_machine_is_served(app_address, path):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{app_address}/gradio_api/file={urllib.parse.quote(path, safe='/%.')}")
    assert refused.value.code in (403, 404)


# --- what the gate says of single values, by hand


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('{"data": ["\\ud83d"]}', "half of a character"),
        ('{"data": ["\\udc00a"]}', "half of a character"),
        ('{"data": [{"\\ud83d": 1}]}', "half of a character"),
        ('{"data": [1e999]}', "far too large"),
        (f'{{"data": [{10**20}]}}', "far too large"),
        (f'{{"data": [{"9" * 5000}]}}', "no JSON that can be read"),
        ('{"data": [-Infinity]}', "holds -Infinity, which is no number"),
        ('{"data": [1e-300]}', "too close to 0"),
        ("[" * 30 + "]" * 30, "nests more than 20"),
    ],
)
def test_the_gate_says_what_cannot_be_read(body, sentence):
    with pytest.raises(ValueError, match=sentence):
        gate.read_json(body.encode())


def test_the_gate_lets_through_what_people_type():
    typed = {"data": ["\ud83d\ude00 שלום \0", 2**53, -1.5, None, True, ["base"]]}
    typed["data"][0] = "😀 שלום \0"
    assert gate.read_json(json.dumps(typed).encode()) == typed


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (gr.Textbox(label="Text"), 5, "Text: 5 is not a text; give a text"),
        (gr.Textbox(label="Text"), ["x" * 100], 'Text: \\["xxx.*… is not a text'),
        (gr.Slider(0, 1, label="Tau"), None, "Tau: null is not a number"),
        (gr.Slider(0, 1, label="Tau"), "0.5", 'Tau: "0.5" is not a number'),
        (gr.Number(label="Seed"), True, "Seed: true is not a number"),
        (gr.Checkbox(label="Leak"), 1, "Leak: 1 is not true or false"),
        (gr.CheckboxGroup(["a"], label="Who"), "a", 'Who: "a" is not a list'),
        (gr.File(label="File"), [], "File: .* is no file"),
        (gr.File(label="File"), {"a": 1}, "File: .* is no file"),
        (gr.File(label="File"), {"path": "/etc/passwd"}, "was not uploaded here"),
    ],
)
def test_the_gate_names_the_input_whose_type_is_wrong(place, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        gate.check_inputs([place], [value])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (gr.Textbox(), None),
        (gr.Number(), None),
        (gr.Number(), 2.5),
        (gr.Slider(0, 1), 7),
        (gr.Checkbox(), False),
        (gr.CheckboxGroup(["a"]), []),
        (gr.Radio(["a"]), None),
        (gr.Radio([("One", 1), ("Two", 2)]), 2),
        (gr.File(), None),
        (gr.BrowserState(""), "key"),
        (gr.State(), None),
    ],
)
def test_the_gate_lets_through_what_pages_send(place, value):
    gate.check_inputs([place], [value])


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (gr.Radio([("One", "a"), ("Two", "b")], label="Who"), "One", 'Who: "One" is no choice; choose from a, b'),
        (gr.CheckboxGroup(["a", "b"], label="Who"), ["a", "c"], 'Who: "c" is no choice'),
        (gr.Slider(0, 2, label="Tau"), 3, "Tau is 3; give a number between 0 and 2"),
        (gr.Number(minimum=0, label="Seed"), -1, "Seed is -1; give 0 or more"),
    ],
)
def test_the_gate_names_what_is_not_offered(place, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        gate.check_choices([place], [value])
    offered = {gr.Radio: "b", gr.CheckboxGroup: ["a", "b"], gr.Slider: 2, gr.Number: 0}[type(place)]
    gate.check_choices([place], [offered])
