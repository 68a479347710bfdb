// SPDX-License-Identifier: Apache-2.0
// The events of all ranks on a canvas, in levels of detail.
const names = report.timeline.events;
const lanesOf = {call: 1, compute: 1, copy: 1, wait: 1, transfer: 2, sum: 2,
                 host: 0, agreement: 0, gather: 0};
const heights = [8, 16, 8], rowHeight = 58, head = 24;
const BLOCK = 32;
// A lane: events sorted by their begins, and levels of blocks of BLOCK events
// of the level below, each with its begin, end, busy time and busiest kind.
function laneMake() {
  return {begin: [], end: [], kind: [], call: [], type: []};
}
// The time of each event without that of the events within it.
function ownTimes({begin, end}) {
  const own = new Float64Array(begin.length), around = [];
  for (let i = 0; i < begin.length; i++) {
    while (around.length && end[around[around.length - 1]] <= begin[i]) around.pop();
    own[i] = end[i] - begin[i];
    const outer = around[around.length - 1];
    if (outer !== undefined)
      own[outer] = Math.max(0, own[outer] - (Math.min(end[i], end[outer]) - begin[i]));
    around.push(i);
  }
  return own;
}
function levelMake(lane) {
  const n = Math.ceil(lane.begin.length / BLOCK);
  const own = lane.busy || ownTimes(lane);
  const level = {begin: new Float64Array(n), end: new Float64Array(n),
    kind: new Uint8Array(n), busy: new Float64Array(n)};
  for (let b = 0; b < n; b++) {
    const share = new Float64Array(names.length);
    let end = -Infinity, busy = 0;
    const last = Math.min((b + 1) * BLOCK, lane.begin.length);
    for (let i = b * BLOCK; i < last; i++) {
      share[lane.kind[i]] += names[lane.kind[i]] === "call" ? own[i] / 1e3 : own[i];
      busy += own[i];
      if (lane.end[i] > end) end = lane.end[i];
    }
    level.begin[b] = lane.begin[b * BLOCK];
    level.end[b] = end;
    level.busy[b] = busy;
    level.kind[b] = share.indexOf(Math.max(...share));
  }
  return level;
}
const rows = report.timeline.ranks.map(rank => {
  const lanes = [laneMake(), laneMake(), laneMake()];
  let time = 0, call = 0;
  for (let i = 0; i < rank.event.length; i++) {
    time += rank.at[i];
    call += rank.call[i];
    const lane = lanes[lanesOf[names[rank.event[i]]]];
    lane.begin.push(time);
    lane.end.push(time + rank.took[i]);
    lane.kind.push(rank.event[i]);
    lane.call.push(call);
    lane.type.push(rank.kind[i]);
  }
  return {rank: rank.rank, lanes: lanes.map(lane => {
    const levels = [{begin: Float64Array.from(lane.begin),
      end: Float64Array.from(lane.end), kind: Uint8Array.from(lane.kind)}];
    while (levels[levels.length - 1].begin.length > 4 * BLOCK)
      levels.push(levelMake(levels[levels.length - 1]));
    return {levels, call: lane.call, type: lane.type};
  })};
});
const whole = Math.max(1, facts.seconds * 1e9);
let from = 0, to = whole, palette = {}, pending = false, chosen = null;
const canvas = at("canvas"), pen = canvas.getContext("2d");
const labelWidth = () => canvas.clientWidth < 500 ? 34 : 62;
function paletteRead() {
  palette = {ink: colour("ink"), soft: colour("soft"), line: colour("line"),
             path: colour("path"), slow: colour("slow")};
  palette.kind = names.map(name => colour(name));
}
// The first index whose number is not before `time`, of a sorted list.
function firstAfter(list, time) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}
// Until when an event or those before it last: no event before the first whose
// number is not before a time is seen at that time.
function untilOf(level) {
  if (!level.until) {
    level.until = Float64Array.from(level.end);
    for (let i = 1; i < level.until.length; i++)
      level.until[i] = Math.max(level.until[i], level.until[i - 1]);
  }
  return level.until;
}
// The finest level of which fewer events begin in sight than twice the pixels.
// Those that began before are few, however long they are.
function levelOf(lane) {
  const most = 2 * canvas.clientWidth + 2 * BLOCK;
  return Math.max(0, lane.levels.findIndex((level, n) =>
    n === lane.levels.length - 1 ||
    firstAfter(level.begin, to) - firstAfter(level.begin, from) < most));
}
function laneDraw(lane, y, height, x0, scale) {
  const n = levelOf(lane), level = lane.levels[n], blocks = lane.levels[n + 1];
  const first = firstAfter(untilOf(level), from);
  const last = firstAfter(level.begin, to);
  for (let i = first; i < last; i++) {
    // Behind a long event are many that have ended: whole blocks of them.
    while (blocks && i % BLOCK === 0 && blocks.end[i / BLOCK] < from) i += BLOCK;
    if (i >= last) break;
    if (level.end[i] < from) continue;
    const begin = Math.max(level.begin[i], from), end = Math.min(level.end[i], to);
    const w = Math.max((end - begin) * scale, 0.6);
    pen.globalAlpha = level.busy
      ? Math.max(0.25, Math.min(1, level.busy[i] / (level.end[i] - level.begin[i] || 1)))
      : 1;
    pen.fillStyle = palette.kind[level.kind[i]];
    pen.fillRect(x0 + (begin - from) * scale, y, w, height);
  }
  pen.globalAlpha = 1;
}
function tick(range, width) {
  const rough = range / Math.max(2, width / 110);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  return [1, 2, 5, 10].map(m => m * power).find(step => step >= rough);
}
function tickText(ns, step) {
  const unit = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] :
    step >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  return count(Math.round(ns / unit[1])) + " " + unit[0];
}
const place = new Map(rows.map((row, r) => [row.rank, r]));
const pathY = rank => head + place.get(rank) * rowHeight + rowHeight - 9;
// The path on each rank, and where it goes from one to the other.
function pathDraw(x0, scale) {
  const seen = report.critical.segments.filter(([, begin, end]) =>
    end >= from && begin <= to);
  const x = time => x0 + (Math.min(Math.max(time, from), to) - from) * scale;
  pen.fillStyle = palette.path;
  seen.forEach(([rank, begin, end], i) => {
    const y = pathY(rank), next = seen[i + 1];
    pen.fillRect(x(begin), y, Math.max(x(end) - x(begin), 1), 3);
    // Many of them hide the events; a longer look shows them.
    if (!next || next[0] === rank || seen.length > canvas.clientWidth / 24) return;
    const other = pathY(next[0]);
    pen.fillRect(x(end) - 0.5, Math.min(y, other), 1, Math.abs(y - other) + 3);
  });
}
function chosenDraw(x0, scale) {
  if (!chosen) return;
  const {r, lane, begin, end} = chosen;
  const y = head + r * rowHeight + 8 +
    heights.slice(0, lane).reduce((sum, h) => sum + h + 3, 0);
  pen.strokeStyle = palette.ink;
  pen.lineWidth = 1.5;
  pen.strokeRect(x0 + (begin - from) * scale, y - 1,
    Math.max((end - begin) * scale, 2), heights[lane] + 2);
}
function gridDraw(width, height, x0, scale) {
  const step = tick(to - from, width - x0);
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const x = x0 + (t - from) * scale;
    pen.fillStyle = palette.line;
    pen.fillRect(x, head - 6, 1, height - head + 6);
    pen.fillStyle = palette.soft;
    pen.textAlign = x > width - 40 ? "right" : x < x0 + 30 ? "left" : "center";
    pen.fillText(tickText(t, step), x, 8);
  }
}
function labelsDraw(width, x0) {
  rows.forEach((row, r) => {
    const y = head + r * rowHeight, slow = report.slowest &&
      report.slowest.rank === row.rank;
    pen.fillStyle = palette.line;
    pen.fillRect(0, y, width, 1);
    pen.textAlign = "left";
    pen.fillStyle = slow ? palette.slow : palette.ink;
    pen.fillText(x0 < 50 ? String(row.rank) : "rank " + row.rank, 2, y + rowHeight / 2 - (slow ? 7 : 0));
    if (slow) pen.fillText(x0 < 50 ? "slow" : "slowest", 2, y + rowHeight / 2 + 8);
  });
}
function draw() {
  pending = false;
  const width = canvas.clientWidth, height = head + rows.length * rowHeight;
  // Browsers draw nothing on a canvas that is larger.
  const dots = Math.min(devicePixelRatio || 1, 32000 / height,
    Math.sqrt(16e6 / Math.max(1, width * height)));
  canvas.style.height = height + "px";
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
  }
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.clearRect(0, 0, width, height);
  const x0 = labelWidth(), room = width - x0, scale = room / (to - from);
  pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  pen.textBaseline = "middle";
  gridDraw(width, height, x0, scale);
  labelsDraw(width, x0);
  pen.save();
  pen.beginPath();
  pen.rect(x0, 0, room, height);
  pen.clip();
  rows.forEach((row, r) => {
    let y = head + r * rowHeight + 8;
    row.lanes.forEach((lane, l) => {
      laneDraw(lane, y, heights[l], x0, scale);
      y += heights[l] + 3;
    });
  });
  pathDraw(x0, scale);
  chosenDraw(x0, scale);
  pen.restore();
}
function redraw() {
  if (!pending) requestAnimationFrame(draw);
  pending = true;
}
function move(begin, range) {
  const most = Math.min(whole, Math.max(200, range));
  from = Math.max(0, Math.min(whole - most, begin));
  to = from + most;
  redraw();
}
function zoom(factor, centre) {
  const range = Math.min(whole, Math.max(200, (to - from) * factor));
  move(centre - (centre - from) / (to - from) * range, range);
}
const timeAt = x => from + (x - labelWidth()) / (canvas.clientWidth - labelWidth()) * (to - from);
function eventAt(x, y) {
  const r = Math.floor((y - head) / rowHeight), row = rows[r], time = timeAt(x);
  if (!row || x < labelWidth()) return null;
  const reach = (to - from) / canvas.clientWidth * 3;
  let inside = (y - head) % rowHeight - 8, lane = 0;
  while (lane < 2 && inside > heights[lane] + 2) inside -= heights[lane++] + 3;
  const level = row.lanes[lane].levels[0];
  let best = null, size = Infinity;
  for (let i = firstAfter(level.begin, time + reach) - 1; i >= 0; i--) {
    if (untilOf(level)[i] < time - reach) break;
    const took = level.end[i] - level.begin[i];
    if (level.end[i] >= time - reach && took < size) { best = i; size = took; }
    if (best !== null && time - level.begin[i] > 1e3 * reach) break;
  }
  return best === null ? null : {r, lane, i: best};
}
function eventShow(found) {
  const before = chosen;
  chosen = null;
  at("event").textContent = "";
  if (found) {
    const {r, lane, i} = found, own = rows[r].lanes[lane], level = own.levels[0];
    const kind = report.kinds[own.type[i]], call = own.call[i];
    chosen = {r, lane, i, begin: level.begin[i], end: level.end[i]};
    at("event").textContent = "Rank " + rows[r].rank + ", " + names[level.kind[i]] +
      " (" + meaning[names[level.kind[i]]] + ")" +
      (call ? ", call " + count(call) : "") + ": " +
      (kind ? kind.entry + (kind.strategy ? " [" + kind.strategy + "]" : "") + ", " : "") +
      span(chosen.end - chosen.begin) + ", at " + span(chosen.begin);
  }
  if (before || chosen) redraw();
}
const eventSay = (x, y) => eventShow(eventAt(x, y));
const fingers = new Map();
canvas.addEventListener("pointerdown", e => {
  fingers.set(e.pointerId, e.offsetX);
  canvas.setPointerCapture(e.pointerId);
  eventSay(e.offsetX, e.offsetY);
});
canvas.addEventListener("pointermove", e => {
  if (!fingers.has(e.pointerId)) { eventSay(e.offsetX, e.offsetY); return; }
  const before = fingers.get(e.pointerId), others = [...fingers.keys()]
    .filter(id => id !== e.pointerId);
  if (others.length) {
    const other = fingers.get(others[0]);
    const was = Math.abs(before - other), is = Math.abs(e.offsetX - other);
    if (was > 8 && is > 8) zoom(was / is, timeAt((e.offsetX + other) / 2));
  } else {
    move(from + (before - e.offsetX) * (to - from) /
      (canvas.clientWidth - labelWidth()), to - from);
  }
  fingers.set(e.pointerId, e.offsetX);
});
for (const name of ["pointerup", "pointercancel"])
  canvas.addEventListener(name, e => fingers.delete(e.pointerId));
