#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What attention in a graph of cuDNN's backend API moves and keeps, by strategy:
bytes that the inner rank receives in one execution, and its scratch memory, as
sundog records them, beside formulas; milliseconds an execution.

usage: attention_graph.py BUILD [--check] [REPEATS]

Half precision, even pieces. REPEATS: medians of so many runs, 3 unless said.
  --check  instead: fails unless the bytes of some executions are exactly those
           of the formulas, and the scratch of a ring is the same for any number
           of pieces of one size
"""
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HALF, FLOAT = 2, 4
STRATEGIES = ('halo', 'ring', 'heads')
MEASURED = (2, 4)
ALL = -1  # in place of a number of tokens that are seen

# Tokens of a rank; heads; groups of them, which share keys and values; numbers
# of a head; tokens that one sees before and behind itself.
Case = collections.namedtuple(
    'Case', 'ranks tokens heads groups size before behind')


# ---- formulas ----

def inner(case):
    return case.ranks // 2


def seen(case, rank):
    """Returns the tokens that a rank's own ones see: the first, and the one
    behind the last."""
    first, end = rank * case.tokens, (rank + 1) * case.tokens
    total = case.ranks * case.tokens
    return (0 if case.before == ALL else max(0, first - case.before),
            total if case.behind == ALL else min(total, end + case.behind))


def fetched(case):
    """Returns how many tokens of other ranks the inner rank's own ones see. Band
    of 64 on each side, four pieces of 128: 128."""
    low, high = seen(case, inner(case))
    return high - low - case.tokens


def returned(case):
    """Returns for how many of its tokens the inner rank gets terms of gradients,
    once for each rank that has seen them."""
    first = inner(case) * case.tokens
    spans = [seen(case, r) for r in range(case.ranks) if r != inner(case)]
    return sum(max(0, min(first + case.tokens, high) - max(first, low))
               for low, high in spans)


def moved(case, strategy, what):
    """Returns the bytes that the inner rank receives; None: its heads are not
    whole groups."""
    _, tokens, heads, groups, size, *_ = case
    if strategy != 'heads':
        # Keys and values, and terms of their gradients.
        rows = fetched(case) + (returned(case) if what == 'backward' else 0)
        return 2 * groups * size * rows * HALF
    if groups % case.ranks:
        return None
    others = (case.ranks - 1) * tokens
    own, shared = heads // case.ranks, groups // case.ranks
    if what == 'forward':  # q, k, v of own heads; o of the others
        return size * HALF * (others * (own + 2 * shared) +
                              tokens * (heads - own))
    # q, o, do, k, v and statistics of own heads; dq, dk, dv of the others.
    return (size * HALF * (others * (3 * own + 2 * shared) + tokens * (
        heads - own + 2 * (groups - shared))) + FLOAT * others * own)


def ring_scratch(case, what):
    """Returns the bytes of a ring's memory, but for alignment: so many for each
    token of the rank, whatever the number of ranks is."""
    _, tokens, heads, groups, size, *_ = case
    pieces = 2 * 2 * HALF * groups * size  # two, of keys and values
    if what == 'forward':
        # o of a step and of all steps; statistics of a step, which are copied,
        # and of all, and two weights.
        return tokens * (pieces + (HALF + FLOAT) * heads * size +
                         5 * FLOAT * heads)
    # Two steps' terms, another rank's, and the sums; dq of a step, of all steps
    # and in float as the program has it; statistics, and sums of do o.
    terms = pieces + 2 * (HALF + FLOAT) * groups * size
    return tokens * (pieces + terms + (HALF + 2 * FLOAT) * heads * size +
                     2 * FLOAT * heads)


# ---- runs ----

def run(build, case, strategy, what, steps):
    """Returns what sundog has recorded of the inner rank's execution, and the
    milliseconds of the slowest rank."""
    env = {name: value for name, value in os.environ.items()
           if name == 'LD_LIBRARY_PATH' or
           not name.startswith(('SUNDOG_', 'LD_'))}
    env.update(LC_ALL='C', OMP_NUM_THREADS='1')
    with tempfile.TemporaryDirectory(prefix='sundog-bench-') as folder:
        done = subprocess.run(
            [os.path.join(build, 'tools', 'sundog'), 'run', '-n',
             str(case.ranks), '--device', 'host', '--view', 'shard', '--split',
             f'SEQ; op = attention; strategy = {strategy}', '--record', folder,
             '--', os.path.join(build, 'tests', 'bench',
                                'bench_attention_graph'), what, str(steps),
             ','.join([str(case.tokens)] * case.ranks), '{rank}',
             *map(str, case[2:])],
            env=env, text=True, capture_output=True)
        if done.returncode:
            sys.exit(f'{case}, {strategy}, {what}: {done.stderr}')
        with open(os.path.join(folder, f'rank-{inner(case)}')) as record:
            plans = [line for line in map(json.loads, record)
                     if 'strategy' in line]
    if len(plans) != 1 or plans[0]['strategy'] != strategy:
        sys.exit(f'{case}, {strategy}, {what}: {plans}')
    return plans[0], max(map(float, re.findall(r'([\d.]+) ms, ', done.stdout)))


def verdict(is_, right):
    return ' equal' if is_ == right else f' not {right / 1e3:.1f}'


def row(build, case, what, repeats):
    """Prints formulas alone for numbers of ranks that are not measured."""
    line = f'{case.ranks:5}  {case.behind == 0 and "causal" or case.before!s:7}'
    line += f'{what:9}'
    scratch, times = '', ''
    for strategy in STRATEGIES:
        right = moved(case, strategy, what)
        if case.ranks not in MEASURED or right is None:
            line += f'{"-" if right is None else f"{right / 1e3:.1f}":>9}{"":6}'
            continue
        runs = [run(build, case, strategy, what, 4) for _ in range(repeats)]
        bytes_, kept = (runs[0][0][name]
                        for name in ('halo_bytes', 'scratch_bytes'))
        line += f'{bytes_ / 1e3:9.1f}{verdict(bytes_, right):6}'
        scratch += f'{kept / 1e3:9.1f}'
        times += f'{statistics.median(ms for _, ms in runs):9.2f}'
    scratch = scratch or f'{"":27}'
    # One rank makes the program's call, and keeps nothing.
    ring = ring_scratch(case, what) if case.ranks > 1 else 0
    print(f'{line}{scratch}{ring / 1e3:9.1f}{times}', flush=True)


def table(build, repeats):
    tokens, shape = 512, (16, 8, 8)
    print(f'graphs: {tokens} tokens, {shape[0]} heads in {shape[1]} groups, of '
          f'{shape[2]} halves; a token sees so many on each\nside (window), or '
          'all before it. kB that the inner rank receives, beside the formula; '
          'kB of its\nscratch by the same strategies, and the formula of a ring; '
          'milliseconds')
    print(f'{"ranks":>5}  {"window":7}{"":9}' +
          ''.join(f'{name + " kB":>9}{"":6}' for name in STRATEGIES) +
          f'{"scratch":>9}{"ring":>9}{"heads":>9}{"of ring":>9}' +
          f'{"halo ms":>9}{"ring":>9}{"heads":>9}')
    for ranks in (1, 2, 4, 8, 16, 32, 64):
        for window in ((64, 64), (ALL, 0)):
            for what in ('forward', 'backward'):
                row(build, Case(ranks, tokens // ranks, *shape, *window), what,
                    repeats)


# ---- the test ----

def expect(is_, right, text):
    if is_ != right:
        sys.exit(f'{text}: {is_}, not {right}')


def check(build):
    # A weather model's: 1024 tokens, 16 heads of 64 halves, keys and values.
    weather = Case(4, 544, 16, 16, 64, 512, 512)
    plan, _ = run(build, weather, 'halo', 'forward', 1)
    received = [m for m in plan['messages'] if not m['send']]
    expect(sum(m['bytes'] for m in received), 4194304, 'bytes of messages')
    expect({m['rank'] for m in received}, {1, 3}, 'neighbours')
    expect(plan['halo_bytes'], 4194304, 'bytes of a halo')
    expect(plan['reduced_bytes'], 0, 'bytes of sums')
    for what in ('forward', 'backward'):
        kept = set()
        for ranks in (2, 4, 8):
            causal = Case(ranks, 128, 4, 2, 16, ALL, 0)
            plan, _ = run(build, causal, 'ring', what, 1)
            expect(plan['halo_bytes'], moved(causal, 'ring', what),
                   f'ring of {ranks}, {what}')
            kept.add(plan['scratch_bytes'])
            # Each array starts at a multiple of 256 bytes.
            if plan['scratch_bytes'] > ring_scratch(causal, what) + 1024:
                sys.exit(f'scratch of {ranks}, {what}: {kept}, more than '
                         f'{ring_scratch(causal, what)} and alignment')
        expect(len(kept), 1, f'{what}: amounts of scratch of rings {kept}')
        by_heads = Case(4, 32, 8, 4, 16, 8, 8)
        plan, _ = run(build, by_heads, 'heads', what, 1)
        expect(plan['halo_bytes'], moved(by_heads, 'heads', what),
               f'heads, {what}')


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[1] == '--check':
        check(words[0])
    elif len(words) in (1, 2):
        table(words[0], int(words[1]) if len(words) == 2 else 3)
    else:
        sys.exit(__doc__)


main()
