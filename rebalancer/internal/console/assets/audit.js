// Every change: who, when, why, before, after; and the way back.

import { h, table, ago, difference } from "./dom.js";
import { get, change, live } from "./server.js";

const undoable = new Set(["rule", "tenant", "parameter", "pin", "split", "region"]);

export function auditPage(main, shell) {
  const list = h("div"), more = h("button", null, "Older");
  const kind = h("select", { "aria-label": "kind" }, ["", "rule", "split,pin", "parameter", "tenant", "api_key", "region"].map(k => h("option", { value: k }, k || "everything")));
  const tenant = h("input", { type: "search", placeholder: "tenant" }), actor = h("input", { type: "search", placeholder: "by" });
  let rows = [], next = "";
  const load = async fresh => {
    if (fresh) { rows = []; next = ""; }
    const q = new URLSearchParams({ kind: kind.value, tenant: tenant.value, actor: actor.value, size: 100, page: next });
    const page = await get("/history?" + q).catch(err => { shell.failed(err); return { items: [] }; });
    rows.push(...page.items);
    next = page.next || "";
    more.hidden = !next;
    list.replaceChildren(table([{ name: "When" }, { name: "Kind" }, { name: "Of" }, { name: "By" }, { name: "Change" }, { name: "Reason" }, { name: "" }], rows.map(e => h("tr", null,
      h("td", { title: e.at }, ago(e.at)), h("td", null, e.kind + " " + e.operation), h("td", null, e.tenant ? e.tenant + (e.route ? " / " + e.route : "") : e.name), h("td", null, e.actor),
      h("td", { class: "text" }, difference(e.before, e.after).slice(0, 4).join("; ")), h("td", { class: "text faint" }, e.reason || ""),
      h("td", null, undoable.has(e.kind) ? h("button", { onclick: async () => { if (await change("Undo change " + e.id, "POST", "/history/" + e.id + "/rollback", {})) load(true); } }, "Undo") : "")))));
  };
  for (const el of [kind, tenant, actor]) el.addEventListener("change", () => load(true));
  more.addEventListener("click", () => load(false));
  main.replaceChildren(h("h1", null, "Audit"), h("div", { class: "row" }, kind, tenant, actor), list, h("div", { class: "row" }, more));
  load(true);
  return live({}, shell.health, shell.trouble);
}
