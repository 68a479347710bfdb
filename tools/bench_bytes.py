# SPDX-License-Identifier: Apache-2.0
"""Compares the bytes that all ranks receive in a step of a program, as sundog
counts them, with formulas for other libraries. A row is a program and the ways
to run it. To add rows, extend ROWS."""
import os
import re
from dataclasses import dataclass, field

FLOAT = 4
# Steps of two runs: their difference leaves out the first steps, which also
# plan and compare.
FEW, MORE = 4, 8


@dataclass
class Way:
    """One way to run a row's program: a column of the table."""
    name: str
    rules: str            # of a rules file
    mesh: str             # as in y=2,x=2
    program: object       # program(built, steps): its words
    goal: bool = True     # no more bytes than a peer


@dataclass
class Row:
    name: str
    ranks: int
    ways: list
    peers: dict = field(default_factory=dict)  # name: bytes a step, all ranks


# ---- convolutions ----------------------------------------------------------

def split_program(what, row_words, extents):
    """Runs tests/bench/scale.c on a tensor of these extents."""
    def program(built, steps):
        return [built('tests', 'bench', 'bench_scale'), what, str(steps),
                *map(str, row_words), *map(str, extents)]
    return program


def shardtensor(channels, kernel, extents, mesh, filters):
    """PhysicsNeMo ShardTensor: before the call each rank sends k // 2 rows of x
    to both neighbours, whatever the stride, and later receives their gradients.
    It exchanges dimension by dimension, including the rows that it received
    before. The filter's gradient is summed once."""
    moved, local = 0, list(extents)
    reach = kernel // 2
    for i, pieces in enumerate(mesh):
        line = channels * FLOAT
        for j, extent in enumerate(local):
            line *= extent if j != i else 1
        moved += 2 * (pieces - 1) * reach * line
        local[i] += 2 * (pieces - 1) * reach
    ranks = 1
    for pieces in mesh:
        ranks *= pieces
    return 2 * moved + ranks * filters * channels * kernel ** len(extents) * \
        FLOAT


def convolution(dims, extents, words, mesh):
    """words: channels in and out, kernel, stride."""
    channels, filters, kernel, stride = words
    axes = 'abc'[:len(mesh)]
    where = f'{",".join(f"{a}={n}" for a, n in zip(axes, mesh))}'
    split = ', '.join(f'{d}:{a}' for d, a in zip(dims, axes))
    pieces = [n // (mesh[i] if i < len(mesh) else 1)
              for i, n in enumerate(extents)]
    ranks = 1
    for n in mesh:
        ranks *= n

    def rules(view, more=''):
        named = ''.join(f'{a} = {n}\n' for a, n in zip(axes, mesh))
        return (f'[mesh]\n{named}[shard all]\nsplit = {split}\n'
                f'view = {view}\n{more}')

    ways = [Way('whole', rules('whole'), where,
                split_program('step', words, extents)),
            Way('shard', rules('shard'), where,
                split_program('step', words, pieces), goal=False),
            Way('kept', rules('shard', 'keep = x dy\n'), where,
                split_program('step', words, pieces))]
    name = (f'{"x".join(map(str, extents))} k{kernel} s{stride} C={channels} '
            f'K={filters}, {"x".join(map(str, mesh))} ranks')
    return Row(name, ranks, ways,
               {'ShardTensor': shardtensor(channels, kernel, extents, mesh,
                                           filters)})


# ---- products of matrices ---------------------------------------------------

RAW = 12  # of tests/bench/products.c


def gathered(*elements):
    """PyTorch's DTensor: by an all-gather or a reduce-scatter of so many
    elements, P ranks together receive P - 1 times their bytes."""
    return lambda ranks: (ranks - 1) * FLOAT * sum(elements)


# What DTensor moves in a step for the same placements, with T tokens, I inputs,
# H hidden units and O outputs. It keeps gathered tensors for the gradients.
DTENSOR = {
    # dw: an all-reduce, which is a reduce-scatter and an all-gather
    'data': lambda t, i, h, o: gathered(2 * h * i),
    # dw: a reduce-scatter
    'pieces': lambda t, i, h, o: gathered(h * i),
    # x: an all-gather; dx: a reduce-scatter
    'column': lambda t, i, h, o: gathered(2 * i * t),
    # y: a reduce-scatter; dy: an all-gather
    'row': lambda t, i, h, o: gathered(2 * o * t),
    # all of these
    'mlp': lambda t, i, h, o: gathered(2 * i * t + 2 * o * t),
    # y, dx: an all-reduce each
    'tensor': lambda t, i, h, o: gathered(2 * o * t + 2 * i * t),
}


