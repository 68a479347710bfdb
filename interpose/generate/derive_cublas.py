#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derives interpose/cublas.def from the prototypes of NVIDIA's cublas_api.h.

usage: derive_cublas.py cublas_api.h          prints the table
       derive_cublas.py cublas_api.h TABLE    fails where TABLE is another;
                                              77: of another version of cuBLAS
"""
import difflib
import re
import sys
import textwrap

sys.dont_write_bytecode = True  # the source folder stays as it is
import cublas

# What the header says is followed, but for these exceptions.
# Left out: they neither read nor write a matrix or vector.
LEFT_OUT = (r'Create_v2|Destroy_v2|GetVersion_v2|GetProperty|SetWorkspace_v2|'
            r'[GS]et(Stream|PointerMode)_v2|[GS]et(AtomicsMode|MathMode|'
            r'SmCountTarget|EmulationStrategy|EmulationSpecialValuesSupport)|'
            r'[GS]etFixedPointEmulation(MantissaControl|MaxMantissaBitCount|'
            r'MantissaBitOffset)|GetFixedPointEmulationMantissaBitCountPointer|'
            r'LoggerConfigure|[GS]etLoggerCallback')
# Added: a program begins with them to use cublas.h and cublasXt.h, whose
# functions are not in the table.
UNSEEN = ['unseen cublasInit()', 'unseen cublasXtCreate(void *handle)']
# Types that the header shows to C++ alone, and not to the C of the probes.
EXTERN = r'\b(__half|__nv_bfloat16)\b'

# What a function writes (writes.py reads it), by the part of its name
# behind the types. Calls on vectors and products of matrices (gemm, gemv) are
# known by themselves; every other one that has memory to write needs a row.
TRIANGLE = 'n * (n + 1) / 2'
OP_A = 'transa ? n : m,transa ? m : n,lda'
OP_B = 'transb ? n : m,transb ? m : n,ldb'
WRITES = {
    r'SetFixedPointEmulationMantissaBitCountPointer': 'mantissaBitCount[1]',
    r'SetVector': 'devicePtr[n,incy] of x[n,incx]',
    r'GetVector': 'y[n,incy] of x[n,incx]',
    r'[SG]etMatrix(Async)?': 'B[rows,cols,ldb] of A[rows,cols,lda]',
    r'SetVectorAsync': 'devicePtr[n,incy] of hostPtr[n,incx]',
    r'GetVectorAsync': 'hostPtr[n,incy] of devicePtr[n,incx]',
    r'[Rr]otg': 'update a[1]; update b[1]; c[1]; s[1]',
    r'[Rr]otmg': 'update d1[1]; update d2[1]; update x1[1]; param[5]',
    r'gbmv': 'y[trans ? n : m,incy]+beta',
    r'(sy|he|sb|hb|sp|hp)mv': 'y[n,incy]+beta',
    r't[rbp][ms]v': 'update x[n,incx]',
    r'ger[uc]?': 'update A[m,n,lda]',
    r'(syr|her)2?': 'update A[n,n,lda]',
    r'(spr|hpr)2?': f'update AP[{TRIANGLE}]',
    r'(syr|her)(k|2k|kx|k3m)': 'partial C[n,n,ldc]+beta',
    r'(sy|he)mm': 'C[m,n,ldc]+beta',
    r'trsm': 'update B[m,n,ldb]',
    r'trmm': 'C[m,n,ldc] kept B == C',
    r'geam': f'C[m,n,ldc] of A[{OP_A}]*alpha, B[{OP_B}]*beta',
    r'dgmm': 'C[m,n,ldc] of A[m,n,lda], x[mode ? n : m,incx]',
    r'tpttr': f'partial A[n,n,lda] of AP[{TRIANGLE}]',
    r'trttp': f'AP[{TRIANGLE}] of A[n,n,lda]',
    r'Uint8gemmBias': 'C[transc ? n : m,transc ? m : n,ldc]',
    r'(trsm|matinv|geqrf|gels|getr[fis]|[gG]emmGrouped)Batched': 'everything',
}

HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
# The second part of the list of intercepted functions (entries.def): those of
# cuBLAS that read or write matrices, by their prototypes alone. Written by
# generate/derive_cublas.py from NVIDIA's header of cuBLAS VERSION: change the
# exceptions there, not this.
#
# sundog knows of each only that it may read and write the allocations that its
# pointers point into, and, where a pointer leads to pointers, any; and what it
# writes, for memory in pieces in the shard view. Products of matrices (gemm,
# gemv) are of kind matmul there: a rule knows by their parameters' names what
# they multiply.
#
#   [extern | unseen] NAME(TYPE PARAMETER, ...) [writes WRITTEN]
#
# {S,D} in a name stands for one function per letter; T is the letter's type and
# R the real type of the same precision. [_64] stands for two functions: in the
# second, whose name ends so, each "int" is an "int64_t".
#
# "extern" functions are not shown to C by the vendor's header. With an "unseen"
# one a program begins to use functions that are not in the list: it is refused
# in the whole view. Pointers may be those of the host. A parameter named
# "result" is then written before the call returns. WRITTEN (entries.def) is for
# the shard view.
'''


def prototypes(text):
    """The parameters of each function, as one text, by its name."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.S)
    text = re.sub(r'(?m)^\s*#(.*\\\n)*.*$', '', text)
    text = re.sub(r'\s*\*\s*', ' *', re.sub(r'\s+', ' ', text))
    found = re.findall(r'cublasStatus_t (?:CUBLASWINAPI )?cublas(\w+) ?'
                       r'\( ?([^;{}()]*?) ?\) ?;', text)
    return {'cublas' + name: '' if parameters == 'void' else parameters
            for name, parameters in found
            if not re.fullmatch(LEFT_OUT, name)}


