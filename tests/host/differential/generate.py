#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of the differential test from the vendor's headers: one C
function per API function, which draws a value for each parameter by its type
and name (harness.h) and prints what the call returned and wrote.
generate.py PREFIX HEADER NAMES SKIPPED OUTPUT COMPILER..."""
import re
import subprocess
import sys

# Functions whose arguments cannot be drawn: why, by a pattern of the name.
LEFT_OUT = [
    r'Callback|Logger',       # a function of the program, or a FILE
    r'^cudnnCreate$',         # needs a device
    r'^cudnnBackend',         # attributes of any type behind void *
    r'^cudnnFusedOps|^cudnn\w*FusedOps',  # the same
    r'^cublas(Lt)?Create|^cublas[SG]et(Matrix|Vector)',  # need a device
    r'^cublasXt|^cublasLtGetCudartVersion',  # a library of its own; a number
    r'Get(ErrorString|StatusName|StatusString|LastError\w*)$',  # strings()
    r'^cudnnGet(Version|MaxDeviceVersion|CudartVersion)$',      # numbers
    r'^ncclCommInit|^ncclGroup|^pnccl|^ncclGetUniqueId$',  # start threads
    r'^ncclMem',              # device memory
    r'^cublasGetCudartVersion$|^cublasXerbla$',  # not a status
]


def preprocessed(header, compiler):
    source = '#include <%s>\n' % header
    text = subprocess.run(compiler + ['-E', '-P', '-x', 'c', '-'],
                          input=source, check=True, capture_output=True,
                          text=True).stdout
    return re.sub(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)', ' ', text)


def enumerations(text):
    """name of the type -> names of its values"""
    found = {}
    for body, name in re.findall(r'enum\s*\w*\s*\{([^}]*)\}\s*(\w+)\s*;', text):
        found[name] = [part.split('=')[0].strip()
                       for part in body.split(',') if part.strip()]
    for name, body in re.findall(r'enum\s+(\w+)\s*\{([^}]*)\}\s*;', text):
        found['enum ' + name] = [part.split('=')[0].strip()
                                 for part in body.split(',') if part.strip()]
    return found


def functions(text, prefix):
    """(return type, name, [(type, parameter)]) of every prototype"""
    flat = ' '.join(re.sub(r'\{[^{}]*\}', ';', text).split())
    for kind, name, inside in re.findall(
            r'([\w\s*]+?)\b(%s\w+)\s*\(([^;{}]*?)\)\s*;' % prefix, flat):
        kind = re.sub(r'\bextern\b', '', kind).strip()
        if '(' in inside or 'typedef' in kind:
            continue
        parameters = []
        for part in inside.split(','):
            part = part.strip()
            if part in ('void', ''):
                continue
            match = re.match(r'(.*?)(\w+)\s*((?:\[\w*\])*)$', part)
            parameters.append((match.group(1).strip() +
                               (' *' if match.group(3) else ''),
                               match.group(2)))
        yield kind, name, parameters


def argument(kind, name, enums, index):
    """C expression that draws one argument."""
    plain = re.sub(r'\bconst\b', '', kind).strip()
    plain = re.sub(r'\s*\*', ' *', plain)
    if plain.endswith('*'):
        base = plain[:-1].strip()
        constant = re.match(r'const\b', kind)
        if base == 'char':
            what = 'TEXT'
        elif constant and base == 'void':
            what = 'FLOATS'
        elif constant and re.match(r'cudnn\w+Descriptor_t$', base):
            return '(void *)descriptors("%s", %d)' % (base, index)
        elif constant:
            what = 'FLOATS' if base in ('float', 'double') else 'NUMBERS'
        elif re.search(r'_t$', base) and base not in enums and \
                base not in ('size_t', 'int64_t', 'uint64_t', 'cudnnSeed_t') \
                or base.endswith('*') or base == 'void':
            what = 'ADDRESS'
        else:
            what = 'RESULT'
        return '(void *)memory(%d, %s, "%s")' % (index, what, name)
    if plain in enums:
        values = ', '.join('(long)' + v for v in enums[plain])
        return '(%s)choice(%d, (const long[]){%s}, %d)' % (
            plain, index, values, len(enums[plain]))
    if plain in ('float', 'double'):
        return 'real(%d)' % index
    if plain in ('int', 'unsigned', 'unsigned int', 'size_t', 'long long int',
                 'unsigned long long', 'int64_t', 'uint64_t', 'int32_t',
                 'uint32_t', 'long long', 'cudaDataType'):
        return '(%s)number(%d, "%s")' % (plain, index, name)
    if re.match(r'(cudnn|cublas)\w*Handle_t$', plain) or plain in (
            'ncclComm_t', 'cudaStream_t'):
        return 'NULL'
    if re.match(r'cudnn\w+Descriptor_t$|cublasLt\w+_t$|cudnnDropout\w+', plain):
        return '(%s)descriptor("%s", %d)' % (plain, plain, index)
    return None


def main():
    prefix, header, names, skipped, output = sys.argv[1:6]
    text = preprocessed(header, sys.argv[6:])
    enums = enumerations(text)
    with open(names, encoding='ascii') as file:
        exported = set(file.read().split())
    with open(skipped, encoding='ascii') as file:
        refused = set(re.findall(r'^STUB\((\w+)\)', file.read(), re.M))
    rows, bodies, left = [], [], []
    for kind, name, parameters in functions(text, prefix):
        if name not in exported or name in refused or \
                any(re.search(p, name) for p in LEFT_OUT):
            continue
        drawn = [argument(k, n, enums, i)
                 for i, (k, n) in enumerate(parameters)]
        status = re.match(r'(cudnnStatus_t|cublasStatus_t|ncclResult_t)', kind)
        if None in drawn or not status:
            left.append(name)
            continue
        types = ', '.join(k for k, _ in parameters) or 'void'
        # In order of the parameters, which a call would not promise.
        lines = ['  %s a%d = %s;' % (re.sub(r'^const (\w+)$', r'\1', k), i, d)
                 for i, ((k, _), d) in enumerate(zip(parameters, drawn))]
        bodies.append(
            'static int call_%s(function_t function) {\n%s\n'
            '  return (int)((%s (*)(%s))function)(%s);\n}' % (
                name, '\n'.join(lines), kind, types,
                ', '.join('a%d' % i for i in range(len(parameters)))))
        first = parameters[0][0] if parameters else ''
        rows.append('  {"%s", "%s", %d, call_%s},' % (
            name, re.sub(r'\bconst\b', '', first).strip(), len(parameters),
            name))
    with open(output, 'w', encoding='ascii') as file:
        file.write('#include <%s>\n'
                   '#include "tests/host/differential/harness.h"\n' % header)
        file.write('/* not drawn: %s */\n' % ' '.join(left))
        file.write('\n'.join(bodies))
        file.write('\nconst row_t rows[] = {\n%s\n};\n' % '\n'.join(rows))
        file.write('const int row_count = sizeof rows / sizeof rows[0];\n')


if __name__ == '__main__':
    main()
