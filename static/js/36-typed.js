// Keeps text that is typed while an answer is awaited, although the answer was rendered
// from the form's former content.
(() => {
  "use strict";

  const typedAt = new WeakMap();
  const sentAt = new WeakMap();
  let typed = [];

  document.addEventListener("input", ({ target }) => typedAt.set(target, performance.now()));
  document.addEventListener("htmx:before:request", ({ detail }) => sentAt.set(detail.ctx, performance.now()));
  document.addEventListener("htmx:before:swap", ({ detail }) => {
    const since = [...document.querySelectorAll("main input")].filter((field) => typedAt.get(field) > sentAt.get(detail.ctx));
    typed = since.map((field) => [field, field.value]);
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const [field, value] of typed) if (field !== document.activeElement) field.value = value;
  });
})();
