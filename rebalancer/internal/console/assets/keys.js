// The first page: regions and health, then keys by pressure or by name.

import { h, table, num, percent, bar, limitOf } from "./dom.js";
import { live, segment } from "./server.js";

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
      h("dt", null, "instances"), h("dd", null, num(r.instances)),
      r.behind ? [h("dt", null, "rules at"), h("dd", { class: "warn" }, r.reached || "?")] : "",
      h("dt", null, "offered"), h("dd", null, num(r.offered) + "/s"),
      h("dt", null, "refused"), h("dd", { class: r.refused > 0 ? "warn" : "" }, num(r.refused) + "/s")))));
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
