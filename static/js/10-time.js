// <relative-time> shows how long ago its <time> is, or how long until then, in the reader's
// language and zone. The page's own text stays in the light DOM, so that live updates
// compare what the server wrote, not what is displayed.
(() => {
  "use strict";

  const day = 86400;
  const root = document.documentElement;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const auto = "zoneAuto" in root.dataset;

  // The server also writes times in the reader's zone, so it is told the browser's zone,
  // once and after each change. The next page is entirely in that zone.
  if (auto && own && root.dataset.zone !== undefined && root.dataset.zone !== own) {
    fetch("/console/preferences", {
      method: "POST", body: new URLSearchParams({ zone: `auto:${own}` }), redirect: "manual", keepalive: true,
    }).catch(() => {});
  }
  const timeZone = root.dataset.zone || "UTC";
  window.consoleZone = timeZone;
  const format = (options) => new Intl.DateTimeFormat(undefined, { timeZone, ...options });
  const exact = format({ dateStyle: "medium", timeStyle: "long" });
  const sameYear = format({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const otherYear = format({ year: "numeric", month: "short", day: "numeric" });
  const year = format({ year: "numeric" });
  const utc = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" });
  const shown = new Set();
  let printing = false;

  function length(seconds) {
    if (seconds < 60) return `${Math.max(1, Math.floor(seconds))} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    return `${Math.floor(seconds / 3600)} h`;
  }

  function words(at, now, due) {
    const seconds = (now - at) / 1000;
    if (Math.abs(seconds) >= day) {
      return (year.format(at) === year.format(now) ? sameYear : otherYear).format(at);
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
      // Within a row, the row's own link takes the focus, and shows the time with it.
      if (!this.closest("tr, a, button, [aria-hidden]")) this.shadowRoot.firstChild.tabIndex = 0;
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
      const text = printing ? source.textContent : words(at, now, this.hasAttribute("due"));
      if (out.textContent === text && out.dateTime === source.dateTime) return;
      out.dateTime = source.dateTime;
      out.textContent = text;
      this.exact = `${exact.format(at)}\n${utc.format(at)} UTC`;
      out.setAttribute("aria-description", exact.format(at));
    }
  }

  // One tooltip shows the absolute time, on hover and on focus.
  const tip = document.createElement("div");
  tip.className = "time-tip";
  tip.setAttribute("aria-hidden", "true");
  tip.popover = "manual";
  const timeAt = (target) => target.closest?.("relative-time") ??
    (target.matches?.("tr :focus-visible") ? target.closest("tr").querySelector("relative-time:not([due])") : null);

  function tell(element) {
    if (!element?.exact) return quiet();
    if (!tip.isConnected) document.body.append(tip);
    tip.textContent = element.exact;
    tip.showPopover();
    const box = element.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(box.left, 8), window.innerWidth - size.width - 8);
    const above = box.top - size.height - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : box.bottom + 6}px`;
  }

  function quiet() {
    if (tip.isConnected && tip.matches(":popover-open")) tip.hidePopover();
  }

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const element = event.target.closest?.("relative-time");
    if (element) tell(element);
    else quiet();
  });
  document.addEventListener("focusin", (event) => {
    const element = timeAt(event.target);
    if (element) tell(element);
    else quiet();
  });
  document.addEventListener("focusout", quiet);
  document.addEventListener("scroll", quiet, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") quiet();
  });

  customElements.define("relative-time", RelativeTime);
  function showAll() {
    const now = new Date();
    for (const element of shown) element.show(now);
  }
  setInterval(() => {
    if (!document.hidden) showAll();
  }, 1000);

  // A printed page does not say when it was printed, so relative times are no use on it.
  for (const [event, begins] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      printing = begins;
      showAll();
    });
  }
})();
