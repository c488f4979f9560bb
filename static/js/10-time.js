// <relative-time> shows how long ago its <time> is, or how long until then, in
// the reader's words and zone. The page's own text stays in the light tree, so
// that live updates compare what the server wrote, never what was shown.
(() => {
  "use strict";

  const day = 86400;
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  const sameYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const otherYear = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
  const utc = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" });
  const shown = new Set();

  function length(seconds) {
    if (seconds < 60) return `${Math.max(1, Math.floor(seconds))} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    return `${Math.floor(seconds / 3600)} h`;
  }

  function words(at, now, due) {
    const seconds = (now - at) / 1000;
    if (Math.abs(seconds) >= day) {
      return (at.getFullYear() === now.getFullYear() ? sameYear : otherYear).format(at);
    }
    if (due && seconds >= 0) return "due now";
    if (Math.abs(seconds) < 1) return "now";
    return seconds < 0 ? `in ${length(-seconds)}` : `${length(seconds)} ago`;
  }

  class RelativeTime extends HTMLElement {
    connectedCallback() {
      if (!this.shadowRoot) this.attachShadow({ mode: "open" }).append(document.createElement("time"));
      this.watch ??= new MutationObserver(() => this.show(new Date()));
      this.watch.observe(this, { subtree: true, childList: true, attributes: true, attributeFilter: ["datetime"] });
      shown.add(this);
      this.show(new Date());
    }

    disconnectedCallback() {
      shown.delete(this);
      this.watch.disconnect();
    }

    show(now) {
      const source = this.querySelector("time");
      const at = new Date(source?.dateTime ?? NaN);
      const out = this.shadowRoot.firstChild;
      if (Number.isNaN(at.getTime())) {
        out.textContent = this.textContent;
        return;
      }
      const text = words(at, now, this.hasAttribute("due"));
      if (out.textContent === text && out.dateTime === source.dateTime) return;
      out.dateTime = source.dateTime;
      out.textContent = text;
      out.title = `${exact.format(at)}\n${utc.format(at)} UTC`;
    }
  }

  customElements.define("relative-time", RelativeTime);
  setInterval(() => {
    if (document.hidden) return;
    const now = new Date();
    for (const element of shown) element.show(now);
  }, 1000);
})();
