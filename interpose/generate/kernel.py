# SPDX-License-Identifier: Apache-2.0
"""Generates what stands around launches where the rules declare kernels."""
from probe import watched
from snippets import CALLER, begins, fill_of, real


def registered(e):
    return [f'  sdg_kernel_register({e.parameters[3].name});',
            f'  TAIL return {real(e)};']


def node_made(e):
    params = e.parameters[-1].name
    return [f'  if ({params} &&',
            f'      sdg_kernel_node(SDG_ENTRY_{e.name}, {params}->func,',
            f'                      {CALLER}))',
            '    return cudaErrorLaunchFailure;',
            f'  TAIL return {real(e)};']


def launched(e):
    return [f'  {fill_of(e)}', '  int result;',
            f'  if (sdg_kernel_capture(SDG_ENTRY_{e.name}, &all,',
            f'                         {CALLER}, &result))',
            f'    return ({e.ctype})result;', *watched(e)]


def kernel_probe(e):
    body = {'register': registered, 'node': node_made}.get(e.kind, launched)
    return [f'static {begins("kernel", e)}', *body(e), '}', '']
