"""Nothing wrong passes: a right answer with one sign, number or comparison changed is caught, or it is still right.

What "still right" is, is found without the checks: by the unchanged function on random inputs that no check has.
"""

import ast
import copy
import inspect
import itertools
import textwrap

import pytest
import torch

from magnet_lab.course import check
from magnet_lab.course.answers import all_answers
from magnet_lab.course.check import calling

SUITES = all_answers()

SWAPS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.In: ast.NotIn,
    ast.USub: ast.UAdd,
}


def mutants(function):
    """The function with one thing changed at a time, with a word on what."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree.body[0].decorator_list = []
    for place in itertools.count():
        changed = copy.deepcopy(tree)
        word = _change(changed, place)
        if word is None:
            return
        space = dict(function.__globals__)
        exec(compile(ast.fix_missing_locations(changed), "<mutant>", "exec"), space)
        yield word, space[function.__name__]


def _change(tree: ast.AST, place: int) -> str | None:
    """Change the place-th thing that can be changed; None if there are not so many."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            for index, item in enumerate(value if isinstance(value, list) else [value]):
                new = None
                if type(item) in SWAPS:
                    new = SWAPS[type(item)]()
                elif isinstance(item, ast.Constant) and type(item.value) is int:
                    new = ast.Constant(item.value + 1)
                if new is None:
                    continue
                if place == 0:
                    if isinstance(value, list):
                        value[index] = new
                    else:
                        setattr(node, field, new)
                    return f"{ast.dump(item)} -> {ast.dump(new)}, line {getattr(node, 'lineno', '?')}"
                place -= 1
    return None


def _span_ids(generator):
    return torch.randint(-1, 3, (2, 9), generator=generator)


def _rows(generator):
    """Span ids as they come: padding at one end, spans that do not touch."""
    from magnet_lab.views import sample_spans

    tokens = torch.ones(3, 14)
    tokens[1, 10:] = 0
    tokens[2, :3] = 0
    return sample_spans(tokens, generator=generator, shortest=1, longest=4)


def _labels(generator):
    ids = torch.randint(10, 90, (2, 11), generator=generator)
    selected = torch.rand(2, 11, generator=generator) < 0.4
    selected[:, 0] = False
    return ids, ids.masked_fill(selected, 3), selected


INPUTS = {
    "mask": lambda g: (_rows(g),),
    "span_ids": lambda g: (torch.rand(2, 6, generator=g) < 0.7, "causal"),
    "reach": lambda g: (
        (torch.rand(6, 6, generator=g) < 0.3) | torch.eye(6).bool(),
        int(torch.randint(1, 5, (), generator=g)),
    ),
    "prefix_mask": lambda g: (8, int(torch.randint(0, 9, (), generator=g))),
    "mntp_labels": _labels,
    "mtp_labels": _labels,
    "msg_labels": lambda g: (torch.randint(10, 90, (3, 14), generator=g), _rows(g)),
    "prefix_labels": lambda g: (torch.randint(10, 90, (3, 8), generator=g), torch.randint(1, 9, (3,), generator=g)),
    "info_nce": lambda g: (torch.randn(5, 4, generator=g), torch.randn(7, 4, generator=g), 0.3),
    "word_vectors": lambda g: (torch.randn(7, 3, generator=g), [[1, 2], [3], [4, 5, 6]]),
    "rank_candidates": lambda g: ([-torch.rand(n, generator=g) * 3 for n in (1, 4, 2, 3)],),
    "perplexity": lambda g: ([-torch.rand(n, generator=g) * 3 for n in (1, 4, 2)],),
    "infill_step": lambda g: (
        9,
        int(torch.randint(0, 9, (), generator=g)),
        6,
        int(torch.randint(1, 6, (), generator=g)),
    ),
    "rep_n": lambda g: (
        " ".join("abAB"[place] for place in torch.randint(4, (12,), generator=g).tolist()),
        int(torch.randint(1, 5, (), generator=g)),
    ),
    "lora": lambda g: tuple(torch.randn(*shape, generator=g) for shape in ((3, 4), (5, 4), (2, 4), (5, 2))) + (7.0,),
    "running_sum": lambda g: (torch.randn(2, 6, 3, generator=g),),
}
# Where several answers are right, what is compared: what padding sees is open.
KEPT = {"mask": lambda out, ids: out.reshape(len(ids), 14, 14)[ids >= 0]}


def outcome(name, function, arguments):
    """What a function says, as numbers; an error counts as one."""
    try:
        out = calling.Student(function, f"{name}({', '.join('abcdefgh'[: len(arguments)])})")(*arguments)
        out = KEPT[name](out, arguments[0]) if name in KEPT else out
        return [round(float(number), 3) for number in _flat(out)]
    except (calling.NoAnswer, RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__


def _flat(out):
    if isinstance(out, torch.Tensor):
        return [*out.shape, *out.double().flatten().tolist()]
    if isinstance(out, list | tuple):
        return [number for part in out for number in _flat(part)]
    return [out]


@pytest.mark.parametrize("name", INPUTS)
def test_a_changed_answer_is_caught_or_still_right(name, monkeypatch):
    monkeypatch.setattr(calling, "TIME_LIMIT", 1.0)
    tried = caught = 0
    for function in SUITES[name].right:
        for word, mutant in mutants(function):
            tried += 1
            if not getattr(check, name)(mutant):
                caught += 1
                continue
            for seed in range(30):
                arguments = INPUTS[name](torch.Generator().manual_seed(seed))
                same = outcome(name, mutant, arguments) == outcome(name, function, arguments)
                assert same, f"{function.__name__} passes with {word}, and is wrong for {arguments}"
    print(f"{name}: {caught} of {tried} caught, the others are still right")
    assert caught >= 2
