// SPDX-License-Identifier: Apache-2.0
// Tables of ranks, kinds of calls and causes, and the run's facts.
const shares = [["compute", "computing", r => r.real_ns],
  ["copy", "copies", r => r.copy_ns], ["wait", "the stream waits", r => r.wait_ns],
  ["agreement", "the host waits for ranks", r => r.agreed_ns]];
// A bar for the stream, and one for the host, which may wait at the same time.
function stack(r) {
  const parts = shares.map(([name, what, ns]) => [name, what, ns(r)]);
  const bar = list => make("div.stack", null,
    ...list.map(([name, what, ns]) => make("i", {style: "background:var(--" +
      name + ");width:" + Math.min(100, 100 * ns / (facts.seconds * 1e9 || 1)) + "%",
      title: what + " " + span(ns)})));
  return make("div", {role: "img", "aria-label":
      parts.map(([, what, ns]) => what + " " + span(ns)).join(", ")},
    bar(parts.slice(0, 3)), bar(parts.slice(3)));
}
at("shares").append(...shares.map(([name, what]) => swatch(name, what)));
const slow = r => report.slowest && report.slowest.rank === r.rank;
tableMake("ranks", [["Rank", true], ["Of the run", true], ["Computing"],
  ["Copies"], ["Waiting"], ["Received"], ["On the critical path"]],
  report.ranks.map((r, i) => make("tr", {"data-rank": r.rank},
    rowHead("rank " + r.rank + (facts.hosts.length > 1 ? " on " + r.host : ""),
      slow(r) ? make("span.slow", null, " slowest") : null),
    text(stack(r)),
    number(r.real_ns, r.device_ns ? span(r.real_ns) : "–", "Computing"),
    number(r.copy_ns, r.device_ns ? span(r.copy_ns) : "–", "Copies"),
    number(r.wait_ns + r.agreed_ns,
           unsure && !r.device_ns ? "–" : percent(r.wait_share), "Waiting"),
    number(r.received_bytes, bytes(r.received_bytes), "Received"),
    number(report.critical.rank_ns[i], span(report.critical.rank_ns[i]),
           "On the critical path"))));
const timed = k => k.device_ns || k.host_ns;
const kinds = report.kinds.filter(k => k.all_calls > 0).sort((a, b) =>
  timed(b) - timed(a));
tableMake("kinds", [["Call", true], ["Calls"], ["Time"], ["Waiting"],
  ["Received"], ["Formula"], ["Sums"]],
  kinds.map(k => make("tr", {"data-entry": k.entry, "data-rule": k.rule,
      "data-strategy": k.strategy},
    rowHead(make("code", null, k.entry), make("span.why", null,
      (k.rule === "-" ? "" : "[" + k.rule + "] ") + k.strategy +
      (k.why.length ? ": " + k.why[0] : "")),
      ...k.why.slice(1, 4).map(why => make("span.why", null, "or: " + why)),
      k.why.length > 4 ? make("span.why", null, "and " + (k.why.length - 4) +
        " more reasons") : null),
    number(k.all_calls, count(k.all_calls), "Calls of all ranks"),
    number(timed(k), timed(k) ? span(timed(k)) : "–", k.device_ns ? "Time" :
      "Time on the host"),
    number(k.wait_ns, timed(k) ? percent(k.wait_share) : "–", "Waiting"),
    number(k.received_bytes, bytes(k.received_bytes), "Received"),
    number(k.formula_bytes, k.formula_bytes === null ? "–" : bytes(k.formula_bytes),
           "Formula"),
    number(k.sum_bytes, k.sum_bytes ? bytes(k.sum_bytes) : "–", "Sums"))));
const causeNames = {halo: "Halos of windows", attention: "Attention",
  product: "Products of matrices", gather: "Gathered for a copy or another call",
  parameters: "Parameters from the first rank",
  redistribution: "Other placements of an operand"};
const causes = Object.entries(report.received).filter(([, n]) => n > 0)
  .sort((a, b) => b[1] - a[1]);
