"""Documents of an instance do not see each other, whatever kernel attends."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.flex_attention import create_mask, flex_attention

from olmo_loader import build_train_dataloader
from olmo_loader.document_lengths import cumulative_lengths
from olmo_loader.document_masks import (
    cu_doc_lens,
    document_mask,
    document_mask_mod,
    document_numbers,
    lengths_of,
    max_doc_len,
    position_ids,
    sdpa_mask,
)
from olmo_loader.errors import ConfigurationError
from olmo_loader.labels import get_labels
from tests.olmo_loader.small_data import VOCAB, make_small

LENGTHS = torch.tensor([[3, 5, 0], [2, 2, 3]], dtype=torch.int32)


def test_numbers_and_positions():
    numbers = document_numbers(LENGTHS, 8)
    assert numbers.tolist() == [[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2, 2, -1]]
    assert position_ids(numbers).tolist() == [[0, 1, 2, 0, 1, 2, 3, 4], [0, 1, 0, 1, 0, 1, 2, 0]]
    with pytest.raises(ConfigurationError, match="documents of 8 tokens in rows of 7"):
        document_numbers(LENGTHS, 7)


def test_cumulative_lengths_for_varlen():
    full = torch.tensor([[3, 5], [8, 0]], dtype=torch.int32)
    assert cu_doc_lens(full).tolist() == [0, 3, 8, 16]
    assert cu_doc_lens(full).dtype == torch.int32
    assert cu_doc_lens(full).tolist() == cumulative_lengths(full.numpy()).tolist()
    assert cu_doc_lens(LENGTHS, 8).tolist() == [0, 3, 8, 10, 12, 15, 16]  # padding by itself
    assert max_doc_len({"doc_lens": LENGTHS}) == 5
    assert max_doc_len({"doc_lens": LENGTHS, "max_doc_lens": [5, 3]}) == 5
    with pytest.raises(ConfigurationError, match="pass generate_doc_lengths=True"):
        lengths_of({})


@st.composite
def doc_lens(draw) -> tuple[Tensor, int]:
    length = draw(st.integers(1, 12))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        row: list[int] = []
        while sum(row) < length and draw(st.integers(0, 3)):
            row.append(draw(st.integers(1, length - sum(row))))
        rows.append(row or [length])
    widest = max(map(len, rows))
    padded = [row + [0] * (widest - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.int32), length


@given(doc_lens())
def test_masks_agree_with_their_definition(drawn: tuple[Tensor, int]):
    lengths, size = drawn
    numbers = document_numbers(lengths, size)
    for row, found in zip(lengths.tolist(), numbers.tolist(), strict=True):
        expected = [number for number, count in enumerate(row) for _ in range(count)]
        assert found == expected + [-1] * (size - len(expected))
    mask = document_mask(numbers)
    mod = create_mask(document_mask_mod(numbers), len(numbers), 1, size, size, device="cpu")[:, 0]
    for batch in range(len(numbers)):
        for a in range(size):
            for b in range(size):
                doc = numbers[batch, a]
                wanted = bool(doc == numbers[batch, b] and b <= a and doc >= 0)
                assert bool(mask[batch, a, b]) == wanted
                if doc >= 0:
                    assert bool(mod[batch, a, b]) == wanted
    assert sdpa_mask(numbers)[:, 0].diagonal(dim1=1, dim2=2).all()
    ends = cu_doc_lens(lengths, size).tolist()
    assert ends[-1] == numbers.numel()
    assert sorted(set(ends)) == ends


def by_varlen(query: Tensor, key: Tensor, value: Tensor, ends: list[int]) -> Tensor:
    """What a varlen kernel computes: causal attention inside each segment of the flat batch."""
    batch, heads, length, width = query.shape
    flat = [t.transpose(0, 1).reshape(1, heads, batch * length, width) for t in (query, key, value)]
    parts = []
    for begin, end in pairwise(ends):
        q, k, v = (t[:, :, begin:end] for t in flat)
        parts.append(functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    return torch.cat(parts, dim=2).view(heads, batch, length, width).transpose(0, 1)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_the_three_kernels_compute_the_same(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    loader = build_train_dataloader(data.folder, global_batch_size=4, generate_doc_lengths=True)
    batch = next(iter(loader))
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(4, 2, 16, 8, generator=generator) for _ in range(3))
    numbers = document_numbers(batch["doc_lens"], 16)
    by_sdpa = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=sdpa_mask(numbers)
    )
    mod = document_mask_mod(numbers)

    def score_mod(score, b, h, q, k):
        return torch.where(mod(b, h, q, k), score, -float("inf"))

    by_flex = flex_attention(query, key, value, score_mod=score_mod)
    assert torch.allclose(by_sdpa, by_flex, atol=1e-6)
    ends = cu_doc_lens(batch["doc_lens"]).tolist()
    assert max(b - a for a, b in pairwise(ends)) == max_doc_len(batch)
    assert torch.allclose(by_sdpa, by_varlen(query, key, value, ends), atol=1e-6)


class Model(torch.nn.Module):
    """Two layers of attention with learned positions: enough for anything to leak through."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.tokens, self.places = (torch.nn.Embedding(n, width) for n in (VOCAB, 16))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, 3 * width) for _ in range(2))

    def forward(  # type: ignore[explicit-override]
        self, embedded: Tensor, numbers: Tensor
    ) -> Tensor:
        hidden = embedded + self.places(position_ids(numbers))
        for layer in self.layers:
            query, key, value = layer(hidden)[:, None].chunk(3, dim=-1)
            mask = sdpa_mask(numbers)
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            hidden = hidden + mixed[:, 0]
        return functional.linear(hidden, self.tokens.weight)


def test_logits_and_gradients_of_document_b_do_not_depend_on_document_a(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    loader = build_train_dataloader(data.folder, global_batch_size=8, generate_doc_lengths=True)
    batch = next(batch for batch in loader if (batch["doc_lens"] > 0).sum(1).max() >= 3)
    row = int((batch["doc_lens"] > 0).sum(1).argmax())
    numbers = document_numbers(batch["doc_lens"], 16)
    torch.manual_seed(0)
    model = Model()
    ids = batch["input_ids"]
    inside = numbers[row] == 1
    changed = ids.clone()
    changed[row, ~inside] = (changed[row, ~inside] + 7) % VOCAB
    before, after = (model(model.tokens(x), numbers) for x in (ids, changed))
    assert torch.equal(before[row, inside], after[row, inside])
    assert not torch.equal(before[row, ~inside], after[row, ~inside])
    embedded = model.tokens(ids).detach().requires_grad_()
    model(embedded, numbers)[row, inside].sum().backward()
    assert embedded.grad is not None
    assert embedded.grad[row, ~inside].abs().max() == 0
    assert embedded.grad[row, inside].abs().max() > 0
    # The same document alone, at the beginning of a row, has the same logits.
    length = int(inside.sum())
    alone = ids[row, inside][None]
    own = model(model.tokens(alone), torch.zeros(1, length, dtype=torch.int64))
    assert torch.allclose(own[0], before[row, inside], atol=1e-6)
    # And so its loss has.
    labels = get_labels(batch)[row, inside]
    assert int(labels[-1]) == -100


def test_padding_stays_finite_and_reaches_nobody():
    numbers = document_numbers(LENGTHS, 8)
    model = Model()
    embedded = torch.randn(2, 8, 16, requires_grad=True)
    result = model(embedded, numbers)
    assert result.isfinite().all()
    result[1, :7].sum().backward()
    assert embedded.grad is not None
    assert embedded.grad.isfinite().all()
    assert embedded.grad[1, 7].abs().max() == 0
