// Drives the console in a real Chromium: node console.mjs URL SHOTS. Every step is a thing that an operator does; the
// caller then looks into the ledger. Any error of the page, and any request to another host, fails the run.

import { chromium } from "playwright-core";

const [url, shots] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const faults = [];

async function open(options, hash = "") {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("pageerror", e => faults.push("page: " + e));
  page.on("console", m => { if (m.type() === "error") faults.push("console: " + m.text()); });
  page.on("request", r => { if (!r.url().startsWith(url) && !r.url().startsWith("data:")) faults.push("outside request: " + r.url()); });
  await page.goto(url + "/console/" + hash);
  return page;
}

const shot = (page, name) => page.screenshot({ path: `${shots}/${name}.png` });
const must = (ok, what) => { if (!ok) faults.push(what); };

try {
  const page = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  await page.getByRole("region", { name: "region eu" }).waitFor();
  await page.getByRole("link", { name: "shop-a / create-order" }).waitFor();
  await page.setViewportSize({ width: 1280, height: 480 });
  await shot(page, "keys");
  await page.setViewportSize({ width: 1280, height: 900 });

  await page.getByRole("region", { name: "region us" }).getByRole("button", { name: "Change" }).click();
  await page.getByLabel("failure domain").fill("rack-2");
  await page.getByRole("button", { name: "Show the difference" }).click();
  await page.getByText("+ domain: rack-2").waitFor();
  await page.getByRole("button", { name: "Change it" }).click();
  await page.getByRole("region", { name: "region us" }).getByText("rack-2").waitFor();

  await page.getByRole("searchbox", { name: "Search keys" }).fill("nobody");
  await page.getByText("nothing here").waitFor();
  await page.getByRole("searchbox", { name: "Search keys" }).fill("shop");

  await page.getByRole("link", { name: "shop-a / create-order" }).click();
  await page.locator(".plot canvas").first().waitFor();
  // Live pictures and what gateways say of the key: who decides, why the last request was refused.
  await page.getByRole("cell", { name: "prefetch 75 %, redis 25 %" }).first().waitFor();
  await page.getByText("waiting 0.05 s would have admitted it").first().waitFor();
  await page.getByLabel("pin of eu in percent").fill("42.5");
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByRole("textbox", { name: "Reason" }).fill("pinned by the browser");
  await page.getByRole("button", { name: "Change it" }).click();
  await page.getByRole("cell", { name: "pinned by the browser" }).waitFor();
  await page.locator("#toast").waitFor({ state: "detached" });
  await shot(page, "key");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.reload();
  await page.getByRole("cell", { name: "pinned by the browser" }).waitFor();
  await shot(page, "key-dark");
  await page.emulateMedia({ colorScheme: "light" });

  await page.getByRole("link", { name: "Parameters" }).click();
  await page.getByRole("cell", { name: "deadband", exact: true }).waitFor();
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("keys,").waitFor();
  await shot(page, "parameters");
  await page.getByRole("button", { name: "Pause planning" }).click();
  await page.getByRole("button", { name: "Change it" }).click();
  await page.getByRole("button", { name: "Resume planning" }).waitFor();
  await page.getByText("Planning is paused.").waitFor();

  await page.getByRole("link", { name: "Audit" }).click();
  await page.getByRole("cell", { name: "pin pin" }).waitFor();
  await shot(page, "audit");
  await page.getByRole("row", { name: /parameter insert/ }).getByRole("button", { name: "Undo" }).click();
  await page.getByRole("button", { name: "Change it" }).click();
  await page.getByRole("row", { name: /parameter delete/ }).waitFor();

  const ground = page => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const phone = await open({ viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true, isMobile: true });
  await phone.getByRole("link", { name: "shop-a / create-order" }).waitFor();
  must(await ground(phone) !== await ground(page), "dark looks like light");
  const fits = () => phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth + 1);
  must(await fits(), "the list of keys is wider than a phone");
  await shot(phone, "phone");
  await phone.getByRole("link", { name: "shop-a / create-order" }).click();
  await phone.locator(".plot canvas").first().waitFor();
  must(await fits(), "the page of a key is wider than a phone");
  await phone.getByRole("cell", { name: "pinned by the browser" }).waitFor();
  await shot(phone, "phone-key");
  for (const name of ["Parameters", "Audit"]) {
    await phone.getByRole("link", { name }).click();
    await phone.getByRole("heading", { name, exact: true }).waitFor();
    must(await fits(), name + " is wider than a phone");
  }
} catch (err) {
  faults.push(String(err));
}
await browser.close();
for (const f of faults) console.error(f);
process.exit(faults.length ? 1 : 0);
