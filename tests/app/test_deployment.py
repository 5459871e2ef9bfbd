"""The app as it is deployed: who may come in, from the environment, behind a proxy, with a menu of models."""

import http.client
import http.server
import json
import threading
import urllib.error
import urllib.request
from types import SimpleNamespace

import gradio as gr
import pytest
from gradio.context import LocalContext
from gradio_client import Client

from magnet_lab.app import deployment, limits, machine, menu
from magnet_lab.app.build import build, launch
from magnet_lab.app.components.answers import answer


@pytest.mark.parametrize(
    ("given", "found"),
    [("", None), ("/", None), ("lab", "/lab"), ("/a/lab/", "/a/lab"), ("https://x.org/lab", "https://x.org/lab")],
)
def test_the_root_path(monkeypatch, given, found):
    monkeypatch.setenv(deployment.ROOT_PATH, given)
    assert deployment.root_path() == found


def test_users_come_from_the_environment_or_a_file(monkeypatch, tmp_path):
    monkeypatch.delenv(deployment.USERS, raising=False)
    assert deployment.users() == {} and deployment.auth() is None
    monkeypatch.setenv(deployment.USERS, "anna:one, ben:t:wo")
    assert deployment.users() == {"anna": "one", "ben": "t:wo"}
    file = tmp_path / "users"
    file.write_text("# the class\nanna:öne\n\nben: two \n")
    monkeypatch.setenv(deployment.USERS, str(file))
    assert deployment.users() == {"anna": "öne", "ben": "two"}
    may_come_in = deployment.auth()
    assert may_come_in("anna", "öne") and may_come_in("ben", "two")
    for name, password in [("anna", "two"), ("anna", ""), ("", ""), ("carl", ""), ("carl", "one"), ("Anna", "öne")]:
        assert not may_come_in(name, password)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [("anna", "cannot be read"), ("anna:", "entry 1 is not"), ("a:b,:c", "entry 2"), ("a:b,secret", "entry 2")],
)
def test_users_that_cannot_be_read_get_a_sentence(monkeypatch, given, sentence):
    monkeypatch.setenv(deployment.USERS, given)
    with pytest.raises(SystemExit, match=sentence) as refused:
        deployment.users()
    assert "secret" not in str(refused.value)  # it may be a password


def test_limits_come_from_the_environment():
    numbers = {"WORDS": 24, "TAU": 0.5, "math": math_stands_in}
    limits.from_environment(numbers, {"MAGNET_LAB_LIMIT_WORDS": "9", "MAGNET_LAB_LIMIT_TAU": "0.25", "WORDS": "1"})
    assert numbers["WORDS"] == 9 and numbers["TAU"] == 0.25
    for name, given, sentence in [
        ("WORDS", "nine", "give a whole number"),
        ("WORDS", "9.5", "give a whole number"),
        ("WORDS", "-1", "not below 0"),
        ("TAU", "inf", "give a number"),
        ("TAU", "nan", "give a number"),
        ("WORD", "9", "no limit WORD"),
        ("math", "9", "no limit math"),
    ]:
        with pytest.raises(SystemExit, match=sentence):
            limits.from_environment(dict(numbers), {f"MAGNET_LAB_LIMIT_{name}": given})


math_stands_in = object()


# --- the menu


@pytest.fixture
def visitor():
    """Sets what the visitor's browser sends along."""

    def sends(query=None, cookies=None):
        LocalContext.request.set(SimpleNamespace(query_params=query or {}, cookies=cookies or {}))

    yield sends
    LocalContext.request.set(None)


def test_the_address_chooses_before_the_cookie_and_both_only_from_the_menu(visitor):
    names = ["tiny", "small", "my/model"]
    assert menu.chosen(names) == "tiny"
    for query, cookies, name in [
        ({"model": "small"}, {}, "small"),
        ({}, {menu.COOKIE: "my%2Fmodel"}, "my/model"),
        ({"model": "small"}, {menu.COOKIE: "my%2Fmodel"}, "small"),
        ({"model": "<b>"}, {menu.COOKIE: "../etc"}, "tiny"),
    ]:
        visitor(query, cookies)
        assert menu.chosen(names) == name


def test_the_menu_is_links(visitor):
    assert menu.Menu(["tiny"]).links() == ""
    visitor({"model": "<b>&"})
    links = menu.Menu(["tiny", "<b>&"]).links()
    assert '<a href="?model=tiny">tiny</a>' in links
    assert '<a href="?model=%3Cb%3E%26" aria-current=true>&lt;b&gt;&amp;</a>' in links


