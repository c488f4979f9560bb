// What the documentation adds to plain HTML. Without script everything can still be read;
// only the copy buttons, the theme switch and the filter are missing.

const status = document.querySelector("[data-status]");

/** Says something to screen readers. */
function announce(text) {
  if (status) status.textContent = text;
}

for (const figure of document.querySelectorAll("[data-copy]")) {
  const code = figure.querySelector("code");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${figure.querySelector("pre").getAttribute("aria-label")}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent.trimEnd() + "\n");
      button.textContent = "Copied";
      announce("Copied");
    } catch {
      // Without clipboard access (plain HTTP on another host), select the code instead.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
      announce("Selected; press the copy keys");
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  figure.append(button);
}

const themeSwitch = document.querySelector("[data-theme-switch]");
if (themeSwitch) {
  const themes = ["system", "light", "dark"];
  const current = () => document.documentElement.dataset.theme ?? "system";
  const label = () => { themeSwitch.textContent = `Theme: ${current()}`; };
  themeSwitch.addEventListener("click", () => {
    const next = themes[(themes.indexOf(current()) + 1) % themes.length];
    localStorage.setItem("theme", next);
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    label();
    announce(`Theme: ${next}`);
  });
  label();
}

// On a narrow screen the menu starts folded.
const fold = document.querySelector("[data-fold]");
if (fold) {
  const narrow = matchMedia("(max-width: 59.99rem)");
  const adapt = () => { fold.open = !narrow.matches; };
  adapt();
  narrow.addEventListener("change", adapt);
  fold.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) fold.open = false;
  });
}

// The language that was opened last stays open on the next visit.
const languages = document.querySelector("[data-languages]");
if (languages) {
  const remembered = localStorage.getItem("language");
  for (const sample of languages.querySelectorAll("details")) {
    if (remembered) sample.open = sample.dataset.language === remembered;
    sample.addEventListener("toggle", () => {
      if (sample.open) localStorage.setItem("language", sample.dataset.language);
    });
  }
}

const filter = document.querySelector("[data-filter]");
if (filter) {
  const operations = [...document.querySelectorAll("[data-operation]")];
  const groups = [...document.querySelectorAll(".group")];
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const operation of operations) {
      const text = operation.querySelector(".operation-head").textContent.toLowerCase();
      operation.hidden = !words.every((word) => text.includes(word));
      if (!operation.hidden) shown += 1;
    }
    for (const group of groups) {
      group.hidden = !group.querySelector("[data-operation]:not([hidden])");
    }
    announce(`${shown} operations`);
  });
}

// The table of contents highlights the section in view.
const entries = new Map();
for (const link of document.querySelectorAll(".contents a")) {
  const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (target) entries.set(target, link);
}
if (entries.size > 0) {
  const visible = new Set();
  const observer = new IntersectionObserver((changes) => {
    for (const change of changes) {
      if (change.isIntersecting) visible.add(change.target);
      else visible.delete(change.target);
    }
    const first = [...entries.keys()].find((target) => visible.has(target));
    if (!first) return;
    for (const [target, link] of entries) {
      if (target === first) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-64px 0px -60% 0px" });
  for (const target of entries.keys()) observer.observe(target);
}
