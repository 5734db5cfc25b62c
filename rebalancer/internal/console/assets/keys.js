// The first page: regions and health, then keys by pressure or by name.

import { h, table, num, percent, bar, limitOf } from "./dom.js";
import { change, live, segment } from "./server.js";

export function keysPage(main, shell) {
  const regions = h("div", { class: "cards" });
  const list = h("div");
  const search = h("input", { type: "search", placeholder: "tenant or route", "aria-label": "Search keys" });
  let stop = () => {};
  const listen = () => {
    stop();
    stop = live({ q: search.value }, p => { shell.health(p); drawRegions(regions, p); drawKeys(list, p); }, shell.trouble);
  };
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(listen, 250); });
  main.replaceChildren(h("h1", null, "Regions"), regions, h("h2", null, "Keys, the most refused first"), h("div", { class: "row" }, search), list);
  listen();
  return () => { clearTimeout(timer); stop(); };
}

function drawRegions(el, p) {
  el.replaceChildren(...p.regions.map((r, i) => h("section", { class: "card", "aria-label": "region " + r.name },
    h("b", null, h("span", { class: "dot r" + i % 8 }), r.name), " ",
    r.state !== "active" ? h("span", { class: "warn" }, r.state) :
      r.known ? h("span", { class: "good" }, "heard") : h("span", { class: "bad" }, r.silence_seconds < 0 ? "never heard" : "silent for " + num(r.silence_seconds) + " s"),
    h("dl", null,
      h("dt", null, "base"), h("dd", null, percent(r.published), r.published !== r.base ? " → " + percent(r.base) : ""),
      r.floor ? [h("dt", null, "floor"), h("dd", null, percent(r.floor))] : "",
      r.domain ? [h("dt", null, "domain"), h("dd", null, r.domain)] : "",
      h("dt", null, "instances"), h("dd", null, num(r.instances)),
      (r.gateways || []).filter(g => g.degraded || g.stale).map(g => [h("dt", { class: "warn" }, g.instance), h("dd", { class: "warn" }, g.degraded ? "without Redis" : "stale rules")]),
      r.behind ? [h("dt", null, "rules at"), h("dd", { class: "warn" }, r.reached || "?")] : "",
      h("dt", null, "offered"), h("dd", null, num(r.offered) + "/s"),
      h("dt", null, "refused"), h("dd", { class: r.refused > 0 ? "warn" : "" }, num(r.refused) + "/s")),
    h("button", { onclick: () => edit(r) }, "Change"))));
}

// edit asks for what is configured of one region by itself, and sends what differs.
async function edit(r) {
  const floor = h("input", { value: (r.floor || 0) / 1e4, type: "number", min: 0, max: 100, step: "any" }), domain = h("input", { value: r.domain || "", maxLength: 64 });
  const state = h("select", null, ["active", "draining", "dead"].map(s => h("option", { value: s, selected: s === r.state }, s)));
  const dialog = h("dialog", { "aria-label": "Change region " + r.name }, h("form", { method: "dialog" }, h("h2", null, "Region " + r.name),
    h("label", null, "floor, % of the whole limit (0: the parameter floor)", floor), h("label", null, "failure domain", domain), h("label", null, "state", state),
    h("p", { class: "faint" }, "dead is your word that the region admits nothing any more: the others get its shares, and if it still runs, limits are exceeded by them."),
    h("div", { class: "row" }, h("button", { class: "primary", value: "yes" }, "Show the difference"), h("button", { value: "no" }, "Cancel"))));
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue !== "yes") return;
    change("Change region " + r.name, "PATCH", "/regions/" + segment(r.name), { floor: Math.round(Number(floor.value) * 1e4), domain: domain.value, state: state.value });
  });
  document.body.append(dialog);
  dialog.showModal();
}

function drawKeys(el, p) {
  const link = k => h("a", { href: "#/key/" + segment(k.tenant) + "/" + segment(k.route) }, k.tenant + " / " + k.route);
  el.replaceChildren(table(
    [{ name: "Key" }, { name: "Limit" }, { name: "Split" }, { name: "Offered/s", class: "num" }, { name: "Refused/s", class: "num" }, { name: "Last decision" }],
    (p.keys || []).map(k => h("tr", null,
      h("td", null, link(k), k.regions.some(r => r.pin !== undefined) ? h("span", { class: "warn", title: "pinned" }, " pinned") : ""),
      h("td", null, limitOf(k.rule)), h("td", null, bar(k.regions)), h("td", { class: "num" }, num(k.offered)),
      h("td", { class: "num " + (k.refused > 0 ? "bad" : "") }, num(k.refused)), h("td", { class: "text faint" }, k.reason || "base split")))));
}
