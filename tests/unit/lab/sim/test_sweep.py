import pytest

from stepline.lab.sim.captures.sweep import Level, Seen, Sent, row


def test_a_row_counts_only_its_steady_window() -> None:
    level = Level(concurrency=1, input_tokens=8, output_tokens=10, seconds=4.0)
    seen = Seen()
    for start in (0.0, 1.0, 2.0, 3.0):  # a token every 0.1 s, the first after 0.1 s
        r = Sent(first_round=start == 0, sent_s=start, first_s=start + 0.1, last_s=start + 1.0)
        r.first_tokens, r.tokens, r.done = 1, 10, True
        seen.requests.append(r)
        seen.chunks += [(start + 0.1 * n, 1, None if n == 1 else 0.1) for n in range(1, 11)]
    got = row(level, seen, 0.0, 4.0)
    assert got["tok_s"] == pytest.approx(10, abs=0.4)
    assert (got["tpot_ms"], got["ttft_ms"], got["requests"]) == (100.0, 100.0, 4)
    none = row(level, Seen(), 0.0, 4.0)
    assert (none["tok_s"], none["step_ms"], none["tpot_ms"], none["ttft_p99_ms"]) == (0.0, None, None, None)
