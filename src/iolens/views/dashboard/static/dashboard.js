// A page fills its blocks, follows new data, and keeps its state in its address.
import { draw, drawForPaper, forget, isDark, markSpan } from "./figures.js";

const main = document.querySelector("main");
const address = () => new URL(location.href);
const WINDOW = ["from", "to", "last", "during"];
const iso = (ms) => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

// Blocks

// What a block takes from the page's address.
const takes = (block) => new Set((new URL(block.dataset.block, location.href).searchParams.get("takes") ?? "").split(","));

// The address of a block's contents, with the window and the other values of the page's address.
const blockAddress = (block) => {
  const url = new URL(block.dataset.block, location.href);
  const known = takes(block);
  const given = address().searchParams;
  const hasWindow = WINDOW.some((name) => given.get(name));
  if (hasWindow && known.has("from")) WINDOW.forEach((name) => url.searchParams.delete(name));
  for (const [name, value] of given) if (value && known.has(name)) url.searchParams.set(name, value);
  if (known.has("capacity") && !given.get("capacity") && main.dataset.capacity) url.searchParams.set("capacity", main.dataset.capacity);
  return url;
};

// A block is settled when what was asked for last is what it shows: `data-shown` is then the number of its asking.
const fill = async (block, { quiet = false } = {}) => {
  const turn = (block.turn = (block.turn ?? 0) + 1);
  delete block.dataset.shown;
  await ask(block, turn, quiet);
  if (turn !== block.turn) return;
  block.dataset.shown = turn;
  block.shownAddress = blockAddress(block).href;
  hintWindow();
};
const ask = async (block, turn, quiet) => {
  const contents = block.querySelector(".contents");
  const url = blockAddress(block);
  if (!quiet) contents.classList.add("stale");
  let text;
  try {
    const answer = await fetch(url, { headers: { Accept: "text/html" } });
    if (answer.status === 401) return location.reload();
    text = await answer.text();
    if (turn !== block.turn) return;
    if (answer.headers.get("ETag") && answer.headers.get("ETag") === block.dataset.tag) return;
    block.dataset.tag = answer.headers.get("ETag") ?? "";
  } catch {
    if (turn === block.turn && !quiet) {
      contents.innerHTML = '<p class="trouble">The server did not answer.</p>';
      delete block.dataset.tag;
    }
    return;
  } finally {
    if (turn === block.turn) {
      contents.classList.remove("stale");
      contents.setAttribute("aria-busy", "false");
    }
  }
  await show(block, contents, text, turn, quiet);
};

// A live update waits while a person drags: from the press of a button until it is let go.
let pressed = null;
let letGo = () => {};
addEventListener("pointerdown", () => { pressed ??= new Promise((resolve) => { letGo = resolve; }); }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = null; letGo(); }, true);
const untilLetGo = async () => { while (pressed) await pressed; };

