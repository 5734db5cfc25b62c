// Parameters, pause, the kill switch, and what other values would do.

import { h, table, percent, ago, num, toast } from "./dom.js";
import { ask, get, change, live, segment } from "./server.js";

export function parametersPage(main, shell) {
  const list = h("div"), preview = h("div"), switches = h("div", { class: "row" });
  main.replaceChildren(h("h1", null, "Parameters"), switches, list, h("h2", null, "Preview"), previewForm(preview), preview);
  const refresh = async () => {
    const page = await get("/parameters").catch(err => { shell.failed(err); return null; });
    if (!page) return;
    const value = name => page.items.find(p => p.name === name)?.value;
    const flip = (name, on, text, danger) => h("button", { class: danger ? "danger" : "", onclick: async () => { if (await change(text, "PUT", "/parameters/" + name, { value: on })) refresh(); } }, text);
    switches.replaceChildren(
      value("paused") ? flip("paused", false, "Resume planning") : flip("paused", true, "Pause planning"),
      value("shadow") ? flip("shadow", false, "Enforce limits again") : flip("shadow", true, "Admit everything (shadow)", true),
      h("button", { onclick: () => ask("POST", "/rebalance/run").then(() => toast("a cycle has been asked for"), err => toast(err.message)) }, "Run a cycle"));
    list.replaceChildren(table([{ name: "Name" }, { name: "Value" }, { name: "Default" }, { name: "Set by" }, { name: "Meaning" }, { name: "" }], page.items.map(p => row(p, refresh))));
  };
  refresh();
  const stop = live({}, shell.health, shell.trouble);
  return stop;
}

function say(p) {
  return p.kind === "share" ? percent(p.value) : p.kind === "fraction" ? Number((p.value * 100).toFixed(4)) + " %" : typeof p.value === "string" ? p.value : JSON.stringify(p.value);
}

function row(p, refresh) {
  const changed = JSON.stringify(p.value) !== JSON.stringify(p.default);
  const edit = async () => {
    const text = prompt(p.name + ": " + p.help, say(p).replace(" %", "%"));
    if (text === null) return;
    let value = text.trim();
    try { value = JSON.parse(value); } catch { /* a text such as 2m or 5% */ }
    if (await change(p.name, "PUT", "/parameters/" + segment(p.name), { value })) refresh();
  };
  const reset = async () => { if (await change("Reset " + p.name, "DELETE", "/parameters/" + segment(p.name))) refresh(); };
  return h("tr", null, h("td", null, p.name), h("td", { class: changed ? "warn" : "" }, say(p)), h("td", { class: "faint" }, say({ ...p, value: p.default })),
    h("td", { class: "faint" }, p.updated_by ? p.updated_by + ", " + ago(p.updated_at) : ""), h("td", { class: "text faint" }, p.help),
    h("td", null, h("button", { onclick: edit }, "Change"), changed ? h("button", { onclick: reset }, "Reset") : ""));
}

function previewForm(out) {
  const floor = h("input", { placeholder: "as now", size: 8 }), step = h("input", { placeholder: "as now", size: 8 }), deadband = h("input", { placeholder: "as now", size: 8 }), hours = h("input", { type: "number", min: 0, max: 24, value: 6 });
  const run = async e => {
    e.preventDefault();
    const set = {};
    for (const [name, input] of Object.entries({ floor, step, deadband })) if (input.value) set[name] = input.value;
    try {
      const p = await ask("POST", "/rebalance/plan", { with: set, over_hours: Number(hours.value), size: 50 });
      const r = p.replay;
      out.replaceChildren(
        h("p", null, p.keys + " keys, " + p.changed + " would change now, " + p.moves + " moves."),
        r ? h("p", null, "Over the last " + r.hours + " h of recorded demand: refused " + num(r.now.refused) + " → " + num(r.with.refused) + " of " + num(r.now.offered) + " tokens (" + num(r.now.unavoidable) + " cannot be helped), moves " + r.now.moves + " → " + r.with.moves + ".") : "",
        table([{ name: "Key" }, { name: "Change" }, { name: "Reason" }], p.changes.map(c => h("tr", null, h("td", null, c.tenant + " / " + c.route),
          h("td", null, Object.keys(c.after).sort().map(n => n + " " + percent(c.before[n]) + " → " + percent(c.after[n])).join("; ")), h("td", { class: "text" }, c.reason)))));
    } catch (err) { toast(err.message); }
  };
  return h("form", { class: "row panel", onsubmit: run }, h("label", null, "floor", floor), h("label", null, "step", step), h("label", null, "deadband", deadband), h("label", null, "hours of recorded demand", hours), h("button", { class: "primary" }, "Preview"));
}
