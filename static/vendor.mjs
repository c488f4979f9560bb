// Copies the few third-party files that the console serves from node_modules to
// vendor/, where the Go package embeds them. Run it after `npm ci`.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const vendor = join(here, "vendor");

const files = {
  "htmx.min.js": "htmx.org/dist/htmx.min.js",
  "hx-sse.js": "htmx.org/dist/ext/hx-sse.min.js",
  "inter-latin-ext.woff2": "@fontsource-variable/inter/files/inter-latin-ext-wght-normal.woff2",
  "inter-latin.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
};

const licences = {
  "htmx.org": "htmx.org/LICENSE",
  "lucide-static": "lucide-static/LICENSE",
  "@fontsource-variable/inter": "@fontsource-variable/inter/LICENSE",
};

// Every file appears whole or not at all: a build that runs beside this script
// must not embed half a file.
function put(name, write) {
  const part = join(vendor, `.${name}.part`);
  write(part);
  renameSync(part, join(vendor, name));
}

// The style sheet is made of it when the program starts; see static.go.
function sprite() {
  const names = readFileSync(join(here, "icons.txt"), "utf8")
    .split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
  const symbols = [...new Set(names)].sort().map((name) => {
    const source = join(modules, "lucide-static/icons", `${name}.svg`);
    if (!existsSync(source)) {
      throw new Error(`icons.txt names "${name}", which lucide-static does not have`);
    }
    const svg = readFileSync(source, "utf8");
    const body = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.lastIndexOf("</svg>"));
    return `<symbol id="${name}" viewBox="0 0 24 24">${body.replace(/\s*\n\s*/g, "")}</symbol>`;
  });
  const notice = "<!-- Lucide (ISC, MIT): see LICENSES.txt -->";
  return `<svg xmlns="http://www.w3.org/2000/svg">${notice}\n${symbols.join("\n")}\n</svg>\n`;
}

function licenceTexts() {
  return Object.entries(licences).map(([name, path]) => {
    const { version } = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(modules, path), "utf8").trim()}\n`;
  }).join(`\n${"-".repeat(72)}\n\n`);
}

mkdirSync(vendor, { recursive: true });
for (const [name, path] of Object.entries(files)) {
  put(name, (part) => copyFileSync(join(modules, path), part));
}
put("icons.svg", (part) => writeFileSync(part, sprite()));
put("LICENSES.txt", (part) => writeFileSync(part, licenceTexts()));
