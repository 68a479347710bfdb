# SPDX-License-Identifier: Apache-2.0
"""Records how a version of cudnn-frontend states attention: one line a form,
with what has to be recognised, for tests/unit/graph/test_composite.c.

usage: LD_LIBRARY_PATH=BUILD/src/host/lib SUNDOG_HOST_GRAPHS=FILE \\
           python record.py [NAME...] >>forms.txt

FILE must not exist; the package is the one that this Python finds. Without
names: all forms. A line is: version, name, what is expected, the graph as a
plan's JSON without what is the default, parted by tabs. Tensors that the
program names have fixed numbers; Q is 1."""
import json
import os
import sys

import cudnn

TYPE = cudnn.data_type
TYPES = {'f16': TYPE.HALF, 'f32': TYPE.FLOAT, 'bf16': TYPE.BFLOAT16,
         'i32': TYPE.INT32, 'i64': TYPE.INT64}
UIDS = {'q': 1, 'k': 2, 'v': 3, 'o': 4, 'stats': 5, 'bias': 6, 'length_q': 7,
        'length_kv': 8, 'do': 9, 'dq': 10, 'dk': 11, 'dv': 12, 'scale': 13,
        'dbias': 14, 'seed': 15, 'offset': 16, 'drop': 17,
        'drop_scale': 18, 'drop_scale_inverse': 19, 'sink': 20, 'table_k': 21,
        'table_v': 22}
handle = cudnn.create_handle()
record = os.environ['SUNDOG_HOST_GRAPHS']


