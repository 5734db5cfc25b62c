// The shell: which page is shown, who is signed in, and whether the rebalancer answers.

import { h, ago } from "./dom.js";
import { ask, get } from "./server.js";
import { keysPage } from "./keys.js";
import { keyPage } from "./key.js";
import { parametersPage } from "./parameters.js";
import { auditPage } from "./audit.js";

const main = document.getElementById("main"), banner = document.getElementById("banner"), healthLine = document.getElementById("health");

const shell = {
  // health shows what a picture says of the rebalancers.
  health(p) {
    const s = p.status, said = [];
    said.push(s.leader ? "leader " + s.leader : "no leader");
    if (s.cycle) said.push("cycle " + ago(s.cycle.at) + (s.cycle.error ? ", failed" : ""));
    healthLine.replaceChildren(h("span", { class: s.not_ready?.length || !s.leader || s.cycle?.error ? "bad" : "" }, said.join(" · ")), s.not_ready?.length ? " · " + s.not_ready.join("; ") : "");
    const warnings = [];
    if (p.shadow) warnings.push("Shadow: everything is admitted.");
    if (p.paused) warnings.push("Planning is paused.");
    banner.hidden = warnings.length === 0;
    banner.textContent = warnings.join(" ");
  },
  // trouble is a lost stream; one that was refused means that the session is over.
  trouble(closed) {
    healthLine.replaceChildren(h("span", { class: "bad" }, "no connection, trying again"));
    if (closed) get("/status").then(() => setTimeout(route, 3000), shell.failed);
  },
  failed(err) {
    if (err.status === 401) signIn();
    else { banner.hidden = false; banner.textContent = err.message; }
  },
};

let leave = () => {};

function route() {
  leave();
  const parts = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  for (const a of document.querySelectorAll("nav a")) {
    if (a.getAttribute("href") === "#/" + (parts[0] === "key" ? "" : parts[0])) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  switch (parts[0]) {
    case "key": leave = keyPage(main, shell, parts[1], parts[2]); break;
    case "parameters": leave = parametersPage(main, shell); break;
    case "audit": leave = auditPage(main, shell); break;
    default: leave = keysPage(main, shell);
  }
  main.focus();
}

function signIn() {
  const dialog = document.getElementById("login"), token = document.getElementById("token");
  if (dialog.open) return;
  dialog.addEventListener("close", async () => {
    try {
      await ask("POST", "/session", { token: token.value });
      document.getElementById("login-error").textContent = "";
      route();
    } catch (err) {
      document.getElementById("login-error").textContent = err.message;
      signIn();
    }
    token.value = "";
  }, { once: true });
  dialog.showModal();
}

addEventListener("hashchange", route);
get("/status").then(route, shell.failed);
