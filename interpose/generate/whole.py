# SPDX-License-Identifier: Apache-2.0
"""Generates what the whole view does around entries that no rule judges, but
that use memory."""
from snippets import CALLER, begins, fill_of, real


def allocated_bytes(p):
    if len(p.words) == 2:
        return f'*{p.words[0]} * {p.words[1]}'
    return p.words[0]


def allocates(e):
    p = e.of_kind('allocated')[0]
    if p.ctype == 'void *':
        at, size = p.name, allocated_bytes(p)
    elif p.ctype == 'void **':
        at, size = f'*{p.name}', allocated_bytes(p)
    else:
        at = f'{p.name}->ptr'
        size = (f'{p.name}->pitch * {p.words[0]}.height * '
                f'{p.words[0]}.depth')
    return [f'  {e.ctype} status = {real(e)};',
            '  if (status == cudaSuccess)',
            f'    sdg_capture_allocated({at}, {size}, {str(e.hosted).lower()},',
            f'                          {CALLER});',
            '  return status;']


def frees(e):
    return [f'  sdg_capture_freed({e.of_kind("freed")[0].name}, {CALLER});',
            f'  TAIL return {real(e)};']


def unseen(e):
    return [f'  int refusal = sdg_capture_unseen(SDG_ENTRY_{e.name}, '
            f'{CALLER});',
            '  if (refusal)', f'    return ({e.ctype})refusal;',
            f'  TAIL return {real(e)};']


def polls(e):
    return [f'  {e.ctype} status = {real(e)};',
            '  int first = status;',
            f'  int refusal = sdg_capture_polled(SDG_ENTRY_{e.name}, '
            '&first,',
            f'                                   {CALLER});',
            '  if (refusal)', f'    return ({e.ctype})refusal;',
            '  while (first == cudaSuccess && '
            'status == cudaErrorNotReady &&',
            '         sdg_capture_pause())', f'    status = {real(e)};',
            '  if (status == cudaSuccess && !sdg_job_failed())',
            f'    return ({e.ctype})first;',
            f'  return ({e.ctype})sdg_capture_sync(SDG_ENTRY_{e.name}, '
            'status);']


def gives_result(e):
    name, size = e.result()
    return [f'  {e.ctype} status = {real(e)};',
            f'  int refusal = sdg_capture_result(SDG_ENTRY_{e.name}, '
            f'{name}, {size},',
            f'                                   {CALLER});',
            f'  return refusal ? ({e.ctype})refusal : status;']


def gives_value(e):
    name, size = e.result()
    return [f'  {fill_of(e)}', '  int made;',
            f'  if (sdg_capture_value(SDG_ENTRY_{e.name}, &all,',
            f'                        {CALLER}, &made))',
            f'    return ({e.ctype})made;',
            f'  {e.ctype} status = {real(e)};',
            f'  made = sdg_capture_result(SDG_ENTRY_{e.name}, '
            f'{name}, {size},',
            f'                            {CALLER});',
            f'  return made ? ({e.ctype})made : status;']


def changed(e):
    return ['  if (sdg_capture_is_changed()) {',
            f'    int unseen = sdg_capture_unseen(SDG_ENTRY_{e.name}, {CALLER});',
            '    if (unseen)', f'      return ({e.ctype})unseen;',
            f'    TAIL return {real(e)};', '  }']


def touches(e):
    lines = changed(e) if e.changed else []
    lines += [f'  {fill_of(e)}',
              f'  int refusal = sdg_capture_touch_memory(SDG_ENTRY_{e.name}, '
              '&all,',
              f'                                         {CALLER});',
              '  if (refusal)', f'    return ({e.ctype})refusal;']
    if e.kind in ('create', 'set', 'destroy', 'opaque'):
        return lines + [f'  return probe_{e.name}({e.arguments()});']
    if e.result():
        name, size = e.result()
        return lines + [
            f'  {e.ctype} status = {real(e)};',
            f'  refusal = sdg_capture_result(SDG_ENTRY_{e.name}, '
            f'{name}, {size},',
            f'                               {CALLER});',
            f'  return refusal ? ({e.ctype})refusal : status;']
    if e.kind != 'sync':
        return lines + [f'  return {real(e)};']
    return lines + [
        f'  {e.ctype} status = {real(e)};',
        '  if (LIKELY(status == cudaSuccess && !sdg_job_failed()))',
        '    return status;',
        f'  return ({e.ctype})sdg_capture_sync(SDG_ENTRY_{e.name}, status);']


def body_of(e):
    by_kind = {'allocate': allocates, 'free': frees, 'unseen': unseen}
    if e.kind in by_kind:
        return by_kind[e.kind](e)
    if e.is_polling():
        return polls(e)
    if e.result() and not e.accesses():
        return gives_result(e)
    return gives_value(e) if e.gives_value() else touches(e)


def whole_probe(e):
    return [f'static {begins("whole", e)}', *body_of(e), '}', '']
