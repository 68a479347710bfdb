#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many calls of vendors' functions one call of a program becomes, by kind.

usage: launches.py BUILD [--check] [--functions] [--ranks N] [WORD...]

Each case runs on three ranks; the table shows the inner rank, which has two
neighbours. Calls are counted after the first ones, by tests/bench/tally.c, so
that the numbers are exact and the same on every machine.
  --check      fails if any rank makes more calls of a kind than the case allows
  --functions  counts by function, too
WORD: cases that contain it.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

# The first pattern that matches a function gives its kind.
KINDS = [
    ('conv', r'cudnnConvolution(Forward|BackwardData|BackwardFilter|BiasAct)|'
             r'cudnnBackendExecute'),
    ('query', r'cudnn(Get|Find).*(Workspace|Algorithm|Size|Buffers)|'
              r'cuda(EventQuery|StreamQuery|PointerGet|.*Attribute|MemGet)'),
    ('desc', r'cudnn(Create|Destroy|Set|Get|Derive|Init).*Descriptor'
             r'|cudnnGetConvolution(GroupCount|MathType)|'
             r'cudnnSetConvolution(GroupCount|MathType)|cublasLt.*(Create|Set|'
             r'Init|Get)'),
    ('stream', r'cudnn[GS]etStream|cublas[GS]et\w+|cudaStream(IsCapturing|GetId)|'
               r'cudaThreadExchange|cudaGetDevice|cudaSetDevice|cudaGetLast'),
    ('create', r'cudnnCreate|cublasCreate|cuda(Stream|Event)Create|ncclCommInit'
               r'|cudnnDestroy|cublasDestroy'),
    ('transform', r'cudnnTransformTensor'),
    ('add', r'cudnn(Add|Op)Tensor|cublas\w(geam|axpy)'),
    ('scale', r'cudnn(Scale|Set)Tensor|cublas\wscal'),
    ('reduce', r'cudnnReduceTensor|cudnnConvolutionBackwardBias'),
    ('product', r'cublas\w*(gemm|Gemm|Matmul)'),
    ('other', r'cudnn|cublas'),
    ('copy', r'cudaMemcpy(Async)?$'),
    ('copy2d', r'cudaMemcpy2D'),
    ('copy3d', r'cudaMemcpy3D'),
    ('fill', r'cudaMemset'),
    ('graph', r'cudaGraphLaunch'),
    ('capture', r'cudaGraph|cudaStream(Begin|End)Capture'),
    ('group', r'p?nccl(GroupEnd|AllReduce|AllGather|ReduceScatter|Broadcast)'),
    ('message', r'p?nccl(Send|Recv)'),
    ('nccl', r'p?ncclComm'),
    ('record', r'cudaEventRecord'),
    ('join', r'cudaStreamWaitEvent'),
    ('alloc', r'(malloc|calloc|realloc|free|posix_memalign|aligned_alloc|'
              r'strdup|mmap|munmap)$|cuda(Malloc|Free|Host)'),
    ('thread', r'pthread_create|fork'),
    ('wait', r'cuda\w*Synchronize|pthread_(cond_\w*wait|join)|sem_\w*wait|poll|'
             r'nanosleep|usleep|sched_yield|syscall'),
    ('lock', r'pthread_(mutex_lock|rwlock_\w*(rd|wr)lock)'),
    ('time', r'clock_gettime|gettimeofday'),
]
# Of no cost, or the other half of a call that is counted.
IGNORED = (r'pthread_(mutex_un|setcancel)|p?ncclGroupStart|'
           r'mem(cpy|move|set|cmp|chr)|str')
# Work of the device, messages, order of streams, questions, the host's own.
COLUMNS = '''conv transform add scale reduce product other copy copy2d copy3d
    fill graph group message record join capture query desc stream create nccl alloc thread
    wait lock time'''.split()
NEVER = ('capture', 'query', 'create', 'alloc', 'thread', 'wait')
MANY = 1000
COPIES = {'copy', 'copy2d', 'copy3d', 'fill'}

# op and form of the tensors; what the rules say, or an option; the most calls of each kind on
# any rank. Kinds of NEVER and of the device's work that are not named: 0. Others
# are not limited.
WORK = COLUMNS[:COLUMNS.index('record')]


def conv(pieces, copies, **more):
    """A convolution: in place and its strips, together; one exchange."""
    return {'conv': pieces, 'group': 1, 'message': 4, 'record': 4, 'join': 2,
            **copies, **more}


