// SPDX-License-Identifier: Apache-2.0
// The pieces of a tensor over its domain, with their halos.
const nameOf = (tensor, d) => tensor.names[d] || "dim " + d;
const isSplit = (tensor, d) =>
  tensor.pieces.some(p => p.extent[d] !== tensor.whole[d]);
// Samples, channels and heads are no directions of the domain.
function isSpatial(tensor, d) {
  const [a, b] = tensor.names;
  return !(a === "N" && b === "C" && d < 2) &&
    !["BATCH", "HEADS"].includes(tensor.names[d]);
}
// The dimensions that are drawn: directions of the domain, split ones first,
// then the longest; one only is a strip. Each piece of other split dimensions
// has a drawing of its own.
function axesOf(tensor) {
  const long = tensor.whole.map((n, d) => d).filter(d => tensor.whole[d] > 1);
  let dims = long.filter(d => isSpatial(tensor, d));
  if (!dims.length) dims = long.length ? long : [0];
  dims.sort((a, b) => isSplit(tensor, b) - isSplit(tensor, a) ||
    tensor.whole[b] - tensor.whole[a]);
  const two = dims.slice(0, 2).sort((a, b) => a - b);
  const x = two.pop(), y = two.length ? two[0] : -1;
  return {x, y, apart: long.filter(d => d !== x && d !== y && isSplit(tensor, d))};
}
const range = (piece, d) => piece.extent[d] === 0 ? "none" :
  piece.extent[d] === 1 ? String(piece.first[d]) :
  piece.first[d] + "…" + (piece.first[d] + piece.extent[d] - 1);
function boxText(tensor, piece) {
  return tensor.whole.map((n, d) => piece.extent[d] === n ? null :
    nameOf(tensor, d) + " " + range(piece, d)).filter(t => t).join(", ");
}
function haloText(tensor, piece) {
  return tensor.whole.map((n, d) =>
    piece.halo_low[d] || piece.halo_high[d]
      ? nameOf(tensor, d) + " " + piece.halo_low[d] + " before, " +
        piece.halo_high[d] + " after" : null).filter(t => t).join("; ");
}
// Copies of a piece on several ranks are drawn once.
function piecesOf(tensor) {
  const found = new Map();
  for (const piece of tensor.pieces) {
    const key = piece.first + ":" + piece.extent;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(piece);
  }
  return [...found.values()];
}
const ranksText = list => (list.length > 1 ? "Ranks " : "Rank ") +
  list.map(p => p.rank).join(", ");