canvas.addEventListener("pointerleave", e => {
  if (e.pointerType === "mouse") eventShow(null);
});
canvas.addEventListener("wheel", e => {
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
    move(from + (e.deltaX || e.deltaY) * (to - from) / canvas.clientWidth, to - from);
  else
    zoom(Math.exp(e.deltaY * 0.002), timeAt(e.offsetX));
  e.preventDefault();
}, {passive: false});
// Goes to the event before or behind the chosen one in its row; in another row,
// to the one about which that row is at the same time.
function eventStep(step) {
  if (!chosen) { rowStep(1); return; }
  const {r, lane, i} = chosen;
  if (i + step >= 0 && i + step < rows[r].lanes[lane].levels[0].begin.length)
    eventGo({r, lane, i: i + step});
}
function rowStep(step) {
  const time = chosen ? chosen.begin : (from + to) / 2;
  const last = 3 * rows.length;
  let row = chosen ? 3 * chosen.r + chosen.lane : -1;
  for (row += step; row >= 0 && row < last; row += step) {
    const lane = row % 3, r = (row - lane) / 3;
    const {begin} = rows[r].lanes[lane].levels[0];
    if (!begin.length) continue;
    eventGo({r, lane, i: Math.max(0, firstAfter(begin, time + 1) - 1)});
    return;
  }
}
// Shows an event, and brings it into sight.
function eventGo(found) {
  eventShow(found);
  if (chosen.begin < from || chosen.begin > to)
    move(chosen.begin - (to - from) / 2, to - from);
}
canvas.addEventListener("keydown", e => {
  const centre = (from + to) / 2, range = to - from;
  const acts = {ArrowLeft: () => move(from - range / 8, range),
    ArrowRight: () => move(from + range / 8, range),
    ArrowUp: () => rowStep(-1), ArrowDown: () => rowStep(1),
    p: () => eventStep(-1), n: () => eventStep(1),
    "+": () => zoom(0.5, centre), "=": () => zoom(0.5, centre),
    "-": () => zoom(2, centre), Home: () => move(0, range),
    End: () => move(whole, range), "0": () => move(0, whole)};
  if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
  acts[e.key]();
  e.preventDefault();
});
at("in").addEventListener("click", () => zoom(0.5, (from + to) / 2));
at("out").addEventListener("click", () => zoom(2, (from + to) / 2));
at("fit").addEventListener("click", () => move(0, whole));
// Not of hosts in their first call, where the ranks meet and connect.
function longestWait() {
  let best = null, most = 0;
  rows.forEach((row, r) => row.lanes.forEach(({levels: [level], call}, lane) => {
    for (let i = 0; i < level.begin.length; i++) {
      const name = names[level.kind[i]], took = level.end[i] - level.begin[i];
      if (took > most && (name === "wait" || name === "agreement" && call[i] > 1)) {
        most = took;
        best = {r, lane, i};
      }
    }
  }));
  return best && {found: best, took: most};
}
at("longest").hidden = !longestWait();
at("longest").addEventListener("click", () => {
  const {found, took} = longestWait();
  const {begin} = rows[found.r].lanes[found.lane].levels[0];
  move(begin[found.i] - took / 2, 2 * took);
  eventShow(found);
});
const meaning = {call: "a call on the device", compute: "the real function",
  copy: "copies and packing", transfer: "messages", sum: "sums over ranks",
  wait: "the stream waits", host: "the host in a call",
  agreement: "the host waits for ranks", gather: "a tensor is fetched"};
const used = new Set(rows.flatMap(row => row.lanes.flatMap(lane =>
  [...new Set(lane.levels[0].kind)])).map(kind => names[kind]));
const swatch = (name, text) => make("span", null,
  make("i", {style: "background:var(--" + name + ")"}), text);
["Host:", "Program's stream:", "Transfers:"].forEach((title, lane) => {
  const own = names.filter(name => lanesOf[name] === lane && used.has(name));
  if (own.length)
    at("legend").append(make("div", null, make("b", null, title),
      ...own.map(name => swatch(name, meaning[name]))));
});
if (report.critical.segments.length)
  at("legend").append(make("div", null, make("span", null,
    make("i.path", {style: "background:var(--path)"}),
    "critical path: what the end of the run waited for" +
      (report.critical.complete ? "" : "; short parts of it are drawn as one"))));
if (report.timeline.grain_ns)
  at("legend").append(make("div", null, "Events shorter than " +
    span(report.timeline.grain_ns) + " may be several."));
addEventListener("resize", redraw);
for (const query of ["(prefers-color-scheme: dark)", "print"])
  matchMedia(query).addEventListener("change", () => { paletteRead(); draw(); });
addEventListener("beforeprint", () => { paletteRead(); draw(); });
paletteRead();
draw();
