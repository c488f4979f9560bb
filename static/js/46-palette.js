// The palette searches while the user types: arrow keys move through the results, Enter
// opens one. Recently opened things come first. They are kept in sessionStorage, until the
// tab is closed or the user signs out, because borrowers' names must not be stored on disk.
// Without script the field in the bar searches.
(() => {
  "use strict";

  const typedFor = 150;
  const most = 8;
  const store = "drawbridge.recent";
  // The page of a single thing has the thing's identifier in its path.
  const thing = /^\/console\/[a-z/-]+\/[^/]*\d[^/]*$/;
  let asked = null;

  const dialog = () => document.getElementById("palette");
  const field = () => document.getElementById("palette-q");
  const results = () => document.getElementById("palette-results");
  const hits = () => [...document.querySelectorAll("#palette-results a.hit")];
  const reader = () => document.querySelector("#who [data-reader]")?.dataset.reader;

  function recent() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(store));
      return kept?.reader === reader() ? kept.things : [];
    } catch {
      return [];
    }
  }

  function remember() {
    localStorage.removeItem(store); // where an earlier release kept it
    // After signing out, nothing may be left for the next user.
    if (!reader()) return sessionStorage.removeItem(store);
    if (!thing.test(location.pathname)) return undefined;
    const crumbs = [...document.querySelectorAll(".crumbs li")].map((crumb) => crumb.textContent.trim());
    const title = crumbs.pop();
    if (!title || document.querySelector("main .fault-page")) return undefined;
    const others = recent().filter(({ href }) => href !== location.pathname);
    const things = [{ href: location.pathname, title, detail: crumbs.join(", ") }, ...others].slice(0, most);
    return sessionStorage.setItem(store, JSON.stringify({ reader: reader(), things }));
  }

  function group(heading, things) {
    const box = Object.assign(document.createElement("div"), { className: "hits" });
    const list = document.createElement("ul");
    for (const { href, title, detail } of things) {
      const link = Object.assign(document.createElement("a"), { className: "hit", href });
      for (const [name, text] of [["icon i-history", ""], ["hit-title", title], ["hit-detail", detail]]) {
        link.append(Object.assign(document.createElement(text ? "span" : "i"), { className: name, textContent: text }));
      }
      list.append(document.createElement("li"));
      list.lastChild.append(link);
    }
    box.append(Object.assign(document.createElement("h2"), { textContent: heading }), list);
    return box;
  }

  function show(found, text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const known = recent().filter(({ href, title, detail }) => href !== location.pathname &&
      words.every((word) => `${title} ${detail}`.toLowerCase().includes(word)));
    results().innerHTML = found;
    if (known.length > 0) results().prepend(group("Recently opened", known));
    if (known.length > 0) results().querySelector(".empty")?.remove();
    mark(text ? hits()[0] : null);
  }

  const says = (title, text) => `<div class="empty" role="alert"><i class="icon i-cloud-off"></i><h2>${title}</h2><p>${text}</p></div>`;

  async function find() {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    const text = field().value.trim();
    try {
      const answer = await fetch(`/console/search?${new URLSearchParams({ q: text })}`, {
        headers: { "HX-Request": "true" }, signal: AbortSignal.any([signal, AbortSignal.timeout(8000)]),
      });
      const found = await answer.text();
      if (signal.aborted) return;
      if (answer.ok) show(found, text);
      else if (answer.status === 401) show(says("You are signed out", `<a href="/console/sign-in">Sign in again</a>`), text);
      else show(says("The search did not work", "The server could not answer. Try again in a moment."), text);
    } catch {
      if (!signal.aborted) show(says("The server cannot be reached", "What you type is searched for once it is back. Try again in a moment."), text);
    }
  }

  window.consolePalette = () => {
    if (!dialog()) return undefined;
    if (!dialog().open) dialog().showModal();
    field().select();
    if (hits().length === 0 || !field().value) find();
    return true;
  };

  function mark(next) {
    for (const hit of hits()) {
      hit.removeAttribute("data-here");
      hit.removeAttribute("id");
    }
    // The focus stays in the field: this tells a screen reader which one Enter opens.
    field().removeAttribute("aria-activedescendant");
    if (!next) return;
    next.setAttribute("data-here", "");
    next.id = "palette-here";
    field().setAttribute("aria-activedescendant", next.id);
    next.scrollIntoView({ block: "nearest" });
  }

  let typed = 0;
  // A click or typing opens the palette, not focus alone, so that the Tab key can pass
  // through the field.
  for (const kind of ["click", "input"]) {
    document.addEventListener(kind, (event) => {
      if (event.target === field() && kind === "input") {
        clearTimeout(typed);
        asked?.abort();
        mark(null); // the results are for the previous text
        typed = setTimeout(find, typedFor);
      }
      if (event.target.id !== "find" || !dialog() || dialog().open) return;
      const text = event.target.value;
      event.target.value = "";
      field().value = text;
      window.consolePalette();
      field().setSelectionRange(text.length, text.length);
      if (text) find();
    });
  }

  document.addEventListener("keydown", (event) => {
    if (!dialog()?.open || !dialog().contains(event.target)) return;
    const all = hits();
    const here = all.findIndex((hit) => hit.hasAttribute("data-here"));
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark(all[here < 0 && step < 0 ? all.length - 1 : (here + step + all.length) % all.length]);
      if (event.target !== field()) field().focus();
    } else if (event.key === "Enter" && event.target === field() && here >= 0) {
      event.preventDefault();
      all[here].click();
    }
  });

  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("action") === "/console/sign-out") sessionStorage.removeItem(store);
  });
  document.addEventListener("DOMContentLoaded", remember);
})();