def row_of(name, parameters):
    flag = 'extern ' if re.search(EXTERN, parameters) else ''
    return (f'{flag}{name}({re.sub(EXTERN, "void", parameters)})'
            f'{what_it_writes(name)}')


def what_it_writes(name):
    """The end of a row, by the name of its functions."""
    stem = re.sub(r'^cublas(\{[\w,]+\}|[SDCZ](?=[a-z])(?!et[A-Z]))?|(_v2)?$', '', name)
    for pattern, writes in WRITES.items():
        if re.fullmatch(rf'(?:{pattern})(Ex)?', stem):
            return f' writes {writes}'
    return ''


def templates(functions):
    """What functions have alike but for the letter: the two halves of their
    names, the parameters with T and R, the letters."""
    for name, parameters in functions.items():
        for letter, (value, real) in cublas.PRECISIONS.items():
            match = re.fullmatch(rf'(cublasI?){letter}([a-z]\w*)', name)
            if not match:
                continue
            template = re.sub(rf'\b{value}\b', 'T', parameters)
            template = re.sub(rf'\b{real}\b', 'R', template)
            yield match[1], match[2], template, [
                other for other in cublas.PRECISIONS
                if functions.get(match[1] + other + match[2]) ==
                cublas.in_precision(template, other)]


def rows(functions):
    """Few rows that stand for all functions, in the header's order."""
    wide = {name for name in functions
            if functions.get(name + '_64') ==
            cublas.in_64_bits(functions[name])}
    left = {name: (i, parameters)
            for i, (name, parameters) in enumerate(functions.items())
            if not (name.endswith('_64') and name[:-3] in wide)}
    found = []
    for head, rest, template, letters in sorted(
            templates({name: p for name, (_, p) in left.items()}),
            key=lambda t: -len(t[3])):
        letters = [x for x in letters if head + x + rest in left]
        names = [head + x + rest for x in letters]
        if len(names) > 1 and len({name in wide for name in names}) == 1:
            found.append((left[names[0]][0], names[0] in wide,
                          f'{head}{{{",".join(letters)}}}{rest}({template})'
                          f'{what_it_writes(head + rest)}'))
            left = {name: p for name, p in left.items() if name not in names}
    found += [(place, name in wide, row_of(name, parameters))
              for name, (place, parameters) in left.items()]
    return [row.replace('(', '[_64](', 1) if both else row
            for _, both, row in sorted(found)]


def version(text):
    return '.'.join(re.search(rf'define CUBLAS_VER_{part} (\d+)', text)[1]
                    for part in ('MAJOR', 'MINOR'))


def table(text):
    out = [HEAD.replace('VERSION', version(text))]
    for row in UNSEEN + rows(prototypes(text)):
        row, _, writes = row.partition(' writes ')
        # A parameter is not broken: only the blank after a comma breaks a line.
        kept = re.sub(r'(?<!,) ', '\0', row)
        out += [line.replace('\0', ' ') for line in textwrap.wrap(
            kept, 80, subsequent_indent='  ', break_on_hyphens=False)]
        if writes:
            out.append(f'  writes {writes}')
    return '\n'.join(out) + '\n'


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    header = open(sys.argv[1]).read()
    if len(sys.argv) == 2:
        sys.stdout.write(table(header))
        return 0
    known = open(sys.argv[2]).read()
    if f'header of cuBLAS {version(header)}:' not in known:
        print(f'the table is of another version than {version(header)}')
        return 77
    differ = list(difflib.unified_diff(
        known.splitlines(), table(header).splitlines(), sys.argv[2],
        sys.argv[1], lineterm=''))
    print('\n'.join(differ))
    return bool(differ)


sys.exit(main())
