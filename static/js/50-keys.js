// The keyboard: single keys, listed under "?", where users who dictate or use other input
// methods can switch them off.
(() => {
  "use strict";

  const off = "drawbridge.keys.off";
  let went = 0;

  const typing = (element) => element.closest("input, textarea, select, [contenteditable]");
  const rows = () => [...document.querySelectorAll("main .table tbody tr:has(a.lead)")];

  // The current row is remembered by id, because an update of the list removes its mark.
  let at = "";
  function mark(row) {
    at = row?.id ?? at;
    for (const each of rows()) each.classList.toggle("is-here", each.id === at);
  }
  window.consoleRow = mark;
  document.addEventListener("htmx:after:swap", () => at && mark());

  function step(by) {
    const all = rows();
    if (all.length === 0) return;
    const here = all.findIndex((row) => row.classList.contains("is-here"));
    const next = all[Math.min(Math.max(here + by, 0), all.length - 1)];
    mark(next);
    next.querySelector("a.lead")?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
    window.consoleDrawer?.follow(next);
  }

  function theme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
    document.querySelector(`.preferences [value="${now === "dark" ? "light" : "dark"}"]`)?.click();
  }

  const filters = () => {
    const box = document.getElementById("filters");
    if (!box) return;
    box.open = true;
    box.querySelector("select, input:not([type=hidden])").focus();
  };

  const find = () => window.consolePalette?.() ?? document.getElementById("find")?.select();
  const actions = {
    "/": find,
    j: () => step(1),
    k: () => step(-1),
    f: filters,
    x: () => window.consolePick(),
    o: () => window.consoleDrawer?.open(),
    p: () => document.querySelector("live-status") && window.consoleLive.toggle(),
    t: theme,
    "?": () => document.getElementById("keys")?.showModal(),
    g: () => { went = Date.now(); },
  };

  function act(key) {
    if (Date.now() - went < 1500) {
      went = 0;
      const link = document.querySelector(`[data-go="${CSS.escape(key)}"]`);
      if (link) return link.click(), true;
    }
    const button = document.querySelector(`main [data-key="${CSS.escape(key)}"]`);
    // Focus the button first, so that what it opens can return the focus to it.
    if (button) return button.focus(), button.click(), true;
    if (!actions[key]) return false;
    actions[key]();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return find();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (typing(event.target) || document.querySelector("dialog[open]") || localStorage.getItem(off)) return;
    if (act(event.key)) event.preventDefault();
  });

  // Content inserted above the focused element must not push it out of the window.
  const inWindow = (element) => {
    const box = element.getBoundingClientRect();
    return box.bottom > 0 && box.top < window.innerHeight;
  };
  let held = null;
  document.addEventListener("htmx:before:swap", () => {
    const at = document.activeElement;
    held = at && at !== document.body && inWindow(at) ? at : null;
  });
  document.addEventListener("htmx:after:swap", () => {
    if (held?.isConnected && held === document.activeElement && !inWindow(held)) {
      held.scrollIntoView({ block: "nearest" });
    }
  });

  // Append the pages of the rail to the list of keys.
  function listPages() {
    const list = document.querySelector("#keys .keys");
    for (const link of list ? document.querySelectorAll("[data-go]") : []) {
      const keys = document.createElement("dt");
      for (const key of ["g", link.dataset.go]) keys.append(Object.assign(document.createElement("kbd"), { textContent: key }));
      const page = Object.assign(document.createElement("dd"), { textContent: link.firstChild.textContent.trim() });
      list.append(keys, page);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    listPages();
    const box = document.getElementById("keys-on");
    if (!box) return;
    box.checked = !localStorage.getItem(off);
    box.addEventListener("change", () => {
      if (box.checked) localStorage.removeItem(off);
      else localStorage.setItem(off, "1");
    });
  });
})();
