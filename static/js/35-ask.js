// Links marked data-ask lead to a form that asks before it changes something.
// Here the form opens in a dialog over the page; without script, or when it
// cannot be fetched, the link leads to the same form on a page of its own.
(() => {
  "use strict";

  let dialog;

  function frame() {
    if (dialog?.isConnected) return dialog;
    dialog = document.createElement("dialog");
    dialog.className = "dialog";
    dialog.id = "ask";
    dialog.setAttribute("aria-labelledby", "asked-title");
    document.body.append(dialog);
    return dialog;
  }

  async function ask(link) {
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } });
    const text = await answer.text();
    if (!answer.ok) throw new Error(String(answer.status));
    const box = frame();
    box.innerHTML = text;
    box.showModal();
    (box.querySelector("[autofocus]") ?? box.querySelector("form input:not([type=hidden]), form select, form textarea"))?.focus();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-ask]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    ask(link).catch(() => window.location.assign(link.href));
  });
})();
