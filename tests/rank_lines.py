# SPDX-License-Identifier: Apache-2.0
"""Expands messages that `sundog run` merged, such as "all 4 ranks: ...", to one
line per rank."""
import re

HEAD = re.compile(r"sundog: (?:all (\d+) ranks|ranks ([\d, -]+)): "
                  r"(SDG-\d+ )?(.*)")


def ranks_of(words):
    """The ranks of "0-2, 5"."""
    for word in words.split(", "):
        first, _, last = word.partition("-")
        yield from range(int(first), int(last or first) + 1)


def rank_lines(text):
    """With a line for each rank: "sundog: SDG-401 [rank 3] ..."; further lines
    of a message are there once."""
    def each(match):
        count, words, code, rest = match.groups()
        ranks = range(int(count)) if count else ranks_of(words)
        return "\n".join(f"sundog: {code or ''}[rank {r}] {rest}"
                         for r in ranks)
    return HEAD.sub(each, text)
