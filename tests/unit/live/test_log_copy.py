"""What is kept of a server's log."""

from stepline.sources.live.log_copy import WHOLE_BYTES, LogCopy
from stepline.sources.redact import redact

START = b"INFO version 1\nINFO non-default args: {'max_num_seqs': %d}\n"
BUSY = b"INFO Engine 000: Running: 8 reqs\n" * (WHOLE_BYTES // 30)


def copied(tmp_path, content: bytes, later: bytes = b"") -> bytes:
    (tmp_path / "server.log").write_bytes(content)
    copy = LogCopy(tmp_path / "server.log", tmp_path / "copy.log", redact, b"non-default args: ")
    with (tmp_path / "server.log").open("ab") as log:
        log.write(later)
    copy.catch_up()
    return (tmp_path / "copy.log").read_bytes()


def test_of_a_long_log_the_last_start_is_kept_and_not_an_earlier_servers(tmp_path):
    kept = copied(tmp_path, START % 4 + BUSY + START % 8 + BUSY, later=b"INFO now\n")
    assert b"'max_num_seqs': 8" in kept
    assert b"'max_num_seqs': 4" not in kept
    assert kept.endswith(b"left out)\nINFO now\n")


def test_without_a_start_the_opening_is_kept(tmp_path):
    kept = copied(tmp_path, b"INFO opening\n" + BUSY)
    assert kept.startswith(b"INFO opening\n")
    assert len(kept) < WHOLE_BYTES


def test_a_short_log_is_kept_whole(tmp_path):
    assert copied(tmp_path, START % 4 + START % 8, later=b"x\n") == START % 4 + START % 8 + b"x\n"
