# SPDX-License-Identifier: Apache-2.0
"""Bytes that all ranks receive in a step of a program, by sundog's counters,
beside the formulas of other libraries. A row is a program, and ways to run it;
rows of other ops are added to ROWS."""
import os
import re
from dataclasses import dataclass, field

FLOAT = 4
# Steps of two runs: what differs is that of steps that have learnt what the
# first ones teach.
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
    """tests/bench/scale.c on a tensor of these extents."""
    def program(built, steps):
        return [built('tests', 'bench', 'bench_scale'), what, str(steps),
                *map(str, row_words), *map(str, extents)]
    return program


def shardtensor(channels, kernel, extents, mesh, filters):
    """PhysicsNeMo ShardTensor: before the call k // 2 rows of x go to both
    neighbours, whatever the stride; their gradients come back. Dimension by
    dimension, with what the one before brought. The filter's gradient is summed
    once."""
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


ROWS = [
    convolution('H', (512, 512), (32, 32, 3, 1), (2,)),
    *(convolution('H', (256, 128), (16, 16, k, 1), (ranks,))
      for k in (3, 5, 7) for ranks in (2, 4, 8)),
    *(convolution('H', (256, 128), (16, 16 * s, k, s), (4,))
      for k in (3, 5, 7) for s in (2, 4)),
    *(convolution('HW', (128, 128), (16, 16, k, 1), mesh)
      for k in (3, 5) for mesh in ((2, 2), (2, 4))),
    convolution('D', (32, 32, 32), (8, 8, 3, 1), (4,)),
    convolution('DH', (32, 32, 32), (8, 8, 3, 1), (2, 2)),
]


# ---- the table -------------------------------------------------------------

def counted(said):
    """Halos and sums of all calls, of the table of `sundog run -v`."""
    total = 0
    for line in said.splitlines():
        cells = line.split()
        if len(cells) > 6 and re.fullmatch(r'\d+', cells[3]) and \
                re.fullmatch(r'\d+\.\d{6}', cells[4]):
            total += round(float(cells[4]) * 1e6) + round(float(cells[6]) * 1e6)
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
    """Prints it; 1 where a goal is missed."""
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
