#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a training step of a transformer of graphs moves, tokens in pieces: keys
and values that a window needs, terms of their gradients, and sums of the
gradients of parameters; nothing else. The bytes that each rank records must be
exactly those of the formulas.

usage: bytes.py BUILD [--o96]

  --o96  the shapes of a weather model, on four ranks: 40,320 tokens of 1024
         halves, 16 heads, windows of 512 tokens on each side. It takes 12 GB of
         memory and minutes
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
VARIABLES = 3
FLOAT = 4

# rows: of the field, of each rank; tokens are patches of two rows and columns.
Case = collections.namedtuple(
    'Case', 'images rows columns blocks channels heads hidden window type')


# ---- formulas ----

def size(case):
    return 2 if case.type == 'half' else FLOAT


def tokens(case):
    """Returns how many tokens of an image each rank has."""
    return [rows // 2 * (case.columns // 2) for rows in case.rows]


def seen(case, rank):
    """Returns the tokens that a rank's own ones see: the first, and the one
    behind the last. 24 tokens on each of 4 ranks, window 9, rank 1: 15, 57."""
    own = tokens(case)
    first = sum(own[:rank])
    return (max(0, first - case.window),
            min(sum(own), first + own[rank] + case.window))


def shared(case, rank, other):
    """Returns how many of `other`'s tokens are seen by `rank`'s."""
    own = tokens(case)
    first, (low, high) = sum(own[:other]), seen(case, rank)
    return max(0, min(first + own[other], high) - max(first, low))


def attention(case, rank):
    """Returns the bytes that a rank receives in one block, forward and backward:
    keys and values; these again, and terms of their gradients."""
    others = [r for r in range(len(case.rows)) if r != rank]
    fetched = sum(shared(case, rank, r) for r in others)
    returned = sum(shared(case, r, rank) for r in others)
    token = 2 * case.channels * case.images * size(case)
    return token * fetched, token * (fetched + returned)


def parameters(case):
    """Returns the elements of a block's parameters by the op of their gradient:
    weights, biases, and scales and biases of norms."""
    c, hidden = case.channels, case.hidden
    return {'matmul': 4 * c * c + 2 * c * hidden, 'reduction': 5 * c + hidden,
            'norm_bwd': 4 * c}


def expected(case, rank, cublas):
    """Returns {op: (bytes received, bytes of sums)} of a rank's step, without
    ops that move nothing. Sums of products by cuBLAS are messages: terms of a
    rank's part of the results, in float, then the others' parts, as they are."""
    forward, backward = attention(case, rank)
    sums = {op: case.blocks * count for op, count in parameters(case).items()}
    # The convolutions from patches, and to them.
    sums['conv_wgrad'] = 2 * case.channels * VARIABLES * 4
    sums['reduction'] += case.channels + VARIABLES
    sums['sub+mul+reduction'] = 1  # the loss
    moved = {op: (0, FLOAT * count) for op, count in sums.items()}
    if cublas:
        others = sums['matmul'] * (len(case.rows) - 1) // len(case.rows)
        moved['matmul'] = (others * (FLOAT + size(case)), 0)
    moved['attention'] = (case.blocks * forward, 0)
    moved['attention_backward'] = (case.blocks * backward, 0)
    return moved


# ---- runs ----

def rules_for(case, folder, name):
    with open(os.path.join(HERE, name)) as rules:
        text = re.sub(r'^(channels *=).*', rf'\1 {case.channels}', rules.read(),
                      flags=re.M)
    text = re.sub(r'^(hidden *=).*', rf'\1 {case.hidden}', text, flags=re.M)
    text = re.sub(r'^(inputs *=).*', rf'\1 {3 * case.channels}', text,
                  flags=re.M)
    path = os.path.join(folder, name)
    with open(path, 'w') as rules:
        rules.write(text)
    return path


def run(build, case, cublas, packed):
    """Returns for each rank its executions, as records of their plans."""
    env = {name: value for name, value in os.environ.items()
           if name == 'LD_LIBRARY_PATH' or
           not name.startswith(('SUNDOG_', 'LD_'))}
    env.update(LC_ALL='C', OMP_NUM_THREADS='1', LAYER_VIEW='shard',
               SUNDOG_HOST_MODEL='hopper' if case.type == 'half' else 'any')
    ranks = len(case.rows)
    with tempfile.TemporaryDirectory(prefix='sundog-') as folder:
        rules = rules_for(case, folder, 'cublas.rules' if cublas else
                          'transformer.rules')
        records = os.path.join(folder, 'records')
        done = subprocess.run(
            [os.path.join(build, 'tools', 'sundog'), 'run', '-n', str(ranks),
             '--device', 'host', '--view', 'shard', '--rules', rules,
             '--record', records, '--',
             os.path.join(build, 'tests', 'clients', 'graph_transformer'),
             '--n', str(case.images), '--h', ','.join(map(str, case.rows)),
             '--w', str(case.columns), '--blocks', str(case.blocks),
             '--channels', str(case.channels), '--heads', str(case.heads),
             '--hidden', str(case.hidden), '--sees', str(case.window),
             '--type', case.type, '--steps', '1',
             '--products', 'cublas' if cublas else 'graphs',
             '--inputs', 'packed' if packed else 'apart'],
            env=env, text=True, capture_output=True)
        if done.returncode:
            sys.exit(f'{case}: {done.stderr}')
        executions = []
        for rank in range(ranks):
            with open(os.path.join(records, f'rank-{rank}')) as record:
                lines = [json.loads(line) for line in record]
            plans = {line['plan']: line for line in lines if 'plan' in line}
            executions.append([plans[line['by']] for line in lines
                               if 'call' in line])
    return executions


def moved(executions):
    """Returns {op: (bytes received, bytes of sums)} of those that move some."""
    total = collections.Counter(), collections.Counter()
    for plan in executions:
        op = 'matmul' if plan['entry'].startswith('cublas') else plan['entry']
        received = sum(m['bytes'] for m in plan['messages'] if not m['send'])
        if plan['halo_bytes'] != received:
            sys.exit(f'{op}: {plan["halo_bytes"]} bytes, but messages of '
                     f'{received}')
        total[0][op] += received
        total[1][op] += plan['reduced_bytes']
    return {op: (total[0][op], total[1][op]) for op in total[0]
            if total[0][op] or total[1][op]}


def check(build, case, cublas=False, packed=False):
    for rank, executions in enumerate(run(build, case, cublas, packed)):
        # A graph for each op at the least: nothing has passed by unseen.
        if len(executions) < 25 * case.blocks:
            sys.exit(f'{case}: {len(executions)} executions')
        is_, right = moved(executions), expected(case, rank, cublas)
        if is_ != right:
            sys.exit(f'{case}, rank {rank}, {"cublas" if cublas else "graphs"}: '
                     f'{is_}, not {right}')
        ways = {plan['strategy'] for plan in executions
                if plan['entry'].startswith('attention')}
        if ways != {'halo'}:
            sys.exit(f'{case}: strategies {ways}')


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[1] == '--o96':
        case = Case(1, (80,) * 4, 504, 1, 1024, 16, 4096, 512, 'half')
        check(words[0], case)
        print(f'inner rank, forward: {attention(case, 1)[0]} bytes, backward: '
              f'{attention(case, 1)[1]}, sums: '
              f'{FLOAT * sum(parameters(case).values())}')
        return
    if len(words) != 1:
        sys.exit(__doc__)
    # A weather model's windows: half the tokens of a piece, and all of them.
    inner = Case(1, (16,) * 4, 34, 1, 32, 4, 64, 68, 'half')
    if attention(inner, 1) != (2 * 32 * 2 * 68 * 2, 2 * 2 * 32 * 2 * 68 * 2):
        sys.exit(f'{inner}: {attention(inner, 1)}')
    check(words[0], inner)
    check(words[0], inner, cublas=True)
    uneven = Case(2, (12, 4, 8, 2), 16, 2, 16, 2, 32, 20, 'float')
    check(words[0], uneven)
    check(words[0], uneven, cublas=True)
    check(words[0], uneven, packed=True)


main()
