# SPDX-License-Identifier: Apache-2.0
"""Generates the probes of armed entries: PROBES has one for each kind of
entries.def."""
import re
import sys

from entry import operand_rows
from families import FAMILIES
from product import product
from snippets import CALLER, begins, fill_of, real

SAID_NUMBERS_MAX = 8  # SDG_SAID_NUMBERS_MAX of interpose/descriptor.h


def watched(e):
    """Makes the real call, and tells the recorder afterwards if it watches."""
    return ['  if (LIKELY(!sdg_capture_watches()))',
            f'    return {real(e)};',
            f'  {e.ctype} status = {real(e)};',
            '  sdg_capture_after((int)status);',
            '  return status;']


def measured(e):
    """The same, and has the ranks agree on the order of the algorithms."""
    return [
        f'  {e.ctype} status = {real(e)};',
        '  if (sdg_capture_watches())',
        '    sdg_capture_after((int)status);',
        '  if (status != CUDNN_STATUS_SUCCESS)',
        '    return status;',
        f'  result = sdg_capture_measured(SDG_ENTRY_{e.name}, '
        'returnedAlgoCount,',
        '                                perfResults, sizeof *perfResults,',
        '                                requestedAlgoCount,',
        f'                                {CALLER});',
        f'  return result ? ({e.ctype})result : status;']


# ---- calls that rules judge ------------------------------------------------

def captured(e, first, last):
    """capture_NAME: hands the call to the rules, and makes it as it is if they
    leave it."""
    return [
        f'static COLD {begins("capture", e)}',
        f'  {fill_of(e)}', *first,
        '  int result;',
        f'  if (sdg_capture(SDG_ENTRY_{e.name}, &all,',
        f'                  {CALLER}, &result))',
        f'    return ({e.ctype})result;', *last, '}']


def product_probe(e):
    return product(e) + captured(e, [], watched(e)) + [
        f'static {begins("probe", e)}',
        '  if (LIKELY(atomic_load_explicit(&sdg_slot_products_left,',
        '                                  memory_order_relaxed)))',
        f'    TAIL return {real(e)};',
        f'  TAIL return capture_{e.name}({e.arguments()});', '}', '']


def op_probe(e):
    tests = [f'sdg_tag_passes({p.name}, SDG_FAMILY_{e.kind.upper()})'
             for p in e.of_kind('tensor', 'sequence', 'limits')]
    # Calls of each rank's own are checked against memory in pieces
    # (rules/place/own.h), which descriptors do not tell.
    judged = not {'SDG_FAMILY_WINDOWED', 'SDG_FAMILY_REDUCES'
                  }.isdisjoint(FAMILIES[e.kind])
    written = e.leaves() or any(
        data and out for _, _, _, data, out in operand_rows(e))
    # Others may write memory that is known to be in pieces.
    passing = []
    if written and not judged:
        passing = ['  if (' + ' && '.join(tests) +
                   ' && !sdg_job_failed()) {',
                   f'    sdg_capture_passed(SDG_ENTRY_{e.name}, &all,',
                   f'                       {CALLER});',
                   f'    return {real(e)};', '  }']
    if judged or written:
        tests.append('!sdg_hint_any()')
    last = measured(e) if e.is_measuring() else watched(e)
    return captured(e, passing, last) + [
        f'static {begins("probe", e)}',
        '  if (LIKELY(' + ' &&\n             '.join(tests) + ' &&',
        '             !sdg_job_failed()))',
        f'    TAIL return {real(e)};',
        f'  TAIL return capture_{e.name}({e.arguments()});', '}', '']


def opaque_probe(e):
    given = e.of_kind('stream')
    handle = e.of_kind('handle')
    kind, stream = ('GIVEN', given[0].name) if given else (
        'CUDNN', handle[0].name)
    return [f'static {begins("probe", e)}',
            f'  int result = sdg_capture_opaque(SDG_ENTRY_{e.name}, '
            f'SDG_STREAM_{kind},',
            f'                                  {stream}, {CALLER});',
            '  if (result >= 0)',
            f'    return ({e.ctype})result;',
            f'  TAIL return {real(e)};', '}', '']


