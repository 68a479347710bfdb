# SPDX-License-Identifier: Apache-2.0
"""Generates how a product of matrices becomes an sdg_gemm_t."""
import re

# Which member of sdg_gemm_t (rules/vendor/gemm.h) a parameter is by its name.
MEMBERS = {
    'handle': 'handle', 'lightHandle': 'handle', 'transa': 'op_a',
    'transb': 'op_b', 'trans': 'op_a', 'm': 'm', 'n': 'n', 'k': 'k',
    'batchCount': 'batch', 'alpha': 'alpha', 'beta': 'beta',
    'A': 'a', 'B': 'b', 'C': 'c', 'x': 'b', 'y': 'c', 'lda': 'lda',
    'ldb': 'ldb', 'ldc': 'ldc', 'incx': 'ldb', 'incy': 'ldc',
    'strideA': 'stride_a', 'strideB': 'stride_b', 'strideC': 'stride_c',
    'stridex': 'stride_b', 'stridey': 'stride_c', 'Atype': 'type_a',
    'Btype': 'type_b', 'Ctype': 'type_c', 'computeType': 'compute'}
LT_MEMBERS = {
    **MEMBERS, 'C': 'c_in', 'D': 'c', 'computeDesc': 'desc',
    'Adesc': 'layout_a', 'Bdesc': 'layout_b', 'Cdesc': 'layout_c',
    'Ddesc': 'layout_d', 'workspace': 'workspace',
    'workspaceSizeInBytes': 'workspace_bytes'}
# By the letter of a function's name; of others the entry says the types.
LETTERS = {'S': ('CUDA_R_32F', 'CUBLAS_COMPUTE_32F'),
           'D': ('CUDA_R_64F', 'CUBLAS_COMPUTE_64F'),
           'H': ('CUDA_R_16F', 'CUBLAS_COMPUTE_16F'),
           'C': ('CUDA_C_32F', '-1'), 'Z': ('CUDA_C_64F', '-1')}


def product(e):
    """Fills in sdg_gemm_t from an entry's arguments."""
    members = LT_MEMBERS if e.library == 'cublasLt' else MEMBERS
    fill = {'kind': 'SDG_GEMM_LT' if e.library == 'cublasLt' else
            'SDG_GEMM_VECTOR' if 'gemv' in e.name else 'SDG_GEMM_MATRIX'}
    letter = re.match(r'cublas([SDHCZ])gem[mv](?!Ex|3mEx)', e.name)
    types, compute = LETTERS[letter[1]] if letter else ('-1', '-1')
    mixed = re.match(r'cublas[HT]S([HST])gemv', e.name)
    if mixed:  # no op computes these
        fill['type_c'] = {'H': 'CUDA_R_16F', 'S': 'CUDA_R_32F',
                          'T': 'CUDA_R_16BF'}[mixed[1]]
        compute = 'CUBLAS_COMPUTE_32F'
    if e.name.startswith('cublasSgemmEx'):
        compute = 'CUBLAS_COMPUTE_32F'
    fill = {'type_c': types, **fill, 'type_a': types, 'type_b': types,
            'compute': compute, 'batch': '1'}
    for p in e.parameters:
        if p.name in members:
            fill[members[p.name]] = f'args->{p.name}'
    fill['batched'] = 'true' if 'batch' in [
        members.get(p.name) for p in e.parameters] else 'false'
    if any(p.kind == 'everything' for p in e.parameters
           ) and e.library == 'cublas':
        fill['addresses'] = 'true'
    casts = {'op_a': '(int)', 'op_b': '(int)', 'type_a': '(int)',
             'type_b': '(int)', 'type_c': '(int)', 'compute': '(int)'}
    return [f'static void product_{e.name}(const void *all, sdg_gemm_t *out)'
            ' {',
            f'  const struct sdg_args_{e.name} *args = all;',
            '  *out = (sdg_gemm_t){',
            *(f'      .{member} = {casts.get(member, "")}{value},'
              for member, value in fill.items()), '  };', '}', '']
