// Building pages: only elements and text nodes are ever made, so that no name of a tenant can become markup.

export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "class") el.className = value;
    else if (name === "style") Object.assign(el.style, value);
    else if (name in el && name !== "list") el[name] = value;
    else el.setAttribute(name, value);
  }
  el.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
  return el;
}

export function table(columns, rows) {
  return h("div", { class: "scroll" }, h("table", null,
    h("thead", null, h("tr", null, columns.map(c => h("th", { class: c.class || "", scope: "col" }, c.name)))),
    h("tbody", null, rows.length ? rows : h("tr", null, h("td", { colSpan: columns.length, class: "faint" }, "nothing here")))));
}

export const num = v => v === undefined || v === null ? "" : v === 0 ? "0" : v >= 100 ? Math.round(v).toLocaleString("en") : Number(v.toPrecision(3)).toString();
export const percent = ppm => ppm === undefined || ppm === null ? "–" : Number((ppm / 1e4).toFixed(2)) + " %";

export function ago(at) {
  const s = (Date.now() - new Date(at).getTime()) / 1000;
  if (!(s >= 0)) return "";
  if (s < 60) return Math.floor(s) + " s ago";
  if (s < 3600) return Math.floor(s / 60) + " min ago";
  if (s < 172800) return Math.floor(s / 3600) + " h ago";
  return new Date(at).toLocaleDateString();
}

// bar is a split as a strip of colours, one per region.
export function bar(shares) {
  const said = shares.map(s => s.region + " " + percent(s.share)).join(", ");
  return h("div", { class: "split", title: said, role: "img", "aria-label": said },
    shares.map((s, i) => h("i", { class: "r" + i % 8, style: { width: s.share / 1e4 + "%" } })));
}

export function limitOf(rule) {
  if (!rule) return "no limit";
  if (rule.mode === "block" || rule.mode === "unlimited") return rule.mode;
  let s = rule.capacity.toLocaleString("en") + " tokens";
  if (rule.refill_per_second) s += ", " + rule.refill_per_second + (rule.refill_period_seconds > 1 ? " per " + rule.refill_period_seconds + " s" : "/s");
  if (rule.algorithm && rule.algorithm !== "token_bucket") s += ", " + rule.algorithm.replaceAll("_", " ") + " " + (rule.window || rule.window_seconds + " s");
  if (rule.max_cost) s += ", at most " + rule.max_cost.toLocaleString("en") + " each";
  return rule.mode ? s + ", " + rule.mode : s;
}

// rateOf a rule worldwide, in tokens per second.
export function rateOf(rule) {
  if (!rule || !rule.capacity || rule.mode === "unlimited") return 0;
  if (rule.refill_per_second) return rule.refill_per_second / (rule.refill_period_seconds || 1);
  return rule.capacity / ({ hour: 3600, day: 86400, month: 2678400 }[rule.window] || rule.window_seconds || 1);
}

export function toast(text) {
  document.getElementById("toast")?.remove();
  const el = h("div", { id: "toast", role: "status" }, text);
  document.body.append(el);
  setTimeout(() => el.remove(), 6000);
}

// confirmed shows what would change and asks. It resolves to the reason given, or to null.
export function confirmed(title, lines) {
  return new Promise(resolve => {
    const reason = h("input", { name: "reason", maxLength: 200, placeholder: "for the history" });
    const dialog = h("dialog", { "aria-label": title },
      h("form", { method: "dialog" },
        h("h2", null, title),
        lines.length ? h("pre", null, lines.join("\n")) : h("p", { class: "faint" }, "no change"),
        h("label", null, "Reason", reason),
        h("div", { class: "row" }, h("button", { class: "primary", value: "yes" }, "Change it"), h("button", { value: "no" }, "Cancel"))));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes" ? reason.value : null); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// difference of two objects in lines, without what only says who changed them and when.
export function difference(before, after) {
  const skip = new Set(["id", "revision", "updated_at", "updated_by", "reason", "revision_epoch", "revision_number"]);
  const names = [...new Set([...Object.keys(before || {}), ...Object.keys(after || {})])].filter(n => !skip.has(n)).sort();
  const say = v => typeof v === "string" ? v : JSON.stringify(v);
  const none = v => v === undefined || v === null || v === "" || v === false;
  return names.flatMap(n => {
    const b = before?.[n], a = after?.[n];
    if (JSON.stringify(a) === JSON.stringify(b) || none(a) && none(b)) return [];
    if (none(b)) return ["+ " + n + ": " + say(a)];
    if (none(a)) return ["- " + n + ": " + say(b)];
    return ["~ " + n + ": " + say(b) + " → " + say(a)];
  });
}