# ---- descriptors -----------------------------------------------------------

def stood_in(e, lengths):
    """Sets a descriptor of sequences some of which may have no elements: the
    vendor's library is given other lengths."""
    changed = e.of_kind('changed')[0].name
    given = re.sub(rf'\b{lengths}\b', f'given ? given : {lengths}', real(e))
    return [f'static {begins("probe", e)}',
            '  int *given = sdg_descriptor_lengths(nbDims, dimA, '
            f'seqLengthArraySize, {lengths},',
            f'                                   {CALLER});',
            f'  {e.ctype} status = {given};',
            '  if (status == CUDNN_STATUS_SUCCESS) {',
            f'    sdg_descriptor_touch({changed}, {CALLER});',
            '    if (given && !sdg_descriptor_said('
            f'{changed}, {lengths}, seqLengthArraySize))',
            '      status = CUDNN_STATUS_INTERNAL_ERROR;',
            '  }', '  free(given);', '  return status;', '}', '']


def remembered(e):
    """Stores what the vendor's library does not give back of a descriptor:
    numbers, then a list of a number's length."""
    said = e.of_kind('said')
    changed = e.of_kind('changed')[0].name
    numbers = [p.name for p in said if not p.argument]
    lists = [p for p in said if p.argument]
    if len(lists) > 1 or not 0 < len(numbers) <= SAID_NUMBERS_MAX:
        sys.exit(f'{e.name} says other things than numbers and a list')
    numbers_text = ', '.join('(int)' + n for n in numbers)
    listed = f'{lists[0].argument}, {lists[0].name}' if lists else '0, NULL'
    return [f'    const int said[] = {{{numbers_text}}};',
            f'    if (!sdg_descriptor_say({changed}, {len(numbers)}, said, '
            f'{listed},',
            f'                         {CALLER}))',
            '      return CUDNN_STATUS_INTERNAL_ERROR;']


def set_probe(e):
    lengths = e.of_kind('lengths')
    if lengths:
        return stood_in(e, lengths[0].name)
    touched = [f'    sdg_descriptor_touch({"*" if p.kind == "created" else ""}'
               f'{p.name}, {CALLER});'
               for p in e.of_kind('created', 'changed')]
    if e.of_kind('said'):
        touched += remembered(e)
    return [f'static {begins("probe", e)}',
            f'  {e.ctype} status = {real(e)};',
            '  if (status == CUDNN_STATUS_SUCCESS) {', *touched, '  }',
            '  return status;', '}', '']


def destroy_probe(e):
    return [f'static {begins("probe", e)}',
            *(f'  sdg_descriptor_forget({p.name}, {CALLER});'
              for p in e.of_kind('destroyed')),
            f'  TAIL return {real(e)};', '}', '']


# ---- the backend API -------------------------------------------------------

def shadow_probe(e):
    begin = f'static {begins("probe", e)}'
    told = (f'    sdg_capture_{e.name}({e.arguments()},',
            f'        {CALLER});')
    if e.before:
        return [begin, *told, f'  TAIL return {real(e)};', '}', '']
    answer = [f'  int answer = sdg_answer_{e.name}({e.arguments()},',
              f'      {CALLER});',
              '  if (answer >= 0)',
              f'    return ({e.ctype})answer;'] if e.answered else []
    return [begin, *answer, f'  {e.ctype} status = {real(e)};',
            '  if (status == CUDNN_STATUS_SUCCESS)', *told,
            '  return status;', '}', '']