const FOCUSABLE = "a, button, summary, [tabindex]";
// Puts new contents in place of the old ones when their figures are drawn, so that nothing jumps or flickers.
const show = async (block, contents, text, turn, quiet) => {
  const isFirst = !contents.dataset.filled;
  const fresh = isFirst ? contents : contents.cloneNode(false);
  fresh.innerHTML = text;
  if (!isFirst) {
    fresh.style.width = `${contents.clientWidth}px`;
    fresh.classList.add("coming");
    contents.after(fresh);
  }
  const marked = block === who ? null : askedStretch();
  for (const figure of fresh.querySelectorAll("figure")) {
    if (turn === block.turn) await draw(figure, zoomed, marked).catch((error) => figure.isConnected && console.error(error));
  }
  if (quiet) await untilLetGo();
  if (isFirst || turn !== block.turn) {
    isFirst ? (contents.dataset.filled = "yes") : discard(fresh);
    return;
  }
  const focused = [...contents.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  carryOver(contents, fresh);
  contents.remove(); // in one step with the next lines: while both have space on the page, it scrolls
  fresh.style.width = "";
  fresh.classList.remove("coming");
  if (focused >= 0) fresh.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
  discard(contents);
};
const discard = (contents) => {
  contents.remove();
  contents.querySelectorAll("figure").forEach(forget);
};

// What the reader has opened and scrolled stays so.
const carryOver = (before, after) => {
  const kept = [...after.querySelectorAll("details, .scroll")];
  before.querySelectorAll("details, .scroll").forEach((element, place) => {
    if (kept[place]?.tagName !== element.tagName) return;
    if (element.open) kept[place].open = true;
    kept[place].scrollLeft = element.scrollLeft;
  });
};

const isOpen = (block) => !(block instanceof HTMLDetailsElement) || block.open;
const blocks = () => [...main.querySelectorAll("[data-block]")].filter(isOpen);
const fillAll = (how) => busyWith(async () => {
  await Promise.all(blocks().map((block) => fill(block, how)));
  showLeaves();
});

// The page is busy until everything that goes on is done, from the event that begins it on.
let goingOn = 0;
const busyWith = async (work) => {
  main.setAttribute("aria-busy", String(++goingOn > 0));
  try {
    return await work();
  } finally {
    main.setAttribute("aria-busy", String(--goingOn > 0));
  }
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// Does the work when no later event of its kind has come for so long; busy meanwhile.
const whenCalm = (ms, work) => {
  let events = 0;
  return () => busyWith(async () => {
    const own = ++events;
    await pause(ms);
    if (own === events) await work();
  });
};

main.addEventListener("toggle", ({ target }) => target.dataset?.block && target.open && busyWith(() => fill(target)), true);

// The window of time

const setAddress = (values, { replace = false } = {}) => {
  const url = address();
  for (const [name, value] of Object.entries(values)) value ? url.searchParams.set(name, value) : url.searchParams.delete(name);
  history[replace ? "replaceState" : "pushState"](null, "", url);
};
const goTo = (values) => {
  setAddress(values);
  showWindow();
  return fillAll();
};

const showWindow = () => {
  const given = address().searchParams;
  const form = document.querySelector("#window");
  if (!form) return;
  for (const name of ["from", "to"]) Object.assign(form.elements[name], { value: given.get(name) ?? "", placeholder: "" });
  const usual = given.get("from") || given.get("to") ? "" : given.get("last") ?? main.dataset.last ?? "";
  form.querySelectorAll("[data-last]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.last === usual)));
};

// What is shown stands in the fields while nothing else is given; they are empty until it is known.
const hintWindow = () => {
  const form = document.querySelector("#window");
  const shown = form && shownWindow();
  if (shown) ["from", "to"].forEach((name, place) => { form.elements[name].placeholder = iso(shown[place]).replace(/(:00)?Z$/, ""); });
};

const drags = () => document.querySelector('input[name="drag"]:checked')?.value ?? "zoom";

const zoomed = (ending) => busyWith(async () => {
  const zoom = await ending;
  if (!zoom) return undefined;
  const [from, to] = zoom.stretch.map(iso);
  if (drags() === "who") {
    zoom.back();
    markSpan(zoom.plots, zoom.span);
    return askWho(from, to);
  }
  return goTo({ from, to, last: "", during: "" });
});

// From when to when the page's figures are, in milliseconds; null where no figure tells.
const shownWindow = () => {
  const { searchParams: given } = address();
  if (given.get("from") && given.get("to")) return [Date.parse(zoned(given.get("from"))), Date.parse(zoned(given.get("to")))];
  const origin = blocks().filter(isOfWindow).map((block) => block.querySelector("[data-from][data-to]")).find(Boolean);
  return origin ? [Date.parse(origin.dataset.from), Date.parse(origin.dataset.to)] : null;
};
// Whether what a block shows is of the page's window, and asked for with the page's address as it is now.
const isOfWindow = (block) => block !== who && takes(block).has("from") && block.shownAddress === blockAddress(block).href;
const zoned = (text) => (/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);

const move = (how) => {
  const shown = shownWindow();
  if (!shown) return;
  const length = shown[1] - shown[0];
  const [from, to] = how === "out" ? [shown[0] - length, shown[1] + length] : shown.map((end) => end + (Number(how) * length) / 2);
  goTo({ from: iso(from), to: iso(to), last: "", during: "" });
};

document.querySelector("#window")?.addEventListener("click", ({ target }) => {
  if (target.dataset.last) goTo({ last: target.dataset.last, from: "", to: "", during: "" });
  if (target.dataset.move) move(target.dataset.move);
});
document.querySelector("#window")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const { from, to } = event.target.elements;
  goTo({ from: from.value.trim(), to: to.value.trim(), last: "", during: "" });
});

// Whose I/O it was

const who = document.querySelector("#who");
if (who) main.querySelector(".group .block")?.after(who); // below the figure in which a stretch is brushed
const askWho = (from, to, how) => {
  const url = address();
  url.searchParams.set("who_from", from);
  url.searchParams.set("who_to", to);
  url.searchParams.set("who_by", document.querySelector("#who-by").value);
  history.replaceState(null, "", url);
  return showWho(how);
};
const askedStretch = () => {
  const given = address().searchParams;
  const ends = ["who_from", "who_to"].map((name) => Date.parse(zoned(given.get(name) ?? "")));
  return who && ends.every(Number.isFinite) ? ends : null;
};
const showWho = async ({ quiet = false } = {}) => {
  const given = address().searchParams;
  if (!who) return;
  who.hidden = !given.get("who_from");
  if (who.hidden) {
    delete who.dataset.block;
    return;
  }
  const query = new URLSearchParams({ filesystem: main.dataset.filesystem, from: given.get("who_from"), to: given.get("who_to"), by: given.get("who_by") ?? "job", show: "table:shares,figure:shares,table:targets" });
  who.dataset.block = `/blocks/blame?${query}`;
  await busyWith(() => fill(who, { quiet }));
  if (!quiet) who.scrollIntoView({ block: "nearest" });
};
document.querySelector("#close-who")?.addEventListener("click", async () => {
  setAddress({ who_from: "", who_to: "", who_by: "" }, { replace: true });
  await showWho();
  redraw();
});
document.querySelector("#ask-who")?.addEventListener("click", () => {
  const shown = shownWindow();
  if (shown) askWho(iso(shown[0]), iso(shown[1]));
});
document.querySelector("#who-by")?.addEventListener("change", ({ target }) => {
  const given = address().searchParams;
  target.value && given.get("who_from") && askWho(given.get("who_from"), given.get("who_to"));
});

// Jobs

document.querySelector("#search")?.addEventListener("submit", (event) => {
  event.preventDefault();
  goTo({ ...Object.fromEntries(new FormData(event.target)), skip: "" });
});
document.querySelector("#search")?.addEventListener("change", ({ target }) => target.name === "sort" && target.form.requestSubmit());
const LISTED = 50; // jobs in a part of the list
const skipped = () => Number(address().searchParams.get("skip") ?? 0);
const leaves = document.querySelector(".leaf");
leaves?.addEventListener("click", async ({ target }) => {
  if (!target.dataset.leaf) return;
  await goTo({ skip: String(Math.max(0, skipped() + Number(target.dataset.leaf) * LISTED) || "") });
  main.scrollIntoView();
});
const showLeaves = () => {
  if (!leaves) return;
  const [before, after] = leaves.children;
  before.disabled = skipped() === 0;
  after.disabled = main.querySelectorAll("tbody tr").length < LISTED;
};

// The plan: answers move with the sliders.

const plan = document.querySelector("#plan");
const planValues = () => ({ smaller: "", ...Object.fromEntries(new FormData(plan)) });
const showPlan = () => {
  for (const slider of plan.querySelectorAll('input[type="range"]')) {
    const label = slider.closest("label");
    const text = slider.dataset.steps === undefined ? slider.value : slider.dataset.steps.split(" ")[slider.value];
    if (slider.dataset.steps !== undefined) label.querySelector('input[type="hidden"]').value = text;
    const words = text === "" ? slider.dataset.empty : `${text.replaceAll(",", ", ")} ${slider.dataset.unit}`;
    label.querySelector("output").value = words;
    slider.setAttribute("aria-valuetext", words);
  }
};
// Metadata targets serve the capacity that is planned, unless another is given.
const plannedCapacity = async (block) => {
  const answered = block.querySelector(".origin a");
  if (!answered) return "";
  const answer = await fetch(answered.href);
  const bytes = answer.ok ? (await answer.json()).cases.at(-1)?.capacity_bytes : undefined;
  return bytes ? `${Math.round(bytes)}B` : "";
};
const replan = () => busyWith(async () => {
  const turn = (plan.turn = (plan.turn ?? 0) + 1);
  const values = planValues();
  setAddress(values, { replace: true });
  const block = main.querySelector('[data-block^="/blocks/plan/capacity"]');
  if (block) {
    await fill(block);
    if (turn !== plan.turn) return undefined;
    main.dataset.capacity = await plannedCapacity(block);
    if (turn !== plan.turn) return undefined;
  }
  const rationale = new URLSearchParams({ filesystem: main.dataset.filesystem });
  const capacity = values.capacity || main.dataset.capacity;
  for (const [name, value] of Object.entries({ ...values, capacity })) if (value && name !== "classes") rationale.set(name, value);
  plan.querySelector("#rationale").href = `/api/v1/plan/rationale.pdf?${rationale}`;
  return fillAll();
});
const planned = whenCalm(120, replan);
plan?.addEventListener("input", () => { showPlan(); planned(); });
plan?.addEventListener("submit", (event) => event.preventDefault());

// Silences

const silence = (form) => busyWith(async () => {
  const said = document.querySelector("#silence-said");
  const answer = await fetch("/api/v1/silences", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(Object.fromEntries(new FormData(form))) });
  said.textContent = answer.ok ? "Silenced." : (await answer.json()).error ?? "Not silenced.";
  if (answer.ok) await fillAll();
});
document.querySelector("#silence")?.addEventListener("submit", (event) => {
  event.preventDefault();
  silence(event.target);
});