function pieceText(tensor, list) {
  const halo = haloText(tensor, list[0]);
  return ranksText(list) + ": " + (boxText(tensor, list[0]) || "all") + " (" +
    list[0].extent.join(" × ") + "), " + bytes(list[0].bytes) +
    (halo ? ". Halo: " + halo : "");
}
function pieceShow(tensor, list) {
  const piece = list[0];
  const lines = tensor.whole.map((n, d) => make("tr", null,
    make("th.text", {scope: "row"}, nameOf(tensor, d)),
    make("td", null, range(piece, d)),
    make("td", null, piece.extent[d] + " of " + n),
    make("td", null, piece.halo_low[d] || piece.halo_high[d]
      ? piece.halo_low[d] + " + " + piece.halo_high[d] : "–")));
  const told = list.map(p => {
    const from = Object.entries(p.neighbours).sort((a, b) => a[0] - b[0]);
    return make("div", null,
      p.received_bytes ? make("p", null, (list.length > 1 ? "Rank " + p.rank +
        " needed " : "Needed of others in the run: ") + bytes(p.received_bytes)) : null,
      ...from.map(([rank, n]) => make("div.soft", null, bytes(n) + " from rank " + rank)));
  });
  at("piece").replaceChildren(make("h3", null, ranksText(list)),
    make("table", null, make("thead", null, make("tr", null,
      ...["", "elements", "extent", "halo"].map((name, i) =>
        make(i ? "th" : "th.text", {scope: "col"}, name)))),
      make("tbody", null, ...lines)),
    make("p", null, bytes(piece.bytes) + " of " + bytes(tensor.bytes)), ...told);
}
// One drawing: the pieces that have the same parts of the dimensions apart.
function panelDraw(tensor, axes, groups, width, most) {
  const strip = axes.y < 0, nx = tensor.whole[axes.x];
  const ny = strip ? 1 : tensor.whole[axes.y];
  const left = strip ? 1 : 44, top = 20, rest = 2;
  let w = width - left - rest, h = strip ? 64 : w * Math.min(Math.max(ny / nx, 0.08), 4);
  const exact = strip || (ny / nx >= 0.08 && ny / nx <= 4);
  if (!strip && h > most) { w = Math.max(w * most / h, 40); h = most; }
  const sx = w / nx, sy = h / ny;
  const total = Math.max(left + w + rest, left + 70);
  const svg = shape("svg", {viewBox: `0 0 ${total} ${h + top + rest}`,
    width: total, height: h + top + rest, role: "group",
    "aria-label": "pieces of the ranks"});
  svg.append(shape("text", {x: left, y: 13, class: "small"},
    nameOf(tensor, axes.x) + " " + nx + " →"));
  if (!strip) {
    svg.append(shape("text", {x: 0, y: top + 10, class: "small"}, nameOf(tensor, axes.y)));
    svg.append(shape("text", {x: 0, y: top + 24, class: "small"}, ny + " ↓"));
  }
  const bands = [], texts = [], rects = [];
  const lows = d => [...new Set(groups.map(g => g[0].first[d]))].sort((a, b) => a - b);
  const xs = lows(axes.x), ys = strip ? [0] : lows(axes.y);
  for (const list of groups) {
    const piece = list[0], y = strip ? 0 : piece.first[axes.y];
    const low = d => d < 0 ? 0 : piece.halo_low[d];
    const high = d => d < 0 ? 0 : piece.halo_high[d];
    const x0 = left + piece.first[axes.x] * sx, y0 = top + y * sy;
    const pw = piece.extent[axes.x] * sx, ph = strip ? h : piece.extent[axes.y] * sy;
    const odd = xs.indexOf(piece.first[axes.x]) + (strip ? 0 : ys.indexOf(y));
    const rect = shape("rect", {x: x0, y: y0, width: pw, height: ph,
      class: "piece", tabindex: -1, role: "button", "data-rank": piece.rank,
      "aria-label": pieceText(tensor, list),
      style: "fill:var(--piece-" + (odd % 2 ? "b" : "a") + ")"});
    rect.append(shape("title", {}, pieceText(tensor, list)));
    const own = [];
    // At least 2 pixels wide, so that one row of many is seen.
    const band = (x, y, width, height) => {
      own.push(shape("rect", {class: "band", x, y, width, height}));
      bands.push(own[own.length - 1]);
    };
    const thick = (n, s) => Math.max(n * s, 2);
    if (low(axes.y)) {
      const t = thick(low(axes.y), sy);
      band(x0, y0 - t, pw, t);
    }
    if (high(axes.y)) band(x0, y0 + ph, pw, thick(high(axes.y), sy));
    if (low(axes.x)) {
      const t = thick(low(axes.x), sx);
      band(x0 - t, y0, t, ph);
    }
    if (high(axes.x)) band(x0 + pw, y0, thick(high(axes.x), sx), ph);
    const outline = shape("rect", {class: "need", x: x0 - low(axes.x) * sx,
      y: y0 - low(axes.y) * sy, width: pw + (low(axes.x) + high(axes.x)) * sx,
      height: ph + (low(axes.y) + high(axes.y)) * sy});
    const show = () => {
      for (const other of at("mesh").querySelectorAll(".on, .own"))
        other.classList.remove("on", "own");
      at("mesh").querySelectorAll(".need").forEach(n => n.remove());
      at("mesh").classList.add("chosen");
      rect.classList.add("on");
      own.forEach(b => b.classList.add("own"));
      svg.append(outline);
      pieceShow(tensor, list);
    };
    for (const name of ["mouseenter", "click", "focus"])
      rect.addEventListener(name, show);
    rects.push(rect);
    const ranks = list.map(p => p.rank).join(", ");
    const label = (pw > 58 ? (list.length > 1 ? "ranks " : "rank ") : "") + ranks;
    if (ph >= 14 && pw >= 7 * label.length + 4)
      texts.push(shape("text", {x: x0 + pw / 2, y: y0 + ph / 2 + 4,
        "text-anchor": "middle", "pointer-events": "none"}, label));
    const size = strip ? String(piece.extent[axes.x]) :
      piece.extent[axes.y] + " × " + piece.extent[axes.x];
    if (ph >= 44 && pw >= 7 * size.length + 6)
      texts.push(shape("text", {x: x0 + pw / 2, y: y0 + ph / 2 + 19, class: "small",
        "text-anchor": "middle", "pointer-events": "none"}, size));
  }
  svg.append(...rects, ...bands, ...texts);
  return {svg, rects, exact};
}
function tensorDraw(tensor) {
  const axes = axesOf(tensor), panels = new Map();
  for (const list of piecesOf(tensor)) {
    const key = axes.apart.map(d => nameOf(tensor, d) + " " + range(list[0], d)).join(", ");
    if (!panels.has(key)) panels.set(key, []);
    panels.get(key).push(list);
  }
  const room = Math.max(220, at("mesh").clientWidth || 700);
  const columns = Math.min(panels.size, Math.max(1, Math.floor(room / 220)));
  const width = Math.floor((room - 16 * (columns - 1)) / columns);
  const most = panels.size > 1 ? 220 : 420;
  const drawn = [...panels].map(([key, groups]) => [key,
    panelDraw(tensor, axes, groups, width, most)]);
  at("mesh").classList.remove("chosen");
  at("mesh").replaceChildren(...drawn.map(([key, panel]) => make("figure", null,
    key ? make("figcaption", null, key) : null, panel.svg)));
  keysMove(drawn.flatMap(([, panel]) => panel.rects));
  const notes = [];
  if (!drawn[0][1].exact)
    notes.push("Not to scale: " + nameOf(tensor, axes.y) + " : " +
      nameOf(tensor, axes.x) + " is " + tensor.whole[axes.y] + " : " +
      tensor.whole[axes.x] + ".");
  if (axes.apart.length)
    notes.push("Also split over " + axes.apart.map(d => nameOf(tensor, d)).join(", ") +
      ": a drawing for each part.");
  at("mesh-note").textContent = notes.join(" ");
  // The piece that needs most, until one is chosen.
  const needs = list => list.reduce((sum, p) => sum + p.received_bytes, 0);
  const groups = [...panels.values()].flat();
  pieceShow(tensor, groups.reduce((a, b) => needs(b) > needs(a) ? b : a));
  at("piece").append(make("p.note", null, "Point at or tap a piece, or go by " +
    "arrow keys, for its extents, bytes and neighbours."));
  piecesTable(tensor);
}
// One piece takes part in the order of the Tab key, the others follow by arrows.
function keysMove(rects) {
  if (rects.length) rects[0].setAttribute("tabindex", 0);
  rects.forEach((rect, i) => rect.addEventListener("keydown", e => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    const next = step && rects[i + step];
    if (!next) return;
    e.preventDefault();
    rect.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  }));
}
function piecesTable(tensor) {
  const dims = tensor.whole.map((n, d) => d).filter(d => isSplit(tensor, d));
  tableMake("pieces", [["Rank", true], ...dims.flatMap(d =>
    [[nameOf(tensor, d)], ["halo"]]), ["Bytes"], ["Needed in the run"]],
    [...tensor.pieces].sort((a, b) => a.rank - b.rank).map(p => make("tr", null,
      rowHead(String(p.rank)), ...dims.flatMap(d => [make("td", null, range(p, d)),
        make("td", null, p.halo_low[d] + " + " + p.halo_high[d])]),
      make("td", null, bytes(p.bytes)), make("td", null, bytes(p.received_bytes)))));
}
if (report.tensors.length) {
  at("domain").hidden = false;
  report.tensors.forEach((tensor, i) => at("tensor").append(make("option",
    {value: i}, tensor.whole.join(" × ") + ": " + tensor.split + " (" +
    several(tensor.calls, "use", "uses") + ")")));
  let drawn = 0;
  const show = () => tensorDraw(report.tensors[at("tensor").value || 0]);
  at("tensor").addEventListener("change", show);
  // A phone's bars change the height only.
  addEventListener("resize", () => {
    if (drawn !== innerWidth) show();
    drawn = innerWidth;
  });
  drawn = innerWidth;
  show();
}
