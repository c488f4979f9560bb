// Small parts: copy buttons, tabs, toasts, and rows that act as links.
(() => {
  "use strict";

  // Screen readers announce what a script did: the container is a polite live region.
  function toast(text, link) {
    const box = document.createElement("div");
    box.className = "toast";
    box.append(text);
    if (link?.href) {
      const anchor = document.createElement("a");
      anchor.href = link.href;
      anchor.textContent = link.label;
      box.append(anchor);
    }
    document.getElementById("toasts")?.append(box);
    const leave = () => box.matches(":hover, :focus-within") ? setTimeout(leave, 2000) : box.remove();
    setTimeout(leave, link ? 12000 : 5000);
  }
  window.consoleToast = toast;

  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }

  class CopyButton extends HTMLElement {
    connectedCallback() {
      if (this.bound) return;
      this.bound = true;
      this.addEventListener("click", async (event) => {
        const button = event.target.closest("[data-copy]");
        if (!button) return;
        try {
          await copy(button.dataset.copy);
          button.classList.add("copied");
          setTimeout(() => button.classList.remove("copied"), 1600);
          toast("Copied to the clipboard");
        } catch {
          toast("The browser did not allow copying");
        }
      });
    }
  }
  customElements.define("copy-button", CopyButton);

  let tabSets = 0;
  class TabSet extends HTMLElement {
    connectedCallback() {
      const bar = this.querySelector(":scope > .tabs-bar");
      const panels = [...this.querySelectorAll(":scope > [data-tab]")];
      if (!bar || bar.childElementCount > 0) return;
      const set = ++tabSets;
      bar.setAttribute("role", "tablist");
      this.tabs = panels.map((panel, i) => {
        const tab = document.createElement("button");
        tab.type = "button";
        tab.className = "segment";
        tab.id = `tab-${set}-${i}`;
        tab.textContent = panel.dataset.tab;
        tab.setAttribute("role", "tab");
        panel.id = `tabpanel-${set}-${i}`;
        panel.setAttribute("role", "tabpanel");
        panel.setAttribute("aria-labelledby", tab.id);
        tab.setAttribute("aria-controls", panel.id);
        tab.addEventListener("click", () => this.choose(i));
        tab.addEventListener("keydown", (event) => this.move(event, i));
        bar.append(tab);
        return tab;
      });
      this.panels = panels;
      this.choose(0);
    }

    choose(chosen) {
      this.tabs.forEach((tab, i) => {
        tab.setAttribute("aria-selected", String(i === chosen));
        tab.tabIndex = i === chosen ? 0 : -1;
        this.panels[i].hidden = i !== chosen;
      });
    }

    move(event, from) {
      const last = this.tabs.length - 1;
      const to = { ArrowRight: from === last ? 0 : from + 1, ArrowLeft: from === 0 ? last : from - 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.choose(to);
      this.tabs[to].focus();
    }
  }
  customElements.define("tab-set", TabSet);

  // Truncated text is shown whole on hover.
  document.addEventListener("pointerover", (event) => {
    const cell = event.target.closest?.(".table :is(td, th), .crumbs li");
    if (!cell) return;
    const cut = [cell, ...cell.querySelectorAll("*")].some((part) => part.clientWidth && part.scrollWidth > part.clientWidth + 1);
    cell.title = cut ? cell.textContent.trim().replace(/\s+/g, " ") : "";
  });

  // A click anywhere on a row opens it, unless text is being selected or another element
  // was clicked.
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".table tbody tr")?.querySelector("a.lead");
    if (!link || event.defaultPrevented || event.target.closest("a, button, input, label, summary, td:has(> input)")) return;
    if (String(window.getSelection())) return;
    if (event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
    else window.location.assign(link.href);
  });
})();