// Copying, colours, new data

main.addEventListener("click", async ({ target }) => {
  if (!target.classList.contains("copy")) return;
  const code = target.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    target.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code);
    target.textContent = "Selected";
  }
});

const drawn = () => [...main.querySelectorAll("figure.drawn")];
const redraw = () => busyWith(() => Promise.all(drawn().map((figure) => draw(figure, zoomed, who?.contains(figure) ? null : askedStretch()))));
const theme = document.querySelector("#theme");
const THEMES = { "": "as the system", light: "light", dark: "dark" };
const nameTheme = () => theme?.setAttribute("aria-label", `Colours: ${THEMES[document.documentElement.dataset.theme ?? ""]}`);
theme?.addEventListener("click", () => {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
  nameTheme();
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let width = innerWidth;
addEventListener("resize", whenCalm(300, () => {
  if (Math.abs(innerWidth - width) < width / 5) return undefined; // Bokeh itself fits small changes
  width = innerWidth;
  return redraw();
}));
const PAPER_PX = 900; // scaled to the page, so that words of figures are as large as others
addEventListener("beforeprint", () => drawn().forEach((figure) => drawForPaper(figure, PAPER_PX)));
addEventListener("afterprint", () => {
  for (const figure of drawn()) {
    figure.querySelector(".live").style.width = "";
    figure.querySelectorAll(".paper").forEach((still) => still.remove());
  }
  redraw();
});

const live = document.querySelector("#live");
const follow = () => {
  const events = new EventSource("/api/v1/changes");
  events.addEventListener("open", () => { live.textContent = "live"; });
  events.addEventListener("error", () => { live.textContent = "not connected"; });
  events.addEventListener("changed", () => {
    live.textContent = `live, new data ${new Date().toLocaleTimeString()}`;
    if (!document.hidden) fillAll({ quiet: true });
    else main.dataset.missed = "yes";
  });
};
document.addEventListener("visibilitychange", () => {
  if (document.hidden || !main.dataset.missed) return;
  delete main.dataset.missed;
  fillAll({ quiet: true });
});
addEventListener("popstate", () => { showWindow(); fillAll(); showWho(); });

const begin = async () => {
  nameTheme();
  showWindow();
  if (plan) showPlan();
  const by = address().searchParams.get("who_by");
  if (by && who) document.querySelector("#who-by").value = by;
  showWho();
  if (!plan && blocks().length) await fill(blocks()[0]); // what a reader sees first does not wait for the others
  await (plan ? replan() : fillAll());
  main.dataset.ready = "yes";
  follow();
};
begin();