def execute_probe(e):
    given = ', '.join(p.name for p in e.parameters[:3])
    plan = e.parameters[1].name
    return [f'static COLD {begins("capture", e)}',
            f'  int result = sdg_capture_execute(SDG_ENTRY_{e.name}, {given},',
            f'                                   {CALLER});',
            '  if (result >= 0)',
            f'    return ({e.ctype})result;', *watched(e), '}',
            f'static {begins("probe", e)}',
            f'  if (LIKELY(sdg_tag_passes({plan}, '
            'SDG_FAMILY_CONV_GRAPH) &&',
            '             !sdg_hint_any() && !sdg_label_any_at() &&',
            '             !sdg_job_failed()))',
            f'    TAIL return {real(e)};',
            f'  TAIL return capture_{e.name}({e.arguments()});', '}', '']


def text_probe(e):
    return [f'static {begins("probe", e)}',
            f'  if (!sdg_capture_text({e.arguments()}))',
            f'    {real(e)};', '}', '']


# ---- the CUDA runtime ------------------------------------------------------

def graph_probe(e):
    """Makes, launches or destroys graphs, which may have tagged calls."""
    names = {'cudaGraphExec_t *': 'made', 'cudaGraphExec_t': 'exec',
             'cudaGraph_t': 'graph', 'cudaStream_t': 'stream'}
    use = [f'.{names[p.ctype]} = {p.name}' for p in e.parameters
           if p.ctype in names]
    if e.name != e.prototype and e.of_kind('stream'):
        stream = e.of_kind('stream')[0].name
        use[-1] = f'.stream = {stream} ? {stream} : cudaStreamPerThread'
    if 'Launch' in e.name:
        use.append('.launches = true')
    return [f'static COLD {begins("graph", e)}',
            f'  sdg_graph_use_t use = {{{", ".join(use)}}};',
            f'  int result = sdg_capture_graph_begin(SDG_ENTRY_{e.name}, &use,',
            f'                                       {CALLER});',
            '  if (result)',
            f'    return ({e.ctype})result;',
            f'  {e.ctype} status = {real(e)};',
            f'  return ({e.ctype})sdg_capture_graph_end(SDG_ENTRY_{e.name}, '
            '&use, (int)status,',
            f'                                {CALLER});', '}',
            f'static {begins("probe", e)}',
            '  if (LIKELY(!atomic_load_explicit(&sdg_graph_used,',
            '                                   memory_order_relaxed)))',
            f'    TAIL return {real(e)};',
            f'  TAIL return graph_{e.name}({e.arguments()});', '}', '']


def reset_probe(e):
    return [f'static {begins("probe", e)}',
            f'  if (sdg_capture_reset_due({CALLER})) {{',
            '    (void)REAL(cudaDeviceSynchronize, '
            'cudaDeviceSynchronize)();',
            '    sdg_capture_reset();', '  }',
            f'  TAIL return {real(e)};', '}', '']


def copy_probe(e):
    return [f'static {begins("probe", e)}',
            '  if (LIKELY(!sdg_job_failed()))',
            f'    TAIL return {real(e)};',
            '  return cudaErrorLaunchFailure;', '}', '']


def sync_probe(e):
    call = [f'  {e.ctype} status = {real(e)};']
    if e.name == 'cudaDeviceSynchronize':  # not while sundog captures
        call = ['  sdg_device_wait_begin();', *call,
                '  sdg_device_wait_end();']
    return [f'static {begins("probe", e)}', *call,
            '  if (LIKELY(status == cudaSuccess && !sdg_job_failed()))',
            '    return status;',
            f'  return ({e.ctype})sdg_capture_sync(SDG_ENTRY_{e.name}, '
            'status);', '}', '']


PROBES = {
    'create': set_probe, 'set': set_probe, 'destroy': destroy_probe,
    'opaque': opaque_probe, 'shadow': shadow_probe, 'execute': execute_probe,
    'text': text_probe, 'reset': reset_probe, 'graph': graph_probe,
    'copy': copy_probe, 'sync': sync_probe}


def probe(e):
    if e.is_product():
        return product_probe(e)
    return op_probe(e) if e.is_captured() else PROBES[e.kind](e)
