// The palette finds while one types: results come as htmx brings them, arrow keys
// move through them, Enter opens. Without htmx the form itself searches.
(() => {
  "use strict";

  const dialog = () => document.getElementById("palette");
  const field = () => document.getElementById("palette-q");
  const hits = () => [...document.querySelectorAll("#palette-results a.hit")];

  window.consolePalette = () => {
    if (!dialog()) return undefined;
    if (!dialog().open) dialog().showModal();
    field().select();
    if (window.htmx && hits().length === 0) window.htmx.trigger(field(), "input");
    return true;
  };

  function mark(next) {
    for (const hit of hits()) hit.removeAttribute("data-here");
    next?.setAttribute("data-here", "");
    next?.scrollIntoView({ block: "nearest" });
  }

  // A click or the first letter opens it, not the focus alone: whoever walks over
  // the field with the Tab key goes on to the page.
  for (const kind of ["click", "input"]) {
    document.addEventListener(kind, (event) => {
      if (event.target.id !== "find" || !window.htmx || !dialog() || dialog().open) return;
      const text = event.target.value;
      window.consolePalette();
      if (!text) return;
      event.target.value = "";
      field().value = text;
      field().setSelectionRange(text.length, text.length);
      window.htmx.trigger(field(), "input");
    });
  }

  document.addEventListener("keydown", (event) => {
    if (!dialog()?.open || !dialog().contains(event.target)) return;
    const all = hits();
    const here = all.findIndex((hit) => hit.hasAttribute("data-here"));
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark(all[(here + step + all.length) % all.length]);
      if (event.target !== field()) field().focus();
    } else if (event.key === "Enter" && event.target === field() && here >= 0) {
      event.preventDefault();
      all[here].click();
    }
  });
})();
