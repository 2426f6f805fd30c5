"""The page of disagreements points at checks and programs that exist and run."""

import importlib
import re

import numpy as np
import pytest
from project import ROOT

from flashlib.ledger.rows import find
from flashlib.programs.cache_call import decode_cached
from flashlib.programs.tkg.sizes import resized_block_len

PAGE = (ROOT / "book" / "disagreements.md").read_text(encoding="utf-8")
ITEMS = re.split(r"^### ", PAGE.partition("\n## Counts")[0], flags=re.M)[1:]
IDS = sorted(set(re.findall(r"\b(?:S4-\d\d|D\d+)\b", PAGE)))


def test_thirteen_items_are_numbered_and_have_both_sides():
    assert [int(item.partition(".")[0]) for item in ITEMS] == list(range(1, 14))
    for item in ITEMS:
        sides = re.findall(r"^(The page|The source|Here)\n: \S", item, re.M)
        assert sides == ["The page", "The source", "Here"], item


def test_every_item_points_somewhere():
    for item in ITEMS:
        assert re.search(r"\{py:mod\}|\]\(\.\./notebooks|S4-|D\d", item), item


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\{py:mod\}`(.*?)`", PAGE))))
def test_named_modules_exist(name):
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("name", IDS)
def test_named_rows_exist(name):
    assert find(name).id == name


def test_numbers_on_the_page():
    assert resized_block_len(16, 10240, 2, (5120,)) == 8


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("tiles", [2, 3])
def test_two_cores_and_a_cache_less_than_half_full(tiles, hardened):
    rng = np.random.default_rng(0)
    q = rng.standard_normal((1, 1, 1, 4)).astype(np.float32)
    k, v = rng.standard_normal((2, 1, tiles * 256, 4)).astype(np.float32)
    out = decode_cached(q, k, v, pos=100, tile=128, lnc=2, hardened=hardened).out
    assert np.isfinite(out).all() == (hardened or tiles == 2)