H100, SLOW = 'SUNDOG_COST=1.3e12,5,42', 'SUNDOG_COST=1,5,42'
# Runs below 64 bytes are copied by a kernel; none are.
KERNEL, ENGINE = 'SUNDOG_COST=1.3e12,5,42,64', 'SUNDOG_COST=1.3e12,5,42,0'
CASES = [
    ('forward/nhwc/half', 'strategy = repair', conv(2, {'copies': 2})),
    # Ranks at an end of the domain clear rows beyond it.
    ('forward/nhwc/half', 'strategy = extend', conv(1, {'copies': 2})),
    # Copies to and from strips come again: one graph of both (see 'moves').
    ('forward', 'strategy = repair', conv(2, {'copies': 4}, graph=1)),
    ('forward', 'strategy = extend', conv(1, {'copies': 5})),
    ('data/nhwc/half', 'strategy = repair', conv(2, {'copies': 2})),
    ('data', 'strategy = repair', conv(2, {'copies': 4}, graph=1)),
    # And the sum over ranks, of half numbers in float. Outputs at an end of the
    # domain see fewer taps: a strip of their own, which is added.
    ('filter/nhwc/half', 'strategy = repair',
     conv(3, {'copies': 2}, graph=1, transform=3, group=2, record=7, join=4)),
    ('filter', 'strategy = repair',
     conv(3, {'copies': 4}, graph=1, transform=1, group=2, record=7, join=4)),
    # The same of graphs.
    ('graph-forward/nhwc/half', 'strategy = repair', conv(2, {'copies': 2})),
    ('graph-forward/nhwc/half', 'strategy = extend', conv(1, {'copies': 2})),
    ('graph-forward', 'strategy = repair', conv(2, {'copies': 4}, graph=1)),
    ('graph-data/nhwc/half', 'strategy = repair', conv(2, {'copies': 2})),
    ('graph-data', 'strategy = repair', conv(2, {'copies': 4}, graph=1)),
    ('graph-data/nhwc/half', H100, conv(1, {'copies': 2})),
    ('graph-data/nhwc/half', SLOW, conv(2, {'copies': 2})),
    # What auto takes: small pieces are copied, if copies are not very slow.
    ('forward/nhwc/half', H100, conv(1, {'copies': 2})),
    ('forward/nhwc/half', SLOW, conv(2, {'copies': 2})),
    ('data/nhwc/half', H100, conv(1, {'copies': 2})),
    ('filter/nhwc/half', H100,
     conv(2, {'copies': 2}, graph=1, transform=3, group=2, record=7, join=4)),
    ('pool', H100, {'other': 1, 'copies': 6, 'group': 1, 'message': 4}),
    ('unpool', H100, {'other': 1, 'copies': 4, 'graph': 3, 'group': 1,
                      'message': 12}),
    # Halos of columns: each run is 4 bytes.
    ('forward', 'strategy = extend; split = W; ' + ENGINE,
     conv(1, {'copies': 5})),
    ('forward', 'strategy = extend; split = W; ' + KERNEL,
     conv(1, {'copies': 2}, transform=2)),
    # Addresses that no earlier call had change nothing.
    ('forward/nhwc/half/moves', 'strategy = repair', conv(2, {'copies': 2})),
    ('data/nhwc/half/moves', 'strategy = repair', conv(2, {'copies': 2})),
    ('filter/nhwc/half/moves', 'strategy = repair',
     conv(3, {'copies': 4}, transform=3, group=2, record=7, join=4)),
    # A descriptor that is set again: the ranks agree anew, and the call is
    # planned anew, but the vendor's library is not asked again.
    ('forward/nhwc/half/anew', 'strategy = repair',
     conv(2, {'copies': 2}, alloc=MANY, wait=MANY)),
    ('data/nhwc/half/anew', 'strategy = repair',
     conv(2, {'copies': 2}, alloc=MANY, wait=MANY)),
    ('filter/nhwc/half/anew', 'strategy = repair',
     conv(3, {'copies': 4}, transform=3, group=2, record=7, join=4, alloc=MANY,
          wait=MANY)),
    ('pool/moves', '', {'other': 2, 'copies': 8, 'group': 1, 'message': 4}),
    # Copies between buffers of sundog's own come again.
    ('unpool/moves', '', {'other': 3, 'copies': 20, 'graph': 1, 'group': 1,
                          'message': 12}),
    ('norm/moves', '', {'scale': 1, 'reduce': 1, 'other': 4, 'copies': 2,
                        'group': 1}),
    ('pool', '', {'other': 2, 'copies': 4, 'graph': 1, 'group': 1,
                  'message': 4}),
    ('unpool', '', {'other': 3, 'copies': 4, 'graph': 3, 'group': 1,
                    'message': 12}),
    ('norm', '', {'scale': 1, 'reduce': 1, 'other': 4, 'copies': 2,
                  'group': 1}),
    ('norm-back', '', {'transform': 3, 'add': 4, 'scale': 1, 'other': 2,
                       'group': 1}),
    ('attention', 'split = SEQ; window = 1,1; strategy = halo',
     {'other': 1, 'copies': 3, 'group': 1, 'message': 8}),
    # The ranks compare each product of the shard view, so they wait.
    ('product', 'split = K; a = K:ranks; b = K:ranks; sizes = piece',
     {'add': 2, 'product': 3, 'group': 2, 'message': 8,
      'alloc': 7, 'else': 12, 'wait': MANY}),
]
RANKS = 3


def kind_of(function):
    return next((kind for kind, pattern in KINDS
                 if re.match(pattern, function)), None)