class Form:
    """What is asked for; memory is (b, s, h, d)."""
    backward = False
    stats = True
    b, heads, k_heads, v_heads, queries, keys, d, d_v = 2, 4, 4, 4, 12, 12, 8, 8
    type = 'f16'
    right = left = None
    bottom_right = False
    bias = None  # extents
    lengths = False
    scale = 0.125  # None: no scale; 'value', 'device': a tensor
    alibi = dbias = deterministic = paged = sink = False
    dropout = None  # 'philox' or 'mask'
    implementation = None
    lacks = None  # what is expected

    def __init__(self, name, **what):
        self.name = name
        for key, value in what.items():
            getattr(self, key)
            setattr(self, key, value)

    # ---- the graph ---------------------------------------------------------

    def tensor(self, name, dim, type_=None, rows=False, **more):
        """rows: the array is packed in the order of its dimensions."""
        b, h, s, d = dim
        stride = [h * s * d, s * d, d, 1] if rows else [s * h * d, d, h * d, 1]
        tensor = self.graph.tensor(name=name, dim=dim, stride=stride,
                                   data_type=TYPES[type_ or self.type], **more)
        tensor.set_uid(UIDS[name])
        return tensor

    def number(self, name, type_='f32', **more):
        return self.tensor(name, [1, 1, 1, 1], type_, True, **more)

    def options(self):
        more = {}
        if self.scale == 'value':
            more['attn_scale'] = self.number('scale', is_pass_by_value=True)
        elif self.scale == 'device':
            more['attn_scale'] = self.number('scale')
        elif self.scale:
            more['attn_scale'] = self.scale
        if self.bias:
            more['bias'] = self.tensor('bias', self.bias, rows=True)
        if self.lengths:
            more['use_padding_mask'] = True
            more['seq_len_q'] = self.tensor('length_q', [self.b, 1, 1, 1], 'i32')
            more['seq_len_kv'] = self.tensor('length_kv', [self.b, 1, 1, 1], 'i32')
        if self.alibi:
            more['use_alibi_mask'] = True
        if self.dropout == 'philox':
            more['dropout'] = (0.1, self.number('seed', 'i64'),
                               self.number('offset', 'i64'))
        elif self.dropout:
            scales = ['drop_scale', 'drop_scale_inverse'][:1 + self.backward]
            more['dropout'] = (self.tensor('drop', [self.b, self.heads,
                                                    self.queries, self.keys]),
                               *[self.number(name) for name in scales])
        if self.sink:
            more['sink_token'] = self.tensor('sink', [1, self.heads, 1, 1], 'f32')
        if self.paged:
            table = [self.b, 1, 3, 1]
            more['paged_attention_k_table'] = self.tensor('table_k', table, 'i32')
            more['paged_attention_v_table'] = self.tensor('table_v', table, 'i32')
            more['paged_attention_max_seq_len_kv'] = self.keys
        if self.implementation:
            more['implementation'] = getattr(cudnn.attention_implementation,
                                             self.implementation)
        if self.deterministic:
            more['use_deterministic_algorithm'] = True
        return more

    def bounds(self):
        """As newer versions take them, and as older ones do."""
        new, old = {}, {}
        if self.right is not None:
            new['diagonal_band_right_bound'] = self.right
        if self.left is not None:
            new['diagonal_band_left_bound'] = self.left
            old['sliding_window_length'] = self.left
        if self.bottom_right and hasattr(cudnn, 'diagonal_alignment'):
            new['diagonal_alignment'] = cudnn.diagonal_alignment.BOTTOM_RIGHT
        if self.right == 0:
            old['use_causal_mask_bottom_right' if self.bottom_right else
                'use_causal_mask'] = True
        return [new, old] if self.right in (None, 0) else [new]

    def state(self, bounds):
        self.graph = cudnn.pygraph(
            handle=handle, io_data_type=TYPES[self.type],
            intermediate_data_type=TYPE.FLOAT, compute_data_type=TYPE.FLOAT)
        q_dim = [self.b, self.heads, self.queries, self.d]
        k_dim = [self.b, self.k_heads, self.keys, self.d]
        v_dim = [self.b, self.v_heads, self.keys, self.d_v]
        o_dim = [self.b, self.heads, self.queries, self.d_v]
        q, k, v = (self.tensor(name, dim) for name, dim in
                   (('q', q_dim), ('k', k_dim), ('v', v_dim)))
        more = self.options() | bounds
        if self.backward:
            if self.dbias:
                more['dBias'] = self.tensor('dbias', self.bias, rows=True)
            o, d_o = self.tensor('o', o_dim), self.tensor('do', o_dim)
            stats = self.tensor('stats', [*o_dim[:3], 1], 'f32', True)
            results = self.graph.sdpa_backward(q=q, k=k, v=v, o=o, dO=d_o,
                                               stats=stats, **more)
            names = (('dq', q_dim), ('dk', k_dim), ('dv', v_dim))
        else:
            try:
                results = self.graph.sdpa(q=q, k=k, v=v, is_inference=not self.stats,
                                          **more)
            except TypeError:
                results = self.graph.sdpa(q=q, k=k, v=v, generate_stats=self.stats,
                                          **more)
            names = (('o', o_dim),)
            if self.stats:
                results[1].set_output(True).set_data_type(TYPE.FLOAT)
                results[1].set_uid(UIDS['stats'])
        for result, (name, (b, h, s, d)) in zip(results, names):
            result.set_output(True).set_uid(UIDS[name])
            result.set_dim([b, h, s, d]).set_stride([s * h * d, d, h * d, 1])
            result.set_data_type(TYPES[self.type])

    def plan(self):
        """What prevents it; plans are recorded by the host device."""
        problem = None
        for bounds in self.bounds():
            try:
                self.state(bounds)
                self.graph.validate()
                self.graph.build_operation_graph()
                self.graph.create_execution_plans([cudnn.heur_mode.A])
                return None
            except TypeError as error:  # an option of another version
                problem = error
            except Exception as error:
                return error
        return problem

    # ---- what is expected --------------------------------------------------

    def expected(self, unified):
        if self.lacks:
            return 'lacks ' + self.lacks
        words = ['backward' if self.backward else
                 'unified' if unified else 'forward', 'q=1', 'k=2', 'v=3', 'o=4']
        if self.stats:
            words += ['stats=5']
        if self.bias:
            words += ['bias=6']
        if self.lengths:
            words += ['length_q=7', 'length_kv=8']
        if self.backward:
            words += ['do=9', 'dq=10', 'dk=11', 'dv=12']
        if self.scale:
            words += ['scale']
        if self.right is not None:
            words += ['right+' if self.right else 'right']
        if self.left is not None:
            words += ['left+']
        if self.bottom_right and self.right is not None:
            words += ['bottom_right']
            words += ['by_lengths' if self.lengths else 'by_sizes']
            if self.left is not None and not self.lengths:
                words += ['folded']
        return ' '.join(words)


