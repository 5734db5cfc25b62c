// Speaking to the admin API. The session's token is in a cookie that scripts cannot read.

import { confirmed, difference, toast } from "./dom.js";

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ? body.title + ": " + body.detail : body.title || "HTTP " + status);
    this.status = status;
  }
}

// seen is the revision that what is changed must still have.
export async function ask(method, path, body, seen) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  if (seen) headers["If-Match"] = '"' + seen + '"';
  const res = await fetch("/v1" + path, { method, headers, body: body && JSON.stringify(body) });
  if (res.status === 204) return null;
  const data = await res.json().catch(() => ({}));
  if (!res.ok) throw new Problem(res.status, data);
  return data;
}

export const get = path => ask("GET", path);
export const segment = encodeURIComponent;

// change tries a change, shows the difference, asks, and makes it. It resolves to whether it was made.
export async function change(title, method, path, body) {
  const withReason = reason => body ? { ...body, reason } : undefined;
  try {
    const trial = await ask(method, path + "?dry_run=true", withReason(""));
    const reason = await confirmed(title, difference(trial.before, trial.after));
    if (reason === null) return false;
    await ask(method, path + (body ? "" : "?reason=" + segment(reason)), withReason(reason), trial.before?.revision);
    toast(title + ": done");
    return true;
  } catch (err) {
    toast(err.message);
    return false;
  }
}

// live calls picture with every new picture until the returned function is called.
export function live(query, picture, trouble) {
  const source = new EventSource("/v1/events?" + new URLSearchParams(query));
  source.addEventListener("picture", e => picture(JSON.parse(e.data)));
  source.onerror = () => trouble(source.readyState === EventSource.CLOSED);
  return () => source.close();
}
