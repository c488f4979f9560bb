// Links marked data-ask lead to a form that asks before a change. This script opens the
// form in a dialog over the page; without script the link leads to the same form on a page
// of its own.
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

  // A refused form shows the reason on its own page; an unreachable server is reported at
  // the link.
  async function ask(link) {
    let answer;
    try {
      answer = await fetch(link.href, { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(1800) });
    } catch {
      return window.consoleRefuse(link, "away");
    }
    if (answer.status === 401) return window.consoleRefuse(link, "signedOut");
    if (answer.status >= 500) return window.consoleRefuse(link, "broken");
    const text = await answer.text();
    // The form is too large for a dialog, or requires re-authentication first.
    if (!answer.ok || answer.redirected || !text) return window.location.assign(link.href);
    const box = frame();
    box.innerHTML = text;
    box.showModal();
    (box.querySelector("[autofocus]") ?? box.querySelector("form input:not([type=hidden]), form select, form textarea"))?.focus();
    return undefined;
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-ask]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    ask(link);
  });
})();