def product_rules(form, size, view, keep):
    """Returns the sections of a form: for each the lines of both views, and the
    lines that place matrices in the shard view."""
    t, i, h, o = size
    tokens = {  # inputs, or hidden units, of tokens
        'row': (f'M={h} N={t} K={RAW}', 'split = M:y', 'sizes = piece'),
        'tensor': None}.get(form, (f'M={i} N={t} K={RAW}', 'split = N:y',
                                   'sizes = piece'))
    whole, cut = 'N:whole', 'parts = N:even'
    up = (f'M={h} N={t} K={i}', 'split = M:y',
          f'a = M:y\nb = N:y\nsizes = M:piece {whole}\n{cut}')
    up_weights = (f'M={h} N={i} K={t}', 'split = M:y', 'a = M:y\nb = K:y\n'
                  'sizes = M:piece K:whole\nparts = K:even')
    inputs = (f'M={i} N={t} K={h}', 'split = K:y\nc = N:y',
              f'a = K:y\nb = K:y\nsizes = K:piece {whole}\n{cut}')
    down = (f'M={o} N={t} K={h}', 'split = K:y\nc = N:y',
            f'a = K:y\nb = K:y\nsizes = K:piece {whole}\n{cut}')
    down_weights = (f'M={o} N={h} K={t}', 'split = N:y', 'a = K:y\nb = N:y\n'
                    'sizes = N:piece K:whole\nparts = K:even')
    hidden = (f'M={h} N={t} K={o}', 'split = M:y',
              f'a = M:y\nb = N:y\nsizes = M:piece {whole}\n{cut}')
    alone = 'a = K:y\nb = K:y\nsizes = piece'
    sections = {
        'data': [tokens,
                 (f'M={h} N={t} K={i}', 'split = N:y', 'sizes = piece'),
                 (f'M={h} N={i} K={t}', 'split = K:y', alone),
                 (f'M={i} N={t} K={h}', 'split = N:y', 'sizes = piece')],
        'pieces': [tokens,
                   (f'M={h} N={t} K={i}', 'split = N:y', 'sizes = piece'),
                   (f'M={h} N={i} K={t}', {'whole': 'split = K:y\nc = M:y',
                                           'shard': 'split = M:y'},
                    'a = K:y\nb = K:y\n'
                    'sizes = M:piece K:whole\nparts = K:even'),
                   (f'M={i} N={t} K={h}', 'split = N:y', 'sizes = piece')],
        'column': [tokens, up, up_weights, inputs],
        'row': [tokens, down, down_weights, hidden],
        'mlp': [tokens, up, down, down_weights, hidden, up_weights, inputs],
        'tensor': [(f'M={h} N={t} K={i}', 'split = M:y', 'sizes = piece'),
                   (f'M={o} N={t} K={h}', 'split = K:y', alone),
                   (f'M={o} N={h} K={t}', 'split = N:y', 'sizes = piece'),
                   (f'M={h} N={t} K={o}', 'split = M:y', 'sizes = piece'),
                   (f'M={h} N={i} K={t}', 'split = M:y', 'sizes = piece'),
                   (f'M={i} N={t} K={h}', 'split = K:y', alone)],
    }[form]
    text = ''
    for number, (match, split, places) in enumerate(sections):
        if isinstance(split, dict):
            split = split[view]
        text += f'[shard s{number}]\nmatch = {match}\n{split}\nview = {view}\n'
        if view == 'shard':
            text += places + '\n' + (f'keep = {keep}\n' if keep else '')
    return text


def product(name, form, ranks, size):
    """size: tokens, inputs, hidden units, outputs."""
    def program(pieces):
        def words(built, steps):
            return [built('tests', 'bench', 'bench_products'), form, str(steps),
                    *(['{size}', '{rank}'] if pieces else ['1', '0']),
                    *map(str, size)]
        return words

    mesh = f'[mesh]\ny = {ranks}\n'
    # With dy, the factors would be kept for a product that the program does not
        # make.
    keep = 'x' if form == 'pieces' else 'x dy'
    ways = [Way(way, mesh + product_rules(form, size, view, keep), f'y={ranks}',
                program(view == 'shard'), goal)
            for way, view, keep, goal in (
                ('whole', 'whole', '', True),
                ('shard', 'shard', '', False),
                ('kept', 'shard', keep, True))]
    return Row(f'{name}, {form}, {ranks} ranks', ranks, ways,
               {'DTensor': DTENSOR[form](*size)(ranks)})


