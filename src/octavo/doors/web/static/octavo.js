// The pages work without this. It lets keys lead about, and changes only the part of a page that was asked for.
"use strict";
const one = (selector) => document.querySelector(selector);
const keys = one("dialog.keylist");
const wanted = keys.querySelector("input");
wanted.checked = localStorage.getItem("keys") !== "off";
wanted.addEventListener("change", () => localStorage.setItem("keys", wanted.checked ? "on" : "off"));

const pages = { a: "ask", t: "timeline", r: "review", b: "reading", h: "health" };
const stops = "article.hit a, ul.hits > li a, ol.line .meta a:first-child, article.proposal button.primary";
let afterG = 0;

function move(step) {
  const all = [...document.querySelectorAll(stops)].filter((link, n, links) => n === 0 || row(link) !== row(links[n - 1]));
  const here = all.findIndex((link) => row(link).contains(document.activeElement));
  const next = all[Math.max(0, Math.min(all.length - 1, here < 0 ? (step > 0 ? 0 : all.length - 1) : here + step))];
  if (next) next.focus();
}

function row(link) {
  return link.closest("article, li");
}

// The first stroke leads to a proposal's button, the next one presses it.
function answer(selector) {
  const chosen = document.activeElement.closest("article.proposal");
  const control = (chosen || one("article.proposal"))?.querySelector(selector);
  if (chosen) control?.click();
  else control?.focus();
}

const acts = {
  "/": () => { const field = one("#q"); if (field) { field.focus(); field.select(); } else { location.assign(one("a.brand").href); } },
  j: () => move(1),
  k: () => move(-1),
  y: () => answer("button[value=yes]"),
  n: () => answer("button[value=no]"),
  e: () => answer("a[href*='edit=']"),
  u: () => (one(".toast button") || one("a[href*='/undo/']"))?.click(),
  g: () => { afterG = Date.now(); },
  "?": () => keys.showModal(),
};

document.addEventListener("keydown", (event) => {
  const writes = event.target.closest("input, textarea, select, dialog");
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!wanted.checked && event.key !== "?") return;
  const page = Date.now() - afterG < 1500 && pages[event.key];
  afterG = 0;
  const act = page ? () => one(`nav.pages a[href$="/${page}"]`).click() : acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// What has data-swap is answered in place: only those parts of the page change, the address goes along.
const place = () => location.pathname + location.search;
let shown = place();

function busy(hits) {
  hits.setAttribute("aria-busy", "true");
  const note = document.createElement("p");
  note.className = "quiet small";
  note.setAttribute("role", "status");
  note.textContent = "Looking…";
  const bar = document.createElement("div");
  bar.className = "progress";
  hits.replaceChildren(note, bar, ...["w1", "w2", "w4"].map((width) => {
    const line = document.createElement("span");
    line.className = `ghost live ${width}`;
    return line;
  }));
}

async function swap(control, address, form) {
  const hits = control.dataset.swap.startsWith("#hits") && one("#hits");
  const waiting = setTimeout(() => hits && busy(hits), 150);
  let answer;
  try {
    answer = await fetch(address, form ? { method: "POST", body: form } : {});
  } catch {
    return location.assign(address);
  } finally {
    clearTimeout(waiting);
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const asked = control.dataset.swap.split(", ");
  const parts = asked.every((part) => one(part) && page.querySelector(part)) ? asked : ["main"];
  for (const part of [...parts, "#pages", "#done"]) one(part).replaceWith(page.querySelector(part));
  history.pushState({}, "", answer.url + new URL(address, location).hash);
  shown = place();
  document.title = page.title;
  one("#told").textContent = one("#hits")?.dataset.told ?? "";
  control.dataset.focus?.split(", ").map(one).find(Boolean)?.focus();
}

function swaps(control) {
  return control?.dataset.swap && (!control.dataset.swap.includes("#difference") || matchMedia("(min-width: 60rem)").matches);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-swap]");
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || !swaps(link)) return;
  event.preventDefault();
  swap(link, link.href);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!swaps(form)) return;
  event.preventDefault();
  const said = new URLSearchParams(new FormData(form, event.submitter));
  const address = new URL(form.action);
  if (form.method === "post") return swap(form, address.href, said);
  address.search = said;
  swap(form, address.href);
});

addEventListener("popstate", () => { if (place() !== shown) location.reload(); });
