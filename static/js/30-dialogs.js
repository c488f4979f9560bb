// Dialogs open from [data-open] and close from [data-close], the backdrop and Escape. An
// opener that is a link leads, without script, to the same form on a page.
(() => {
  "use strict";

  let pressed = null;
  document.addEventListener("pointerdown", ({ target }) => { pressed = target; });

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener && !event.ctrlKey && !event.metaKey) {
      const dialog = document.getElementById(opener.dataset.open);
      if (!dialog) return;
      event.preventDefault();
      opener.closest("[popover]")?.hidePopover();
      dialog.showModal();
      return;
    }
    if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
    // Ignore the second click on the opener, and a text selection that ends outside the dialog.
    if (event.target instanceof HTMLDialogElement && event.target === pressed && event.detail < 2) {
      const box = event.target.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right &&
        event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside) event.target.close();
    }
  });

  // A finished action reports {text, href, label, token} in an HX-Trigger header. From then
  // on the dialog's form counts as a new one, identified by the new token.
  document.addEventListener("console:done", (event) => {
    const dialog = event.target.closest("dialog");
    const form = dialog?.querySelector("form:not([method=dialog])");
    form?.reset();
    if (form?.elements.token) form.elements.token.value = event.detail.token;
    dialog?.close();
    window.consoleToast(event.detail.text, event.detail);
  });

  // Preferences are applied at once; the server stores them.
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form.preferences") || !event.submitter?.name) return;
    event.preventDefault();
    const { name, value } = event.submitter;
    prefer(name, value);
    fetch(event.target.action, {
      method: "POST", body: new URLSearchParams({ [name]: value }), redirect: "manual", keepalive: true,
    }).catch(() => window.consoleToast("The preference could not be saved"));
  });

  function prefer(name, value) {
    const root = document.documentElement;
    if (value === "system" || value === "comfortable") delete root.dataset[name];
    else root.dataset[name] = value;
    for (const button of document.querySelectorAll(`.preferences [name="${name}"]`)) {
      button.setAttribute("aria-pressed", String(button.value === value));
    }
  }
})();
