# SPDX-License-Identifier: Apache-2.0
"""Generates what the shard view does around an entry that writes memory, makes
a value of it, or reads a clock."""
from snippets import CALLER, begins, fill_of, passed, real
from vector import vector, vector_call


def timed(e):
    return [f'static {begins("shard", e)}',
            f'  {e.ctype} status = {real(e)};',
            f'  if (sdg_capture_timed(SDG_ENTRY_{e.name}, (int)status, '
            f'{e.parameters[0].name},',
            f'                        {CALLER}))',
            '    return cudaErrorLaunchFailure;',
            '  return status;', '}', '']


def note_of_product(e, untouched):
    """A product that may be split is captured, and noted there."""
    return ['  if (atomic_load_explicit(&sdg_slot_products_left, '
            'memory_order_relaxed))',
            f'    sdg_capture_passed(SDG_ENTRY_{e.name}, &all,',
            f'                       {CALLER});',
            f'  TAIL return {untouched};']


def note_of(e, untouched):
    lines = [f'  int refusal = sdg_capture_note(SDG_ENTRY_{e.name}, &all,',
             f'                                 {CALLER});',
             '  if (refusal)', f'    return ({e.ctype})refusal;']
    if not e.gives_value():
        return lines + [f'  TAIL return {untouched};']
    return lines + [
        f'  {e.ctype} status = {real(e)};',
        f'  refusal = sdg_capture_made(SDG_ENTRY_{e.name}, &all, (int)status,',
        f'                             {CALLER});',
        f'  return refusal ? ({e.ctype})refusal : status;']


def noted_probe(e):
    if e.is_timing():
        return timed(e)
    untouched = (f'probe_{e.name}({passed(e)})' if e.is_armed()
                 else real(e))
    note = note_of_product if e.is_product() else note_of
    return [
        *(vector(e) if e.vector_op() else []),
        *(vector_call(e) if e.gives_value() else []),
        f'static COLD {begins("noted", e)}',
        f'  {fill_of(e)}', *note(e, untouched), '}', '',
        f'static {begins("shard", e)}',
        '  if (LIKELY(!sdg_hint_any()))',
        f'    TAIL return {untouched};',
        f'  TAIL return noted_{e.name}({passed(e)});', '}', '']