def forms():
    """Each one forward with and without statistics, and backward."""
    out = []

    def both(name, **what):
        out.append(Form(name, **what))
        out.append(Form(name + ', no stats', stats=False, **what))
        out.append(Form(name + ', backward', backward=True, **what))

    both('plain')
    both('causal', right=0)
    both('bf16, causal', type='bf16', right=0)
    both('causal, more keys', right=0, keys=20)
    both('causal, bottom right', right=0, bottom_right=True, keys=17)
    both('right', right=3)
    both('right, bottom right', right=3, bottom_right=True, keys=16)
    both('window', right=0, left=4)
    both('window, bottom right', right=0, left=4, bottom_right=True, keys=16)
    both('left', left=4)
    both('left, bottom right', left=4, bottom_right=True, keys=16)
    both('band', right=3, left=4)
    both('band, bottom right', right=3, left=4, bottom_right=True, keys=16)
    both('bias', bias=[2, 4, 12, 12])
    both('bias of heads, causal', bias=[1, 4, 12, 12], right=0)
    both('bias of keys', bias=[1, 1, 1, 12])
    both('lengths', lengths=True)
    both('lengths, causal', lengths=True, right=0)
    both('lengths, causal, bottom right', lengths=True, right=0, keys=16,
         bottom_right=True)
    both('lengths, window', lengths=True, right=0, left=4)
    both('lengths, band, bottom right', lengths=True, right=3, left=4, keys=16,
         bottom_right=True)
    both('lengths, bias', lengths=True, bias=[1, 4, 12, 12])
    both('no scale', scale=None)
    both('no scale, causal', scale=None, right=0)
    both('a number as scale, causal', scale='value', right=0)
    both('a number as scale', scale='value')
    both('groups of heads', k_heads=2, v_heads=2)
    both('groups of heads, causal', k_heads=2, v_heads=1, right=0)
    both('narrow values, causal', d=16, right=0)
    both('one query', queries=1)
    both('one query, causal, bottom right', queries=1, right=0, bottom_right=True)
    both('f32', type='f32')
    both('f32, causal', type='f32', right=0)
    out.append(Form('deterministic, backward', backward=True, right=0,
                    deterministic=True, k_heads=2, v_heads=2))
    for name, what in (('composite', {}), ('composite, no stats', {'stats': False}),
                       ('composite, lengths', {'lengths': True})):
        out.append(Form(name, implementation='COMPOSITE', **what))
    both('device scale', scale='device', right=0,
         lacks='a scale that is not a number of the host')
    both('ALiBi', alibi=True, right=0,
         lacks='ALiBi, or a bias that the graph computes')
    both('dropout', dropout='philox', right=0, lacks='dropout')
    both('dropout with a mask', dropout='mask', right=0, lacks='dropout')
    # Backward, the statistics have the sink in them already.
    out.append(Form('sink', sink=True, right=0, lacks='sink tokens'))
    out.append(Form('paged', paged=True, lengths=True, right=0,
                    lacks='paged keys or values'))
    out.append(Form('gradient of the bias', backward=True, bias=[1, 4, 12, 12],
                    dbias=True, lacks='the gradient of a bias'))
    return out


# ---- records -----------------------------------------------------------------


def lines():
    try:
        with open(record, encoding='ascii') as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def short(text):
    plan = json.loads(text)
    graph = plan['operationGraph']
    for tensor in graph['tensors']:
        for key, default in (('isVirtual', False), ('isByValue', False),
                             ('vectCount', 1), ('vectDim', -1),
                             ('reordering', 'CUDNN_TENSOR_REORDERING_NONE')):
            if tensor[key] == default:
                del tensor[key]
    for node in graph['nodes']:
        for key in ('alpha1', 'alpha2'):
            if node.get(key) == 1.0:
                del node[key]
    short_plan = {key: plan[key] for key in ('cudnnVersion', 'schemaVersion',
                                             'operationGraph', 'engine')}
    return json.dumps(short_plan, separators=(',', ':'))


def main():
    for form in forms():
        if len(sys.argv) > 1 and form.name not in sys.argv[1:]:
            continue
        before = len(lines())
        problem = form.plan()
        new = lines()[before:]
        if not new:
            print(f'{cudnn.__version__}: {form.name}: {str(problem)[:120]!r}',
                  file=sys.stderr)
            continue
        text = new[0].split('\t')[1]
        print(cudnn.__version__, form.name, form.expected('SDPA_FWD' in text),
              short(text), sep='\t')


main()
