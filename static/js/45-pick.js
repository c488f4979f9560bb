// Pickers and selections. A search box beside a select asks the server, while the user
// types, for options beyond those in the select; without script its form does.
//
// Selectable rows: the button shows their number, "x" selects the current row, and a
// shift-click selects the whole range.
(() => {
  "use strict";

  let last = null;
  const boxes = () => [...document.querySelectorAll("#pick td > input")];

  function tell() {
    const count = boxes().filter((box) => box.checked).length;
    for (const out of document.querySelectorAll("[data-picked]")) {
      out.textContent = count ? `(${count})` : "";
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("#pick td > input")) tell();
  });
  document.addEventListener("click", (event) => {
    // A click on the cell around a checkbox counts as a click on it.
    if (event.target.matches("#pick td:has(> input)")) event.target.firstElementChild.click();
    if (!event.target.matches("#pick td > input")) return;
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

  const typedFor = 150;
  const asked = new WeakMap();

  async function offer(box, signal) {
    const choice = document.getElementById(box.getAttribute("aria-controls"));
    const query = new URLSearchParams([[box.name, box.value]]);
    for (const { name, value } of choice.matches("select") ? [choice] : choice.querySelectorAll(":checked")) query.append(name, value);
    let why = "the server cannot be reached";
    try {
      const answer = await fetch(`${box.dataset.sought}&${query}`, { headers: { "HX-Request": "true" }, signal });
      why = answer.status === 401 ? "you are signed out" : "the server could not answer";
      if (!answer.ok) throw new Error(answer.statusText);
      choice.innerHTML = await answer.text();
    } catch {
      if (!signal.aborted) window.consoleToast(`The search did not work: ${why}`);
    }
  }

  document.addEventListener("input", ({ target }) => {
    if (!target.matches("[data-sought]")) return;
    asked.get(target)?.abort();
    const control = new AbortController();
    asked.set(target, control);
    setTimeout(() => control.signal.aborted || offer(target, control.signal), typedFor);
  });

  window.consolePick = () => {
    const row = document.querySelector("#pick tr.is-here") ?? document.activeElement?.closest("#pick tr");
    row?.querySelector("td > input")?.click();
  };
})();