const most = Math.max(1, ...causes.map(([, n]) => n));
tableMake("causes", [["Cause", true], ["", true], ["Received"]],
  causes.map(([name, n]) => make("tr", {"data-cause": name},
    rowHead(causeNames[name] || name),
    text(make("div.meter", null, make("i", {style: "width:" + 100 * n / most + "%"}))),
    number(n, bytes(n), "Received"))));
if (!causes.length)
  at("causes").replaceChildren(make("tbody", null, make("tr", null,
    text("No rank received anything."))));
const sums = report.ranks.reduce((sum, r) => sum + r.sum_bytes, 0);
const compared = report.ranks.reduce((sum, r) => sum + r.compared_bytes, 0);
const beside = [sums ? "Results of sums over ranks: " + bytes(sums) + "." : "",
  compared ? "Read to compare values between the ranks: " + bytes(compared) + "." : ""]
  .filter(t => t).join(" ");
if (beside) at("causes").after(make("p.note", null, beside));

// ---- facts ----
function fact(name, ...values) {
  at("facts").append(make("dt", null, name), make("dd", null, ...values));
}
// Characters that are not seen, or that turn those after them around.
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const escaped = c => c.codePointAt(0) < 0x10000
  ? "\\u" + c.codePointAt(0).toString(16).padStart(4, "0")
  : "\\U" + c.codePointAt(0).toString(16).padStart(8, "0");
// As a shell reads it.
const quoted = word => /^[\w@%+=:,.\/-]+$/.test(word) ? word :
  word.search(unseen) < 0 ? "'" + word.replaceAll("'", "'\\''") + "'" :
  "$'" + word.replace(/[\\']/g, "\\$&").replace(unseen, escaped) + "'";
fact(facts.ranks > 1 ? "Command of rank " + report.ranks[0].rank : "Command",
  make("code", null, facts.command.map(quoted).join(" ")));
fact("Folder", make("code", null, facts.folder));
fact("sundog", facts.version);
fact(facts.hosts.length > 1 ? "Hosts" : "Host", facts.hosts.join(", "));
if (facts.libraries.length)
  fact("Libraries", ...facts.libraries.map(library =>
    make("div", null, make("code", null, library))));
const origins = {argument: "command line", environment: "environment",
  command: "set by sundog", default: "default"};
const originText = o => o.origin === "rules"
  ? "rules, line " + o.line + ", [" + o.section + "]"
  : origins[o.origin] || "not recorded";
const optionLine = o => make("tr", {"data-option": o.name},
  rowHead(make("code", null, o.name),
    o.ranks ? make("span.why", null, (o.ranks.length > 1 ? "ranks " : "rank ") +
      o.ranks.join(", ")) : null),
  text(make("code", null, o.value === "" ? "–" : o.value)), text(originText(o)));
const optionHeads = [["Name", true], ["Value", true], ["Origin", true]];
const set = facts.options.filter(o => o.origin !== "default");
const unset = facts.options.filter(o => o.origin === "default");
tableMake("options", optionHeads, set.map(optionLine));
if (!set.length)
  at("options").replaceChildren(make("tbody", null, make("tr", null,
    text("All options have their defaults."))));
tableMake("default-options", optionHeads, unset.map(optionLine));
at("defaults").hidden = !unset.length;
at("defaults").querySelector("summary").textContent =
  several(unset.length, "option", "options") + " with the default";
if (facts.rules) {
  const used = new Map(facts.rules.sections.map(s => [s.line, s.calls]));
  let marked = false;
  at("rules").append(make("h3", null, "Rules"),
    make("p.soft", null, make("code", null, facts.rules.path),
      "; sections that decided on calls are marked, with the calls of all ranks."),
    make("pre", {tabindex: 0}, ...facts.rules.text.replace(/\n$/, "").split("\n")
      .map((line, i) => {
        const calls = used.get(i + 1);
        if (calls !== undefined) marked = calls > 0;
        return make(marked && line.trim() ? "span.used" : "span", null,
          make("i", {"aria-hidden": "true"}, String(i + 1).padStart(3)), line,
          calls ? make("b", null, several(calls, "call", "calls")) : null);
      })));
}
