// Pressing a button always has a visible result. Before a form is sent, the script checks
// that the server is reachable and the user signed in. If not, the reason appears at the
// button and takes the focus, and the form keeps its input. Pages that could not be shown
// retry by themselves.
(() => {
  "use strict";

  const here = "/console/here";
  const lookTimeout = 1500;
  const spinnerAfter = 150;
  const lookEvery = 3000;
  const leavesWithin = 10000;
  const cleared = new WeakSet();
  const asking = new WeakSet();
  const pressed = new WeakMap();
  let leaving = null;

  const guest = () => document.body.classList.contains("alone");
  const refusals = {
    away: ["The server cannot be reached.", "Nothing was saved, and what you typed is still here. Try again in a moment."],
    broken: ["The server cannot use its database.", "Nothing was saved, and what you typed is still here. Try again in a moment."],
    signedOut: ["You are signed out.", "Nothing was saved, and what you typed is still here."],
    unproved: ["Confirm your identity first.", "Nothing was saved, and what you typed is still here."],
  };
  // By refusal: the page to open in another tab, its link, and the message after returning.
  const ways = {
    signedOut: ["/console/sign-in", "Sign in in a new tab", "You are signed in again."],
    unproved: ["/console/account/confirm", "Confirm in a new tab", "Thank you."],
  };

  // Returns the server's state: "" if it is available, otherwise the name of a refusal.
  // Some forms require a recent re-authentication.
  async function look(proof) {
    try {
      const answer = await fetch(proof ? `${here}?proof=needed` : here, {
        headers: { "HX-Request": "true" }, cache: "no-store", signal: AbortSignal.timeout(lookTimeout),
      });
      if (answer.status >= 500) return "broken";
      if (proof && answer.status === 403) return "unproved";
      return answer.status === 401 && !guest() ? "signedOut" : "";
    } catch {
      return "away";
    }
  }

  function busy(control, on) {
    if (!control) return;
    if (on) control.setAttribute("aria-busy", "true");
    else control.removeAttribute("aria-busy");
  }

  // Shows beside a control why nothing was done, and focuses the reason.
  function refuse(control, why) {
    const [title, text] = refusals[why];
    const box = document.createElement("div");
    box.className = "press-fault";
    box.setAttribute("role", "alert");
    box.tabIndex = -1;
    const strong = document.createElement("b");
    strong.textContent = title;
    box.append(strong, ` ${text}`);
    if (ways[why]) {
      const link = document.createElement("a");
      [link.href, link.textContent] = ways[why];
      link.target = "_blank";
      box.append(" ", link, ", then press again here.");
      watch(box, why);
    }
    const row = control.closest(".dialog-acts, .acts, .page-acts, .menu-line, td, th") ?? control;
    row.after(box);
    if (row.matches("td, th")) row.append(box);
    box.focus();
    box.scrollIntoView({ block: "nearest" });
  }
  window.consoleRefuse = refuse;

  // Replaces the previous refusal.
  function refuseAgain(target, why) {
    for (const old of document.querySelectorAll(".press-fault")) old.remove();
    refuse(pressed.get(target) ?? target, why);
  }

  // Tells users who return signed in, or re-authenticated, that they can go on.
  function watch(box, why) {
    const back = async () => {
      if (!box.isConnected) return document.removeEventListener("visibilitychange", back);
      if (document.hidden || (await look(why === "unproved")) !== "") return undefined;
      box.textContent = `${ways[why][2]} Press the button once more.`;
      return document.removeEventListener("visibilitychange", back);
    };
    document.addEventListener("visibilitychange", back);
  }

  async function ask(form, submitter) {
    let control = submitter?.matches(".visually-hidden") ? null : submitter;
    asking.add(form);
    control ??= form.querySelector("[type=submit]:not(.visually-hidden)");
    pressed.set(form, control);
    for (const old of document.querySelectorAll(".press-fault")) old.remove();
    const spinner = setTimeout(() => busy(control, true), spinnerAfter);
    const why = await look("proof" in form.dataset);
    const rest = () => {
      clearTimeout(spinner);
      asking.delete(form);
      busy(control, false);
    };
    if (why) return rest(), refuse(control ?? form, why);
    cleared.add(form);
    leaving = null;
    form.requestSubmit(submitter);
    // A form that failed validation was not sent; the next press checks again.
    cleared.delete(form);
    if (leaving !== form) return rest();
    setTimeout(rest, leavesWithin);
    return addEventListener("pagehide", rest, { once: true });
  }

  // While the answer page is loading, a second press would replace it, and so lose a secret
  // that only the first answer shows. A download leaves the page as it is.
  addEventListener("submit", ({ target, defaultPrevented }) => {
    if (!defaultPrevented && !("stays" in target.dataset)) leaving = target;
  });

  // This handler runs before all others, including htmx's.
  addEventListener("submit", (event) => {
    const form = event.target;
    const { submitter } = event;
    // A field named "method" or "action" would hide the form's property.
    const action = submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? "";
    const preference = form.matches("form.preferences") && submitter?.name;
    if (cleared.has(form) || preference || form.getAttribute("method") === "dialog") return;
    if (!new URL(action, location.href).pathname.startsWith("/console")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!asking.has(form)) ask(form, submitter);
  }, true);

  // The server became unreachable after the check, or when an option was selected.
  document.addEventListener("htmx:error", (event) => {
    if (event.target.matches?.("form, select")) refuseAgain(event.target, "away");
  });
  document.addEventListener("htmx:response:error", (event) => {
    const { status } = event.detail.ctx.response;
    if (!event.target.matches?.("select")) return;
    if (status === 401) refuseAgain(event.target, "signedOut");
    else if (status >= 500) refuseAgain(event.target, "broken");
  });

  class RetryPage extends HTMLElement {
    connectedCallback() {
      this.timer ??= setInterval(async () => {
        if (!document.hidden && (await look()) === "") location.reload();
      }, lookEvery);
    }

    disconnectedCallback() {
      clearInterval(this.timer);
    }
  }
  customElements.define("retry-page", RetryPage);
})();