def rules_of(words):
    lines = [line.strip() for line in words.split(';')
             if 'SUNDOG_' not in line]
    if not any(line.startswith('split') for line in lines):
        lines.insert(0, 'split = H')
    return '[shard all]\nview = shard\n' + '\n'.join(lines) + '\n'


def plain(path, folder):
    """The loader splits LD_PRELOAD and LD_AUDIT at blanks and colons."""
    link = os.path.join(folder, os.path.basename(path))
    if not os.path.islink(link):
        os.symlink(path, link)
    return link


def run(build, folder, op, words, ranks):
    """Returns for each rank the calls of each function, and the number of the
    program's calls."""
    rules = os.path.join(folder, 'rules')
    with open(rules, 'w', encoding='ascii') as file:
        file.write(rules_of(words))
    started = []
    for rank in range(ranks):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(('SUNDOG_', 'LD_'))}
        env.update(
            SUNDOG_RANK=str(rank), SUNDOG_SIZE=str(ranks), SUNDOG_RULES=rules,
            SUNDOG_RENDEZVOUS=f'file:{folder}/meet', OMP_NUM_THREADS='1',
            TALLY_FILE=f'{folder}/tally-{rank}',
            **dict(re.findall(r'(SUNDOG_COST)=([^;]*)', words)),
            LD_LIBRARY_PATH=plain(f'{build}/src/host/lib', folder),
            LD_AUDIT=plain(f'{build}/tests/bench/libtally.so', folder),
            LD_PRELOAD=plain(f'{build}/interpose/libsundog.so', folder))
        started.append(subprocess.Popen(
            [f'{build}/tests/bench/bench_launches', op], env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    said = [rank.communicate() for rank in started]
    if any(rank.returncode for rank in started):
        sys.exit(f'launches: {op}, {words}: {"".join(e for _, e in said)}')
    return [read(text) for text, _ in said]


def read(text):
    first, *lines = text.splitlines()
    calls = int(first.split()[1])
    functions = collections.Counter()
    for line in lines:
        caller, function, own, other = line.split()
        if caller.startswith('libsundog'):
            functions[function] += int(own)
        else:  # threads that other libraries create
            functions[f'pthread_create({caller})'] += int(own) + int(other)
    return calls, +functions


def kinds_of(calls, functions):
    kinds = collections.Counter()
    for function, count in functions.items():
        kind = kind_of(function)
        if kind:
            kinds[kind] += count / calls
        elif not re.match(IGNORED, function):
            kinds['else'] += count / calls
    return kinds


def number(value):
    if value == 0:
        return '.'
    return str(round(value)) if value == round(value) else f'{value:.2f}'


def faults(name, limits, ranks):
    for rank, kinds in enumerate(ranks):
        kinds['copies'] = sum(kinds[kind] for kind in COPIES)
        for kind in sorted({*NEVER, *WORK, *limits} - COPIES | {'copies'}):
            if kinds[kind] > limits.get(kind, 0):
                yield (f'{name}: rank {rank} makes {number(kinds[kind])} calls '
                       f'of kind {kind}, {limits.get(kind, 0)} are allowed')


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--functions', action='store_true')
    parser.add_argument('--ranks', type=int, default=RANKS)
    parser.add_argument('words', nargs='*')
    args = parser.parse_intermixed_args()
    rows, bad = [], []
    for op, words, limits in CASES:
        name = f'{op} {words.split(" = ")[-1] if words[:2] == "st" else ""}'
        name += re.sub(r'SUNDOG_COST=([^;]*).*', r'auto \1', words) * \
            words.startswith('SUNDOG_')
        name = name.strip()
        if not all(word in name for word in args.words):
            continue
        with tempfile.TemporaryDirectory(prefix='launches-') as folder:
            ranks = run(os.path.abspath(args.build), folder, op, words,
                        args.ranks)
        counts = [kinds_of(*rank) for rank in ranks]
        rows.append((name, counts[args.ranks // 2], ranks[args.ranks // 2]))
        bad += faults(name, limits, counts)
    table(rows, args.functions)
    if args.check:
        sys.exit('\n'.join(bad) or 0)


def table(rows, functions_too):
    every = [*COLUMNS, 'else']
    kinds = [kind for kind in every if any(inner[kind] for _, inner, _ in rows)]
    wide = max([len(name) for name, _, _ in rows], default=0)
    print('calls of each kind that one call of the program makes, on an inner '
          'rank; of kind ' + ', '.join(kind for kind in every if kind not in kinds) + ': none')
    print(' ' * wide + ''.join(f'{kind:>{len(kind) + 2}}' for kind in kinds))
    for name, inner, (calls, functions) in rows:
        print(f'{name:{wide}}' + ''.join(f'{number(inner[kind]):>{len(kind) + 2}}'
                                         for kind in kinds))
        for function, count in sorted(functions.items()):
            if functions_too:
                print(f'    {count / calls:7.2f} {kind_of(function) or "-":8} '
                      f'{function}')


if __name__ == '__main__':
    main()
