// One key: who gets what of its limit, how that came about, and pins.

import { h, table, num, percent, limitOf, rateOf, ago, difference } from "./dom.js";
import { get, live, change, segment } from "./server.js";
import { stacked, lines } from "./plot.js";

const keep = 3600 * 6;

export function keyPage(main, shell, tenant, route) {
  const path = "/" + segment(tenant) + "/" + segment(route);
  const sharePlot = h("div", { class: "panel plot" }), loadPlot = h("div", { class: "panel plot" });
  const head = h("p", { class: "faint" }), why = h("ul"), rows = h("div"), past = h("div"), pins = h("div"), legend = h("div", { class: "legend" });
  main.replaceChildren(h("h1", null, tenant + " / " + route), head, why, rows, legend,
    h("div", { class: "grid2" }, h("section", null, h("h2", null, "Shares over time"), sharePlot), h("section", null, h("h2", null, "Offered and refused per second"), loadPlot)),
    h("h2", null, "Pin"), pins, h("h2", null, "Moves and their reasons"), past);

  const series = { times: [], share: {}, offered: [], refused: [] };
  let plots = null, marks = [], names = [], rate = 0;
  const add = (at, regions) => {
    if (series.times.length && at <= series.times.at(-1)) return;
    series.times.push(at);
    for (const n of names) (series.share[n] ||= []).push((regions[n]?.share ?? 0) / 1e4);
    series.offered.push(names.reduce((s, n) => s + (regions[n]?.offered ?? 0), 0));
    series.refused.push(names.reduce((s, n) => s + (regions[n]?.refused ?? 0), 0));
    while (series.times[0] < at - keep) {
      for (const list of [series.times, series.offered, series.refused, ...Object.values(series.share)]) list.shift();
    }
  };
  const draw = () => {
    plots.share.update(series.times, names.map(n => series.share[n]));
    plots.load.update(series.times, [series.offered, series.refused, series.times.map(() => rate)]);
  };

  async function begin(key) {
    names = key.regions.map(r => r.region);
    legend.replaceChildren(...names.map((n, i) => h("span", null, h("span", { class: "dot r" + i % 8 }), n)),
      h("span", null, "│ a decision"), h("span", null, "offered — blue, refused — red, limit — dashed"));
    plots = {
      share: stacked(sharePlot, names, " %", 100, () => marks),
      load: lines(loadPlot, [{ label: "offered", colour: 0 }, { label: "refused" }, { label: "limit", colour: 1, dash: [6, 4] }], ""),
    };
    const recorded = await get("/demand" + path + "?hours=6").catch(() => ({ items: [] }));
    const minutes = new Map();
    for (const d of recorded.items) {
      const at = new Date(d.at).getTime() / 1000;
      if (!minutes.has(at)) minutes.set(at, {});
      minutes.get(at)[d.region] = d;
    }
    for (const [at, regions] of minutes) add(at, regions);
    drawPins(key);
    history();
  }

  async function history() {
    const [moves, said] = await Promise.all([
      get("/history?kind=split,pin&size=50&tenant=" + segment(tenant) + "&route=" + segment(route)).catch(() => ({ items: [] })),
      get("/explain" + path).catch(() => null)]);
    marks = moves.items.map(m => new Date(m.at).getTime() / 1000);
    past.replaceChildren(table([{ name: "When" }, { name: "What" }, { name: "By" }, { name: "Change" }, { name: "Reason" }], moves.items.map(m => h("tr", null,
      h("td", null, ago(m.at)), h("td", null, m.operation), h("td", null, m.actor), h("td", null, splitChange(m)), h("td", { class: "text" }, m.reason || "")))));
    if (series.times.length) draw(); // with the marks
    if (said) why.replaceChildren(h("li", { class: "faint" }, "rule: " + said.rule_from), ...said.findings.map(f => h("li", null, f)), ...lent(said));
  }

  function drawPins(key) {
    const inputs = key.regions.map(r => h("input", { type: "number", min: 0, max: 100, step: "any", placeholder: "free", value: r.pin === undefined ? "" : r.pin / 1e4, "data-region": r.region, "aria-label": "pin of " + r.region + " in percent" }));
    const length = h("select", { "aria-label": "for how long" }, [["1 hour", 3600], ["1 day", 86400], ["1 week", 604800], ["until unpinned", 0]].map(([text, s]) => h("option", { value: s }, text)));
    const submit = async e => {
      e.preventDefault();
      const shares = {};
      for (const i of inputs) if (i.value !== "") shares[i.dataset.region] = Math.round(Number(i.value) * 1e4);
      if (await change("Pin " + tenant + " / " + route, "PUT", "/splits" + path + "/pins", { shares, for_seconds: Number(length.value) })) history();
    };
    const unpin = async () => {
      if (await change("Unpin " + tenant + " / " + route, "DELETE", "/splits" + path + "/pins")) { for (const i of inputs) i.value = ""; history(); }
    };
    pins.replaceChildren(h("form", { class: "row panel", id: "pins", onsubmit: submit }, inputs.map((i, n) => h("label", null, key.regions[n].region + ", %", i)), h("label", null, "for", length),
      h("button", { class: "primary" }, "Pin"), h("button", { type: "button", onclick: unpin }, "Unpin")));
  }

  let ready = null, turns = 0;
  const stop = live({ tenant, route }, async p => {
    shell.health(p);
    const key = p.key;
    ready ||= begin(key);
    await ready;
    rate = rateOf(key.rule);
    const sum = key.regions.reduce((s, r) => s + r.share, 0);
    head.textContent = limitOf(key.rule) + " · shares in force and reported add up to " + percent(sum) + (sum === 1e6 ? "" : " while some travel");
    add(Date.now() / 1000, Object.fromEntries(key.regions.map(r => [r.region, r])));
    draw();
    rows.replaceChildren(table([{ name: "Region" }, { name: "Share", class: "num" }, { name: "Target", class: "num" }, { name: "Pin", class: "num" }, { name: "Rate/s", class: "num" }, { name: "Burst", class: "num" }, { name: "Tokens", class: "num" }, { name: "Offered/s", class: "num" }, { name: "Refused/s", class: "num" }, { name: "Decided by" }],
      key.regions.map((r, i) => h("tr", null, h("td", null, h("span", { class: "dot r" + i % 8 }), r.region),
        h("td", { class: "num", title: r.reported ? "reported by the region" : "last known" }, percent(r.share), r.reported ? "" : " ?"), h("td", { class: "num" }, percent(r.target)),
        h("td", { class: "num" }, percent(r.pin)), h("td", { class: "num" }, num(rate * r.share / 1e6)), h("td", { class: "num" }, num((key.rule?.capacity ?? 0) * r.share / 1e6)),
        h("td", { class: "num", title: "last seen in the bucket" }, r.tokens === undefined ? "?" : num(r.tokens)),
        h("td", { class: "num" }, num(r.offered)), h("td", { class: "num " + (r.refused > 0 ? "bad" : "") }, num(r.refused)), h("td", { class: "faint" }, deciders(r))))));
    if (++turns % 5 === 0) history();
  }, shell.trouble);
  return () => { stop(); plots?.share.end(); plots?.load.end(); };
}

// lent are the last loans, the newest first.
function lent(said) {
  const all = said.regions.flatMap(r => (r.loans || []).map(l => ({ ...l, to: r.region })));
  return all.sort((a, b) => a.at < b.at ? 1 : -1).slice(0, 4).map(l => h("li", { class: "faint" }, ago(l.at) + " " + l.from + " lent " + num(l.tokens) + (l.tokens === 1 ? " token to " : " tokens to ") + l.to));
}

// deciders of the last minute or two, in parts of all decisions.
function deciders(r) {
  if (!r.sources) return "store";
  const all = Object.values(r.sources).reduce((a, b) => a + b, 0);
  return Object.keys(r.sources).sort().filter(n => r.sources[n] >= all / 200).map(n => n + " " + Math.round(100 * r.sources[n] / all) + " %").join(", ");
}

function splitChange(m) {
  if (m.kind === "pin") return difference(m.before?.shares, m.after?.shares).map(l => l.replace(/\d{4,}/g, d => percent(Number(d)))).join("; ") || "no pins";
  return Object.keys(m.after || {}).sort().filter(r => m.before?.[r] !== m.after[r]).map(r => r + " " + percent(m.before?.[r]) + " → " + percent(m.after[r])).join("; ");
}