def test_a_model_that_is_too_large_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(machine, "free_gb", lambda device: 8.0)
    machine.check_fits("small")
    with pytest.raises(ValueError, match=r"needs about 16 GB .* has 8 GB free: choose a smaller"):
        machine.check_fits("llama-2-7b")
    monkeypatch.setattr(machine, "free_gb", lambda device: None)
    machine.check_fits("llama-2-7b")  # where nobody knows, it is tried


def test_a_model_in_a_folder_is_weighed_by_its_weights(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "model.safetensors").write_bytes(bytes(2_000_000))
    assert machine.needed_gb(str(tmp_path), torch.bfloat16) == pytest.approx(0.0024)  # 2 MB, a fifth more
    assert machine.needed_gb(str(tmp_path), torch.float32) == pytest.approx(0.0048)  # twice as wide


# --- behind a proxy, with users


class Proxy(http.server.BaseHTTPRequestHandler):
    """Hands `/lab/x` on to the app as `/x`, as it comes, and knows nothing else."""

    protocol_version = "HTTP/1.0"  # the answer ends with the connection, so that streams need no lengths

    def do_GET(self):
        if not self.path.startswith("/lab/"):
            self.send_error(404, "outside of the app")
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        app = http.client.HTTPConnection("127.0.0.1", self.server.app_port, timeout=300)
        kept = {name: value for name, value in self.headers.items() if name.lower() not in ("connection",)}
        app.request(self.command, self.path.removeprefix("/lab"), body, kept)
        answer = app.getresponse()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.end_headers()
        while part := answer.read1(65536):
            self.wfile.write(part)
            self.wfile.flush()
        app.close()

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """The address of an app of its own behind a proxy, for anna alone."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MAGNET_LAB_RATINGS", str(tmp_path_factory.mktemp("ratings")))
        environment.setenv(deployment.ROOT_PATH, "/lab")
        environment.setenv(deployment.USERS, "anna:öne")
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as probe:
            proxy.app_port = probe.server_address[1]
        demo = build("tiny")
        launch(demo, port=proxy.app_port, block=False)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}/lab"
        proxy.shutdown()
        proxy.server_close()
        demo.close()


def test_behind_a_proxy_with_a_root_path(proxied):
    client = Client(f"{proxied}/", auth=("anna", "öne"), verbose=False, analytics_enabled=False)
    assert client.config["root"] == proxied
    *_, text = client.predict(text="Tom ran home.", mode="causal", spans="", api_name="/masks_picture")
    assert "Tom" in text
    job = client.submit(prefix="Tom", chosen=["base"], tokens=8, temperature=0, seed=0, api_name="/generate")
    assert "Tom" in job.result(timeout=300)[1]


def test_who_has_no_password_sees_nothing(proxied):
    with urllib.request.urlopen(f"{proxied}/") as page:  # where one signs in
        assert '"auth_required":true' in page.read().decode().replace(" ", "")
    call = urllib.request.Request(
        f"{proxied}/gradio_api/call/masks_clear", b'{"data": []}', {"Content-Type": "application/json"}
    )
    for request in (call, f"{proxied}/gradio_api/info", f"{proxied}/config"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        assert refused.value.code == 401
    with pytest.raises(Exception, match="Could not login"):
        Client(f"{proxied}/", auth=("anna", "one"), verbose=False, analytics_enabled=False)


def test_the_pages_link_within_the_root_path(proxied):
    sign_in = urllib.request.Request(f"{proxied}/login", b"username=anna&password=%C3%B6ne", method="POST")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    assert json.load(opener.open(sign_in))["success"]
    config = json.load(opener.open(f"{proxied}/config"))
    assert config["root"] == proxied
    for path, *_ in config["pages"]:
        assert opener.open(f"{proxied}/{path}").status == 200


# --- time, and mistakes of ours


def test_an_answer_that_takes_too_long_is_stopped_with_a_sentence(monkeypatch):
    monkeypatch.setattr(limits, "SECONDS_A_REQUEST", 0)
    closed = []

    @answer
    def slow():
        try:
            yield from range(1_000_000)
        finally:
            closed.append(True)

    views = slow()
    assert next(views) == 0
    with pytest.raises(gr.Error, match="took longer than 0 seconds"):
        list(views)
    assert closed == [True]  # the model is free


def test_a_generator_that_is_closed_closes_its_handler():
    closed = []

    @answer
    def writes():
        try:
            yield "a"
            yield "b"
        finally:
            closed.append(True)

    views = writes()
    assert next(views) == "a"
    views.close()
    assert closed == [True]


def test_a_mistake_of_ours_is_a_sentence_without_its_inside():
    @answer
    def broken():
        raise KeyError("/secret/path")

    with pytest.raises(gr.Error) as shown:
        broken()
    assert "a mistake of the app" in shown.value.message and "secret" not in shown.value.message
