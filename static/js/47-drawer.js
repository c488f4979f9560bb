// The drawer shows a delivery beside the list: a click on its row or the key o opens it, j
// and k move through the list, Enter opens the page, Escape closes. Links work as usual.
(() => {
  "use strict";

  const wide = matchMedia("(min-width: 1100px)");
  const rows = `main .table tbody tr:has(a.lead[href^="/console/deliveries/"])`;
  const pageOf = (row) => row.querySelector("a.lead").href;
  const spinnerAfter = 150;
  let drawer = null;
  let shown = null;
  let pending = 0;

  const usable = () => wide.matches && document.getElementById("live")?.querySelector(rows);

  function make() {
    drawer = document.createElement("aside");
    drawer.className = "drawer";
    drawer.setAttribute("aria-label", "Delivery beside the list");
    drawer.innerHTML = `<div class="drawer-head"><a class="button button-small">Open the page</a>` +
      `<button type="button" class="button button-small">Close</button></div><div id="drawer-body"></div>`;
    drawer.querySelector("button").addEventListener("click", close);
    document.querySelector(".shell").append(drawer);
    document.documentElement.classList.add("has-drawer");
  }

  function close() {
    clearTimeout(pending);
    drawer?.remove();
    drawer = null;
    document.documentElement.classList.remove("has-drawer");
    for (const row of document.querySelectorAll(rows)) row.removeAttribute("data-shown");
    const row = [...document.querySelectorAll(rows)].find((row) => pageOf(row) === shown);
    row?.querySelector("a.lead").focus({ preventScroll: true });
    shown = null;
  }

  // If loading is slow, the previous content is removed: its buttons act on the previous delivery.
  async function fill(href) {
    const body = drawer.querySelector("#drawer-body");
    const write = (html) => { if (shown === href) body.innerHTML = html; };
    const say = (text) => write(`<p role="status">${text}</p>`);
    const slow = setTimeout(say, spinnerAfter, "Loading the delivery");
    try {
      const answer = await fetch(href, { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(8000) });
      const text = await answer.text();
      if (answer.ok) write(text);
      else if (answer.status === 401) say(`You are signed out. <a href="/console/sign-in">Sign in again</a>.`);
      else say("The delivery could not be loaded: the server could not answer. Try again in a moment.");
    } catch {
      say("The delivery could not be loaded: the server cannot be reached.");
    } finally {
      clearTimeout(slow);
    }
  }

  function show(row) {
    if (!drawer) make();
    shown = pageOf(row);
    for (const other of document.querySelectorAll(rows)) other.toggleAttribute("data-shown", other === row);
    drawer.querySelector("a").href = shown;
    fill(shown);
    row.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("htmx:after:swap", () => {
    if (!drawer) return;
    for (const row of document.querySelectorAll(rows)) row.toggleAttribute("data-shown", pageOf(row) === shown);
  });

  // j and k show a row only after the user has stopped on it.
  function follow(row) {
    if (!drawer || !row.matches(rows)) return;
    clearTimeout(pending);
    pending = setTimeout(() => show(row), 120);
  }

  window.consoleDrawer = {
    follow,
    open: () => {
      const row = document.querySelector(`${rows}.is-here`) ?? document.activeElement?.closest(rows);
      if (row && usable()) show(row);
    },
  };

  document.addEventListener("click", (event) => {
    const row = event.target.closest(rows);
    if (!row || event.defaultPrevented || event.ctrlKey || event.metaKey || !usable()) return;
    if (event.target.closest("a, button, input, label, summary, td:has(> input)") || String(window.getSelection())) return;
    event.preventDefault();
    window.consoleRow(row);
    show(row);
  }, true);

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !drawer || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    close();
  });
})();
