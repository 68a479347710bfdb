# SPDX-License-Identifier: Apache-2.0
"""Calls that sundog must refuse: ranks disagree, stop, or own too little."""
import os

from families import FAMILIES
from runner import write_script

BASE = ("op=conv_forward mesh=2 split=H:0 partH=0,6,12 size=12x8 kernel=3x3 "
        "stride=1x1 dilation=1x1 pad=1x1 n=1 c=2 k=2 groups=1 seed=1")
CODE = r"SDG-\d\d\d"


def negative_cases(runner, completed):
    """Yields calls that must end in time with an error that says what is wrong.

    Each has a name, a line (for the ranks' setting), the program, patterns that
    the output must match, the seconds it may take, and the environment.
    """
    stem = os.path.join(runner.folder, "negative")
    files = [stem + ".{rank}" + end for end in (".script", ".memory", ".out")]

    def item(name, lines, says, line=BASE, seconds=30, program=None, times=1,
             pieces=range(8), view=None):
        """`lines`: for each rank the lines of its cases; the last case runs
        `times` times. `pieces`: for each rank, the rank whose pieces it gets;
        None: whole tensors."""
        for rank, text in enumerate(lines):
            write_script(f"{stem}.{rank}", [completed(one) for one in text],
                         pieces[rank], times)
        return {"name": name, "line": line, "says": says, "seconds": seconds,
                "view": view or runner.view,
                "program": program or [runner.op_case, *files],
                "env": {"SUNDOG_TIMEOUT": "8"}}

    def but(**changes):
        words = dict(word.split("=", 1) for word in BASE.split())
        words.update({k: str(v) for k, v in changes.items()})
        return " ".join(f"{k}={v}" for k, v in words.items())

    for family in FAMILIES:
        yield from family.refused(item)
    yield item("rank 1 has other columns", [[BASE], [but(size="12x9")]], [CODE])
    yield item("rank 1 has another number of channels",
               [[BASE], [but(c=3)]], [CODE])
    yield item("rank 1 has another kernel", [[BASE], [but(kernel="5x3",
                                                          pad="2x1")]], [CODE])
    yield item("rank 1 has another stride", [[BASE], [but(stride="2x1")]],
               [CODE])
    yield item("rank 1 has another layout", [[BASE], [but(order="NHWC")]],
               [CODE])
    yield item("rank 1 calls another function",
               [[BASE], [but(op="conv_fused", act="relu")]], [CODE])
    yield item("rank 1 ends one call early", [[BASE, BASE], [BASE]],
               [CODE, "rank 1"])
    sizes = but(size="258x8", partH="0,129,258", stride="2x1", own_sizes=1)
    yield item("output sizes that do not add up; the message gives parts",
               [[sizes]] * 2, [CODE, "129", "--parts even/2 -n 2"],
               line=sizes, pieces=[0, 0])
    none = ("mesh=3 split=H:0 partH=0,1,2,3 size=3x4 kernel=3x3 stride=4x1 "
            "dilation=1x1 pad=1x1 n=1 c=1 k=1 groups=1 seed=1")
    yield item("a rank that would own no output", [[none]] * 3, [CODE],
               line=none)
    few = ("mesh=3 split=H:0 partH=0,1,2,2 size=2x4 kernel=3x3 stride=1x1 "
           "dilation=1x1 pad=1x1 n=1 c=1 k=1 groups=1 seed=1")
    yield item("more ranks than rows", [[few]] * 3, ["BAD_PARAM|" + CODE],
               line=few)
    channels = BASE.replace("split=H:0 partH=0,6,12", "split=C:0 partC=0,1,2")
    yield item("channels split", [[channels]] * 2, [CODE], line=channels)
    # Each rank would make the program's call, which pads with zeros instead of
    # the other end of W.
    for op in ("forward", "data", "filter"):
        line = channels.replace("conv_forward", "conv_" + op) + " wrap=W"
        yield item(f"conv_{op}, channels split and W periodic, whole view",
                   [[line]] * 2, ["SDG-602", "periodic"], line=line,
                   pieces=[None] * 2, view="whole")
    single = ("mesh=2 split=H:0 partH=0,1,2 size=2x1 kernel=1x1 stride=1x1 "
              "dilation=1x1 pad=0x0 n=2 c=3 k=2 groups=1 seed=1")
    yield item("one row on every rank: pieces or the same row",
               [[f"op=conv_filter {single}"]] * 2, ["SDG-405"],
               line=f"op=conv_filter {single}")
    strided = ("op=conv_filter mesh=2 split=H:0 partH=0,53,58 size=58x1 "
               "kernel=3x3 stride=2x3 dilation=1x2 pad=2x5 n=2 c=1 k=4 "
               "groups=1 seed=1 ycutH=0,25,30 own_sizes=1 on.x=- "
               "on.dy=W:0@0,2,3")
    yield item("one column on every rank: output sizes fit both readings",
               [[strided]] * 2, ["SDG-633", "tag x"], line=strided)
    empty = ("op=conv_filter mesh=3 split=W:0 partW=0,6,12,18 size=19x18 "
             "kernel=3x4 stride=3x2 dilation=2x2 pad=2x2 n=1 c=4 k=2 groups=1 "
             "seed=1 own_sizes=1 on.x=W:@0,11,17,18 on.dy=local")
    yield item("a gradient whole on every rank, and a piece of x without "
               "the centre of any window", [[empty]] * 3, ["SDG-603"],
               line=empty)
    named = ("op=conv_data mesh=2 split=H:0 partH=0,25,51 size=51x1 "
             "kernel=5x3 stride=1x2 dilation=3x1 pad=2x3 n=2 c=12 k=3 groups=3 "
             "seed=1 on.dy=W:0@0,1,3 own_sizes=1 named=2x12x51x1 on.dx=-")
    yield item("a [local] output of which a rank would get no element",
               [[named]] * 2, ["SDG-603"], line=named)
    both = ("op=conv_data mesh=2x2 split=H:0 partH=0,1,3 size=3x4 kernel=3x5 "
            "stride=4x1 dilation=3x1 pad=5x2 n=1 c=1 k=6 groups=1 seed=1 "
            "bold=1 named=1x6x2x4 on.dy=-")
    yield item("a [local] input that fits a call of each rank, too",
               [[both]] * 4, ["SDG-636", "dy is the same in both"], line=both,
               pieces=range(4))
    sizes = ("op=neighborhood_backward mesh=3 split=W:0 partW=0,5,11,17 n=3 c=2 "
             "size=12x5x17 dims=3 cut=0 hq=2 hv=3 kv=whole kernel=3x1x3 "
             "dilation=3x1x1 seed=1 on.k=local own_sizes=1 on.do=- on.dq=- "
             "on.dk=C:0@0,1,3,4")
    yield item("values that may be whole or cut as another tensor's tag says",
               [[sizes]] * 3, ["SDG-625", r"v of .* is C 18 = 6\+6\+6 over .*, "
                               "or replicated"], line=sizes)
    for op in ("forward", "data", "filter"):
        own = (f"op=conv_{op} mesh=2 split=C:0 partC=0,2,4 n=3 c=4 size=5x4 "
               "kernel=3x3 stride=1x1 pad=1x1 groups=1 k=3 seed=1 own_sizes=1 "
               "on.x=local on.dx=local on.y=local on.dy=local")
        yield item(f"conv_{op} on each rank alone, with a filter of a piece",
                   [[own]] * 2, ["SDG-606", "channels, but d?w needs 2"],
                   line=own)
    around = ("op=lrn_forward mesh=2 split=C:0 partC=0,1,3 size=4x4 n=1 c=3 "
              "window=3 seed=1")
    yield item("local response normalisation over split channels",
               [[around]] * 2, ["SDG-602"], line=around)
    drop = "op=dropout mesh=2 split=H:0 partH=0,6,12 size=12x8 drop=0.5 seed=1"
    yield item("dropout with different seeds",
               [[drop], [drop.replace("seed=1", "seed=2")]], ["SDG-301"],
               line=drop)
    rows = "op=dropout mesh=2 split=H:0 partH=0,1,2 size=2x8 drop=0.5 seed=1"
    yield item("dropout of a row that may be a copy", [[rows]] * 2,
               ["SDG-602", "H is 1 on every rank"], line=rows)
    apart = ("op=reduce fn=max over=N indices=1 mesh=2 split=H:0 partH=0,6,12 "
             "size=12x8 n=2 on.c=-")
    yield item("indices of a result that is whole on every rank", [[apart]] * 2,
               ["SDG-603"], line=apart)
    apart = ("op=op broad=H mesh=2 split=H:0 partH=0,6,12 size=12x8 n=2 "
             "own_sizes=1 on.a=- on.c=local bold=1")
    yield item("a tensor that may be pieces, and another whole on every rank",
               [[apart]] * 2, ["SDG-603", r"x is H 24 = 12\+12"], line=apart)
    apart = ("op=softmax_forward mesh=2 split=H:0 partH=0,6,12 size=12x8 n=2 "
             "on.y=N:0@0,1,2 on.x=W:0@0,4,8")
    yield item("a tag that does not fit the other tensor of the call",
               [[apart], [apart.replace("size=12x8", "size=12x9").replace(
                   "0,4,8", "0,4,9")]], [CODE], line=apart)
    apart = f"{BASE} on.x=C:0@0,1,2 on.y=C:0@0,1,2 own_sizes=1"
    yield item("tags that cut the channels of input and output", [[apart]] * 2,
               ["SDG-602"], line=apart)
    apart = ("op=reduce fn=add over=H mesh=2x2 split=H:0,W:1 partH=0,1,2 "
             "partW=0,6,12 size=2x12 on.a=W:0@0,6,12")
    yield item("a result whose pieces can be understood in two ways",
               [[apart]] * 4,
               ["SDG-633", "tag it"], line=apart, pieces=range(4))
    apart = ("op=conv_filter mesh=2 split=H:0 partH=0,6,12 size=12x8 c=2 k=2 "
             "kernel=3x3 pad=1x1 n=1 on.dy=C:0@0,1,2 on.x=- named=1x2x12x8 "
             "own_sizes=1")
    yield item("a [local] input and a gradient whose channels are cut",
               [[apart]] * 2,
               ["SDG-603", "replicated"], line=apart)
    apart = ("op=conv_forward mesh=2 split=C:0 partC=0,2,4 size=6x4 c=4 k=3 "
             "kernel=3x3 pad=1x1 n=1 on.y=- named=1x3x6x4 own_sizes=1")
    yield item("an input whose channels are cut and a [local] output",
               [[apart]] * 2,
               ["SDG-60[0-9]"], line=apart)
    large = BASE.replace("12 size=12x8", "12 size=12x800")
    for name in "x", "w", "y":
        short = f"{large} short={name}"
        says = [rf"SDG-616 \[rank {rank}\] .*: {name} of cudnnConvolution"
                r"Forward needs \d+ bytes from 0x\w+, where \d+ are allocated"
                for rank in (0, 1)]
        yield item(f"memory of half of {name}", [[short]] * 2, says,
                   line=large)
        yield item(f"memory of half of {name}, on rank 1", [[large], [short]],
                   says[1:], line=large)
        yield item(f"memory of half of {name}, whole view", [[short]] * 2, says,
                   line=large, pieces=[None] * 2, view="whole")
    mean = "op=reduce fn=avg over=H mesh=2 split=H:0 partH=0,6,12 size=12x8"
    yield item("rank 1 reduces by another operation",
               [[mean], [mean.replace("avg", "add")]], ["SDG-301"], line=mean)
    scores = ("op=softmax_forward mode=instance mesh=2 split=H:0 partH=0,6,12 "
              "size=12x8")
    yield item("rank 1 wants logarithms",
               [[scores], [scores + " algo=log"]], ["SDG-301"], line=scores)
    terms = "op=matmul mesh=2 split=k:0 partk=0,5,11 size=7x6x11x0"
    yield item("rank 1 multiplies another number of rows",
               [[terms], [terms.replace("7x6", "8x6")]], ["SDG-400"],
               line=terms)
    yield item("rank 1 multiplies halves",
               [[terms], [terms + " api=gemmex type=half ctype=half"]], [CODE],
               line=terms)
    yield item("rank 1 multiplies a transpose",
               [[terms], [terms + " ta=T"]], ["SDG-301"], line=terms)
    yield item("sums with scalars on the device",
               [[terms + " ondevice=1"]] * 2, ["SDG-600", "device memory"],
               line=terms)
    yield item("sums of infinities",
               [[terms + " alpha=inf"]] * 2, ["SDG-600", "infinite alpha"],
               line=terms)
    around = ("op=pool_backward mesh=2 split=H:0 partH=0,5,11 size=11x6 wrap=H "
              "mode=avgin kernel=3x2 pad=1x0")
    yield item("gradients around an end, times infinity",
               [[around + " alpha=inf"]] * 2, ["SDG-600", "infinite alpha"],
               line=around)
    yield item("sums of cublasLtMatmul in double",
               [[terms.replace("matmul", "matmul_lt") + " type=double"]] * 2,
               ["SDG-600"], line=terms)
    near = ("mesh=2 split=H:0 partH=0,4,9 size=9x7 dims=2 kernel=3x5 n=1 c=2 "
            "hq=2 hv=3")
    for way in "forward", "backward":
        see = f"op=neighborhood_{way} {near}"
        for name, other in (("kernel", see.replace("3x5", "3x3")),
                            ("causal dimension", see + " causal=1x0"),
                            ("scale", see + " scale=0.5"),
                            ("number of heads", see.replace(
                                "c=2 hq=2 hv=3", "c=1 hq=4 hv=6"))):
            yield item(f"rank 1 has another neighbourhood: {name}, {way}",
                       [[see], [other]], ["SDG-301"], line=see)
        wide = see.replace("3x5", "3x9")
        yield item(f"a neighbourhood larger than the grid, {way}", [[wide]] * 2,
                   ["SDG-620", "kernel 9 and dilation 1 in a grid of 7"],
                   line=wide)
        apart = see.replace("3x5", "5x5 dilation=2x1")
        yield item(f"a dilated neighbourhood larger than the grid, {way}",
                   [[apart]] * 2,
                   ["SDG-620", "kernel 5 and dilation 2 in a grid of 9"],
                   line=apart)
        around = see + " wrap=H"
        yield item(f"a neighbourhood over a periodic edge, {way}",
                   [[around]] * 2, ["SDG-620", "H is periodic"], line=around)
    tokens = ("op=attention mesh=2 split=SEQ:0 partSEQ=0,6,12 window=2x3 "
              "n=1 seed=1")
    yield item("rank 1 has other windows", [[tokens], [tokens.replace(
        "2x3", "2x4")]], ["SDG-631", CODE], line=tokens)
    yield item("windows that differ from the rule's", [[tokens.replace(
        "2x3", "9x9")]] * 2, ["SDG-631", r"write into \[shard all\] window = BEFORE"],
               line=tokens)
    yield item("windows of another line of the rules", [[tokens]] * 2,
               ["SDG-631", r"\[shard all\] needs window = 2,3"],
               line=tokens.replace("2x3", "2x1"))
    yield item("attention with dropout", [[tokens + " drop=0.5"]] * 2,
               ["SDG-630", "dropout"], line=tokens)
    yield item("a single step of a sequence in pieces",
               [[tokens + " train=0 only=2"]] * 2, ["SDG-630", "single step"],
               line=tokens)
    two = tokens.replace("n=1", "n=2")
    longer = two + " lengths=12x12 klengths=12x12"
    yield item("rank 0 ends a sequence, and rank 1 has more of it",
               [[longer.replace("lengths=12x", "lengths=3x")], [longer]],
               ["SDG-630", "sequence 0 of q ends at 3 according to rank 0, "
                "but rank 1 has elements up to 12"], line=two)
    yield item("rank 0 ends a sequence of keys, and rank 1 has more of it",
               [[longer.replace("klengths=12x12", "klengths=12x5")], [longer]],
               ["SDG-630", "sequence 1 of k ends at 5"], line=two)
    yield item("a sequence without elements on every rank",
               [[two + " lengths=0x7 klengths=0x7"]] * 2,
               ["SDG-630", "sequence 0 of q has no elements"], line=two)
    yield item("queries that see padding only",
               [[two + " lengths=12x12 klengths=12x3"]] * 2,
               ["SDG-630", "rank 1 has queries of a sequence"], line=two)
    batch = ("op=attention mesh=2 split=BATCH:0 partBATCH=0,1,2 seq=6 n=2 "
             "window=2x3 seed=1")
    yield item("a sequence without elements, the batch split",
               [[batch + " lengths=6x0 klengths=6x0"]] * 2,
               ["SDG-630", "sequence 1 of q has no elements"], line=batch)
    yield item("rank 1 has other heads", [[tokens], [tokens + " heads=2"]],
               ["SDG-301"], line=tokens)
    heads = tokens.replace("SEQ:0", "HEAD:0")
    yield item("vectors split", [[tokens]] * 2, ["SDG-630", "HEAD"],
               line=heads)
    apart = tokens.replace("window=2x3", "window=2x3 strategy=heads heads=3 "
                           "projected=2x2x2x4")
    yield item("a number of heads that the ranks do not divide", [[apart]] * 2,
               ["SDG-630", "'strategy = heads': the number of ranks does not divide the number of heads "
                r"\(3 heads, SEQ in 2 pieces\)"], line=apart)
    other = tokens + " keys=9"
    yield item("windows, and keys cut in other places than queries",
               [[other]] * 2,
               ["SDG-603"], line=other)
    beside = tokens.replace("n=1", "n=2") + (
        " on.q=HEAD:0@0,2,4 on.k=HEAD:0@0,2,4 on.v=HEAD:0@0,2,4 "
        "on.o=SEQ:0@0,6,12 on.do=SEQ:0@0,6,12")
    yield item("tags that split the vectors of queries and keys",
               [[beside]] * 2,
               ["SDG-603"], line=tokens)
    beside = tokens.replace("n=1", "n=2") + (
        " train=0 only=2 on.q=BATCH:0@0,1,2 on.k=SEQ:0@0,6,12 "
        "on.v=SEQ:0@0,6,12 on.o=BATCH:0@0,1,2")
    yield item("a single step on keys in pieces", [[beside]] * 2,
               ["SDG-630", "single step"], line=tokens)
    unsaid = tokens.replace("split=SEQ:0 partSEQ=0,6,12 window=2x3",
                            "split=SEQ:0 partSEQ=0,6,12 window=none")
    yield item("no window given",
               [[tokens]] * 2, ["SDG-631", "no window; write into .shard all. "
                "window = BEFORE,AFTER|no window; for the windows|"
                "no window; the program's"],
               line=unsaid)
    here = ("op=attention mesh=2 split=SEQ:0 partSEQ=0,9,20 here=queries seq=6 "
            "keys=20 window=2x13 n=1 seed=1")
    yield item("gradients of queries whose sums are left to the program",
               [[here + " beam=2 train=1 sum=no"]] * 2,
               ["SDG-630", "write 'sum = yes'"],
               line=here + " beam=2 sum=no")
    yield item("windows that differ from the rule's, queries on every rank",
               [[here.replace("2x13", "2x9")]] * 2, ["SDG-631"], line=here)
    yield item("rank 1 has another number of queries, which every rank has",
               [[here], [here.replace("seq=6", "seq=7")]], ["SDG-400"],
               line=here)
    yield item("rank 1 tags no queries", [[here], [here.replace(
        "here=queries", "here=keys").replace("0,9,20", "0,0,6")]],
               ["SDG-30[01]"], line=here)
    many = [but(size="1200x600", partH="0,600,1200")]
    run = f"exec %s '{runner.op_case}' " + " ".join(f"'{f}'" for f in files)
    for name, signal, says in (("is killed", "KILL", [r"rank 1\b"]),
                               ("is stopped", "STOP", [CODE, r"rank 1\b"])):
        yield item("rank 1 " + name, [many] * 2, says, times=50000, program=[
            "sh", "-c", f"if [ {{rank}} = 1 ]; then "
            f"{run % f'timeout -s {signal} 1.5'}; else {run % ''}; fi"])
