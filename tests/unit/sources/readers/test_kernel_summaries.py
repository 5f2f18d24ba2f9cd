"""Summaries of profiles: what they name, and that they prove nothing of a load."""

from pathlib import Path

from stepline.sources.read import read_one_run as read


def test_a_table_of_kernels_and_percent(tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text(
        "kernel,percent\nflash_fwd_splitkv_kernel,42\nncclDevKernel_AllReduce_Sum,30\nx,1\n"
    )
    run = read([tmp_path])
    assert run.files[0].kind == "kernel summary"
    assert run.empty
    (doubt,) = run.doubts
    assert "attention 42 %, communication 30 %" in doubt.text
    assert "at most 3.6 times faster" in doubt.text


def test_a_printed_table_with_shapes(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(
        "-------------  ------------  ------------  ------------  ------------------\n"
        "         Name   Self CUDA %     Self CUDA    # of Calls        Input Shapes\n"
        "-------------  ------------  ------------  ------------  ------------------\n"
        "    aten::bmm        31.00%     160.000ms            21  [[8, 131136, 64]]\n"
        "  aten::copy_        22.00%     119.000ms            42  [[8, 131136, 64]]\n"
        "    aten::add         2.00%      19.000ms            42  [[8, 64]]\n"
    )
    texts = [doubt.text for doubt in read([tmp_path]).doubts]
    assert any("53 % of the profile in p.txt runs over a dimension of 131,136" in text for text in texts)


def test_shares_that_cannot_be_of_one_whole_are_none(tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text("name,percent,tok_s\nalice,80,12\nbob,90,13\n")
    assert read([tmp_path]).doubts == ()
