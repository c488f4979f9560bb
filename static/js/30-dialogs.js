// Dialogs open from [data-open] and close from [data-close], the backdrop and
// Escape. Where the opener is a link, it leads to the same form on a page.
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
    // Neither the second click on what opened it, nor a selection that is drawn out of it.
    if (event.target instanceof HTMLDialogElement && event.target === pressed && event.detail < 2) {
      const box = event.target.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right &&
        event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside) event.target.close();
    }
  });

  // A finished action says so: {text, href, label, token} in an HX-Trigger header.
  // The form in the dialog is another one from now on, known by the new token.
  document.addEventListener("console:done", (event) => {
    const dialog = event.target.closest("dialog");
    const form = dialog?.querySelector("form:not([method=dialog])");
    form?.reset();
    if (form?.elements.token) form.elements.token.value = event.detail.token;
    dialog?.close();
    window.consoleToast(event.detail.text, event.detail);
  });

  // Preferences apply at once; the server remembers them.
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