TOY = (60, 24, 32, 16)           # of tests/clients/nets/linear.c
LAYERS = (60, 250, 1024, 270)    # a quarter of doc/rules.md's two layers
UNEVEN = (61, 40, 99, 50)
# Half of the toy's hidden units equal the number of its outputs, so on two ranks
# no pattern distinguishes its products.

# ---- vectors ---------------------------------------------------------------

def vectors(what, height, width, ranks):
    """tests/bench/vectors.c in the whole view. Where each rank computes on its
    piece, the convolution's rows travel, and 16 bytes of each rank for each
    value, between the hosts, which are not counted; ShardTensor gets the rows,
    and a sum for each value."""
    def program(built, steps):
        return [built('tests', 'bench', 'bench_vectors'), what, str(steps),
                str(height), str(width)]
    rules = f'[mesh]\na = {ranks}\n[shard all]\nsplit = H:a\nview = whole\n'
    rows = 2 * (ranks - 1) * width * FLOAT
    sums = 2 * ranks * FLOAT if what == 'values' else 0
    return Row(f'{height}x{width} vectors, {what}, {ranks} ranks', ranks,
               [Way('whole', rules, f'a={ranks}', program)],
               {'ShardTensor': rows + sums})


ROWS = [
    vectors('moves', 512, 512, 2),
    vectors('moves', 256, 128, 4),
    vectors('values', 256, 128, 4),
    convolution('H', (512, 512), (32, 32, 3, 1), (2,)),
    *(convolution('H', (256, 128), (16, 16, k, 1), (ranks,))
      for k in (3, 5, 7) for ranks in (2, 4, 8)),
    *(convolution('H', (256, 128), (16, 16 * s, k, s), (4,))
      for k in (3, 5, 7) for s in (2, 4)),
    # More outputs than inputs: a first layer, steps of a U-Net's encoder.
    *(convolution('H', (256, 128), (c, k, 3, s), (ranks,))
      for c, k in ((3, 64), (32, 64)) for s in (1, 2) for ranks in (2, 4)),
    convolution('H', (256, 128), (16, 64, 3, 2), (4,)),
    convolution('H', (256, 128), (16, 32, 5, 1), (4,)),
    convolution('HW', (128, 128), (16, 32, 3, 1), (2, 2)),
    convolution('D', (32, 32, 32), (8, 16, 3, 1), (4,)),
    *(convolution('HW', (128, 128), (16, 16, k, 1), mesh)
      for k in (3, 5) for mesh in ((2, 2), (2, 4))),
    convolution('D', (32, 32, 32), (8, 8, 3, 1), (4,)),
    convolution('DH', (32, 32, 32), (8, 8, 3, 1), (2, 2)),
    *(product(name, form, ranks, size)
      for name, size in (('toy', TOY), ('layers', LAYERS), ('uneven', UNEVEN))
      for form in DTENSOR for ranks in ((3, 4) if size is TOY else (2, 3, 4))),
]


# ---- the table -------------------------------------------------------------

def counted(said):
    """Reads halos and sums of all calls from the table of `sundog run -v`."""
    total, titles = 0, []
    for line in said.splitlines():
        cells = line.split()
        if cells[:2] == ['RULE', 'ENTRY']:
            titles = re.findall(r'\S+ MB|WAIT s|CALLS',
                                line)
        if cells[:1] == ['total']:
            total += sum(round(float(cell) * 1e6) for title, cell in
                         zip(titles, cells[1:])
                         if title in ('HALO MB', 'SUMS MB'))
    return total


def step_bytes(folder, built, start, finish, row, way):
    path = os.path.join(folder, 'rules')
    with open(path, 'w') as file:
        file.write(way.rules)
    moved = [counted(finish([start(row.ranks, ['-v', '--rules', path],
                                   way.program(built, steps))])[1])
             for steps in (FEW, MORE)]
    return (moved[1] - moved[0]) // (MORE - FEW)


def table(folder, built, start, finish, words):
    """Prints the table. Returns 1 if a goal is missed."""
    missed = 0
    print('bytes that all ranks receive in a step, sums once for each rank; '
          'goal: no more than the least peer')
    for row in ROWS:
        if not all(word in row.name for word in words):
            continue
        least = min(row.peers.values()) if row.peers else None
        line = f'{row.name:44}'
        for way in row.ways:
            moved = step_bytes(folder, built, start, finish, row, way)
            over = least is not None and moved > least
            missed += over and way.goal
            line += f'  {way.name} {moved:8}' + (
                ' missed' if over and way.goal else '')
        print(line + ''.join(f'  {peer} {moved:8}' for peer, moved in
                             row.peers.items()), flush=True)
    return 1 if missed else 0
