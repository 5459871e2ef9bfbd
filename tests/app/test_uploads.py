"""Sentences from a visitor's file: what is read of it, and a sentence for everything that is none."""

import pytest
from gradio_client import Client, handle_file

from magnet_lab.app import limits
from magnet_lab.app.handlers import embeddings


@pytest.fixture
def file(tmp_path):
    def write(content, name="sentences.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.mark.parametrize(
    ("name", "content", "sentences"),
    [
        ("a.txt", "A dog ran.\n\n  A cat slept. \r\nTom, Ann; Bo\n", ["A dog ran.", "A cat slept.", "Tom, Ann; Bo"]),
        ("a.TXT", "\ufeffA dog ran.\nA cat slept.", ["A dog ran.", "A cat slept."]),
        ("a.csv", "A dog ran.\nA cat slept.\n", ["A dog ran.", "A cat slept."]),
        ("a.csv", 'id,Sentence\n1,"A dog, and a cat."\n2,"He said ""no""."\n', ["A dog, and a cat.", 'He said "no".']),
        ("a.csv", "text;score\nA dog, brown;3\nA cat;4\n", ["A dog, brown", "A cat"]),
        ("a.csv", "one\ttwo\nA dog\tx\n", ["one", "A dog"]),  # no heading that is known: the first column, all of it
        ("a.csv", 'sentence\n"A dog\nran."\nA cat.\n', ["A dog ran.", "A cat."]),
        ("a.csv", "id,sentence\n1\n2,A dog.\n3,A cat.\n", ["A dog.", "A cat."]),
        ("a.csv", "=1+1\n<img src=x onerror=alert(1)>\n", ["=1+1", "<img src=x onerror=alert(1)>"]),
    ],
)
def test_sentences_are_read(file, name, content, sentences):
    assert embeddings.read_upload(file(content, name)).splitlines() == sentences


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.exe", "A dog.\nA cat.", "neither .txt nor .csv"),
        ("passwd", "A dog.\nA cat.", "neither .txt nor .csv"),
        ("a.txt", b"a\n" * limits.UPLOAD_BYTES, "200,000 bytes; at most 100,000"),
        ("a.txt", "Grüße\nan alle".encode("latin-1"), "no text in UTF-8"),
        ("a.csv", "A dog.\nA cat.".encode("utf-16"), "no text in UTF-8"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\x00\x00", "no text in UTF-8"),
        ("a.txt", "A dog\0\nA cat", "NUL"),
        ("a.csv", "A dog\0\nA cat", "NUL"),
        ("a.txt", "", "the list of sentences is empty"),
        ("a.csv", "\n\n,,\n", "the list of sentences is empty"),
        ("a.csv", "id,sentence\n1\n2\n", "the list of sentences is empty"),
        ("a.txt", "only one", "give 2 to 24"),
        ("a.txt", "a dog\n" * 25, "25 sentence"),
        ("a.txt", "a dog\n" + "x" * 401, "sentence 2 has 401 characters"),
        ("a.csv", 'A "dog\n"A" cat,"x', "cannot be read as CSV"),
        ("a.csv", '"' + "x" * 140_000, "140,001 bytes"),
    ],
)
def test_files_that_do_not_fit_get_a_sentence(file, name, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        embeddings.read_upload(file(content, name))


def test_a_path_of_the_servers_own_is_not_read(app_address):
    client = Client(app_address, verbose=False, analytics_enabled=False)
    stolen = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}, "orig_name": "a.txt"}
    with pytest.raises(Exception) as refused:  # gradio's own
        client.predict(stolen, api_name="/read_sentences")
    assert "root:" not in str(refused.value)


def test_a_file_is_read_by_clients_of_the_api(app_address, file):
    client = Client(app_address, verbose=False, analytics_enabled=False)
    problem, sentences = client.predict(handle_file(file("A dog.\nA cat.", "a.txt")), api_name="/read_sentences")
    assert sentences == "A dog.\nA cat." and "<p" not in problem
    problem, _ = client.predict(handle_file(file("<b>only one", "a.txt")), api_name="/read_sentences")
    assert "give 2 to 24" in problem
