"""Files of measured chunk times: headers, units, parts that add up, and clear refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.errors import InputError
from solver.fitting import Samples, read_samples


def read(folder: Path, text: str) -> Samples:
    file = folder / "profile.csv"
    file.write_text(text, encoding="utf-8-sig")
    return read_samples(file)


@pytest.mark.parametrize(
    ("header", "scale", "layers"),
    [
        ("chunk,prefix,seconds", 1, None),
        ("chunk_tokens, prefix_tokens, time_ms", 1e3, None),
        ("Chunk Size,Prefix,Latency (us)", 1e6, None),
        ("chunk,prefix,\u03bcs", 1e6, None),
        ("chunk_tokens,prefix_tokens,attention_us_per_layer", 1e6, 1),
        ("chunk,prefix,step_ns", 1e9, None),
        ("chunk,prefix,msec", 1e3, None),
        ("chunk-size,prefix,Time [usec]", 1e6, None),
    ],
)
def test_units_are_in_the_header(tmp_path: Path, header: str, scale: float, layers: int | None) -> None:
    samples = read(tmp_path, f"{header}\n10,100,{2 * scale}\n\n  \n,,\n20,0,{3 * scale}\n")
    assert samples.seconds.tolist() == pytest.approx([2, 3])
    assert (samples.chunk.tolist(), samples.prefix.tolist(), samples.batch.tolist()) == ([10, 20], [100, 0], [1, 1])
    assert samples.layers == layers and samples.reach == 110


def test_columns_in_any_order_and_whole_prompts(tmp_path: Path) -> None:
    assert read(tmp_path, "ms,batch,prefix,chunk\n5,4,3,2\n").batch.tolist() == [4]
    prompts = read(tmp_path, "prompt_tokens,prompt_ms\n128,55.3\n")
    assert (prompts.chunk.tolist(), prompts.prefix.tolist()) == ([128], [0])
    assert prompts.seconds.tolist() == pytest.approx([0.0553])


def test_rows_stay_in_the_order_in_which_they_were_measured(tmp_path: Path) -> None:
    assert read(tmp_path, "chunk,prefix,s\n9,0,9\n1,0,1\n9,0,2\n").seconds.tolist() == [9, 1, 2]


def test_operators_and_layers_add_up(tmp_path: Path) -> None:
    text = "chunk,prefix,operator,layer,s\n8,0,qkv,0,1\n8,0,attention,0,2\n8,0,qkv,1,4\n8,0,attention,1,8\n"
    samples = read(tmp_path, text)
    assert (samples.seconds.tolist(), samples.layers) == ([15], 2)
    # Of a model with 10 such layers: five times as long.
    assert (samples.of_model(10).seconds.tolist(), samples.of_model(10).layers) == ([75], None)
    # The same part measured three times: the median of 1, 2 and 50.
    assert read(tmp_path, "chunk,prefix,op,s\n8,0,a,50\n8,0,a,1\n8,0,a,2\n").seconds.tolist() == [2]


def test_a_part_that_is_missing_somewhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"chunk.*16.*a row for norm too"):
        read(tmp_path, "chunk,prefix,operator,s\n8,0,qkv,1\n8,0,norm,1\n16,0,qkv,1\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns chunk and prefix"),
        ("\n \n", "columns chunk and prefix"),
        ("chunk,prefix\n1,2\n", "time: 'chunk,prefix'"),
        ("chunk,seconds\n1,2\n", "prefix: 'chunk,seconds'"),
        ("prefix,seconds\n1,2\n", "chunk: 'prefix,seconds'"),
        ("chunk,prefix,seconds,seconds\n1,2,3,4\n", "second time"),
        ("chunk,chunk_tokens,prefix,s\n1,2,3,4\n", "second chunk"),
        ("chunk,prefix,s,prompt\n1,2,3,4\n", "either chunk and prefix or prompts"),
        ("chunk,prefix,time\n1,2,3\n", "a time with its unit"),
        ("chunk,prefix,time_fortnights\n1,2,3\n", "a time with its unit"),
        ("chunk,prefix,seconds,temperature\n1,2,3,4\n", "temperature"),
        # A rate, a share and a point in time end with a unit of time too; a damaged micro sign leaves "s" behind.
        ("chunk,prefix,tokens/s\n1,2,3\n", "'tokens/s'"),
        ("chunk,prefix,tokens_per_s\n1,2,3\n", "'tokens_per_s'"),
        ("chunk,prefix,throughput_tok_s\n1,2,3\n", "'throughput_tok_s'"),
        ("chunk,prefix,time_per_token_us\n1,2,3\n", "'time_per_token_us'"),
        ("chunk,prefix,start_s\n1,2,3\n", "'start_s'"),
        ("chunk,prefix,time_\ufffds\n1,2,3\n", "time_\ufffds"),
        ("chunk;prefix;seconds\n1;2;3,5\n", "line 1: 'chunk;prefix;seconds'.*commas"),
        ("chunk\tprefix\tseconds\n1\t2\t3\n", "separated by commas"),
        ("chunk,prefix,seconds\n", "at least one measured row"),
        ("chunk,prefix,seconds\n1,2\n", "line 2.*3 cells"),
        ("chunk,prefix,seconds\n1,0,1\n1,2,x\n", "line 3, time: 'x'.*a number"),
        ("chunk,prefix,seconds\n1,2,nan\n", "line 2, time: 'nan'.*finite"),
        ("chunk,prefix,seconds\n1,2,-3\n", "line 2, time: '-3'"),
        ("chunk,prefix,seconds\n1,2,0\n", "line 2, time: '0'"),
        ("chunk,prefix,seconds\n1,-2,3\n", "line 2, prefix: '-2'.*from 0"),
        ("chunk,prefix,seconds\n0,2,3\n", "line 2, chunk: '0'.*from 1"),
        ("chunk,prefix,seconds\n1.5,2,3\n", "line 2, chunk: '1.5'.*whole"),
        ("chunk,prefix,seconds\n1,inf,3\n", "line 2, prefix: 'inf'.*finite"),
        ("chunk,prefix,batch,seconds\n1,2,0,3\n", "line 2, batch: '0'"),
        (f"chunk,prefix,seconds\n{'9' * 200_000},2,3\n", "comma-separated"),
    ],
)
def test_broken_files_are_refused_with_their_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert "profile.csv" in str(caught.value)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="existing file"):
        read_samples(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_samples(tmp_path / "binary.csv")
