// Rows to select: the button says how many, "x" selects the row at hand, and a
// click with the shift key selects all between.
(() => {
  "use strict";

  let last = null;
  const boxes = () => [...document.querySelectorAll("#pick .pick input")];

  function tell() {
    const count = boxes().filter((box) => box.checked).length;
    for (const out of document.querySelectorAll("[data-picked]")) {
      out.textContent = count ? `(${count})` : "";
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches(".pick input")) tell();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.matches(".pick input")) return;
    const all = boxes();
    const from = all.indexOf(last);
    const to = all.indexOf(event.target);
    if (event.shiftKey && from >= 0) {
      for (const box of all.slice(Math.min(from, to), Math.max(from, to) + 1)) box.checked = event.target.checked;
    }
    last = event.target;
    tell();
  });
  document.addEventListener("htmx:after:swap", tell);

  window.consolePick = () => {
    const row = document.querySelector("#pick tr.is-here") ?? document.activeElement?.closest("#pick tr");
    row?.querySelector(".pick input")?.click();
  };
})();
