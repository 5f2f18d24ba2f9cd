"""The order of the readers: what two of them recognise is read by the one that knows more of it."""

import gzip

import pytest

from stepline.sources import client_file
from stepline.sources.peek import peek
from stepline.sources.read import READERS, is_trace, read
from stepline.sources.readers import document, log, prometheus, table

TRACE = b'{"traceEvents": [{"name": "sglang/srt/model.py(3): forward", "ph": "X", "ts": 1, "dur": 2}]}'
CLIENT = b'{"format":"stepline-client","version":1}'
QUOTING = b'{"note": "server_args=ServerArgs(", "levels": [{"concurrency": 4, "tok_s": 100.0}]}\n'
SCRAPE = b"# HELP vllm:cache KV cache size: 1,024 tokens\nvllm:num_requests_running 3.0\n"
LOG = b"concurrency, tok_s: vLLM API server version 0.9.0\nconcurrency, tok_s\n"


@pytest.mark.parametrize(
    ("content", "first", "others"),
    [
        (TRACE, is_trace, [log.recognises]),
        (CLIENT, client_file.recognises, [document.recognises]),
        (QUOTING, document.recognises, [log.recognises]),
        (SCRAPE, prometheus.recognises, [log.recognises]),
    ],
)
def test_a_file_that_several_recognise_is_read_by_the_first(tmp_path, content, first, others):
    path = tmp_path / "file"
    path.write_bytes(content)
    knows = [reader.recognises for reader in READERS if reader.recognises(peek(path, "file"))]
    assert knows[0] is first
    assert set(others) <= set(knows)


def test_a_log_line_with_commas_is_no_table(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(LOG)
    knows = [reader.recognises for reader in READERS if reader.recognises(peek(path, "file"))]
    assert knows[0] is log.recognises
    assert [reader.recognises for reader in READERS][-1] is table.recognises


def test_a_trace_is_listed_and_not_read(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(TRACE))
    assert [file.kind for file in read([tmp_path]).runs[0].files] == ["profiler trace"]
