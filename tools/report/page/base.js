// SPDX-License-Identifier: Apache-2.0
// What all parts of the page use, and its head.
const report = JSON.parse(document.getElementById("report").textContent);
const at = id => document.getElementById(id);
// Makes an element: its class after a dot, members, children.
function make(name, members, ...children) {
  const [tag, kind] = name.split(".");
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  for (const [key, value] of Object.entries(members || {}))
    element.setAttribute(key, value);
  element.append(...children.filter(child => child !== null));
  return element;
}
function shape(name, members, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(members))
    element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
const colour = name =>
  getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const count = n => n.toLocaleString("en-US");
function bytes(n) {
  if (n < 1e7) return count(n) + " B";
  const unit = n < 1e9 ? ["MB", 1e6] : n < 1e12 ? ["GB", 1e9] : ["TB", 1e12];
  return (n / unit[1]).toPrecision(4) + " " + unit[0];
}
function span(ns) {
  const a = Math.abs(ns);
  if (a < 1e3) return Math.round(ns) + " ns";
  const unit = a < 1e6 ? ["µs", 1e3] : a < 1e9 ? ["ms", 1e6] : ["s", 1e9];
  const n = ns / unit[1];
  return (Math.abs(n) < 999.5 ? n.toPrecision(3) : count(Math.round(n))) + " " +
    unit[0];
}
const percent = share => (100 * share).toFixed(share < 0.1 ? 1 : 0) + " %";
const product = list => list.reduce((a, b) => a * b, 1);
const several = (n, one, more) => count(n) + " " + (n === 1 ? one : more);
const facts = report.facts;

// ---- tables ----
const number = (value, text, name) => make(text === "–" ? "td.none" : "td",
  {"data-value": value,
  "data-name": name, title: value === null ? "" : count(value)}, text);
const text = (...children) => make("td.text", null, ...children);
const rowHead = (...children) => make("th.text", {scope: "row"}, ...children);
// Heads are [name, is text]. Roles stay where rows are shown as cards.
function tableMake(id, heads, lines) {
  at(id).replaceChildren(
    make("thead", null, make("tr", {role: "row"}, ...heads.map(([name, isText]) =>
      make(isText ? "th.text" : "th", {scope: "col", role: "columnheader"}, name)))),
    make("tbody", null, ...lines));
  at(id).setAttribute("role", "table");
  for (const line of lines) {
    line.setAttribute("role", "row");
    for (const cell of line.children)
      cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
  }
}

// ---- head ----
const program = (facts.command[0] || "").split("/").pop();
at("title").textContent = program || "a run";
document.title = "sundog: " + (program || "a run");
at("subtitle").textContent = several(facts.ranks, "rank", "ranks") + ", mesh " +
  facts.mesh.map(m => m.axis + "=" + m.ranks).join(" × ") + ", " +
  facts.began.replace("T", " ").replace("Z", " UTC");
for (const text of facts.warnings)
  at("warnings").append(make("p.warn", null, text));
// Ranks without times of their streams may have waited, too.
const ofDevice = report.ranks.filter(r => r.device_ns > 0);
const unsure = ofDevice.length > 0 && ofDevice.length < report.ranks.length;
function tile(value, name, kind) {
  at("tiles").append(make("div.tile" + (kind ? " " + kind : ""), null,
    make("b", null, value), make("span", null, name)));
}
const received = report.ranks.reduce((sum, r) => sum + r.received_bytes, 0);
const waits = (unsure ? ofDevice : report.ranks).map(r => r.wait_share);
tile(span(facts.seconds * 1e9), "from the first call to the last");
tile(count(report.ranks.reduce((most, r) => Math.max(most, r.calls), 0)),
     "calls of a rank that sundog counted");
tile(bytes(received), "received by all ranks");
if (report.ranks.length > 1) {
  tile(percent(waits.reduce((a, b) => a + b, 0) / waits.length),
       "of the time waiting, on average");
  tile(report.slowest ? "rank " + report.slowest.rank :
       unsure ? "not known" : "no rank", unsure ? "which rank holds the others up" :
       "holds the others up", report.slowest ? "slow" : "");
}
at("slowest").textContent = report.slowest
  ? "Rank " + report.slowest.rank + " is the slowest: " + report.slowest.why + "."
  : unsure ? "Which rank holds the others up is not known: some ranks left no times." :
  report.ranks.length > 1 ? "No rank holds the others up." : "";
at("slowest").className = report.slowest ? "slow" : "soft";

// ---- advice ----
for (const advice of report.advice || []) {
  at("advices").hidden = false;
  at("advice").append(make("div.advice", null, make("p", null, advice.text),
    advice.where ? make("p", null, advice.where) : null,
    advice.line ? make("p", null, make("code", null, advice.line)) : null,
    advice.command ? make("p", null, "Before the next run, for each input file: ",
      make("code", null, advice.command)) : null,
    advice.effect ? make("p.note", null, advice.effect) : null));
}

// What is folded on a screen is open on paper.
const folded = [];
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    folded.push(details);
    details.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const details of folded.splice(0)) details.open = false;
});
