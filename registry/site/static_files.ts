/**
 * The site's style sheet and icon, under names that change with their bytes, so that they are cached for ever.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A file of the site. */
export interface StaticFile {
  readonly path: string;
  readonly type: string;
  readonly bytes: string;
}

function load(name: string, type: string): StaticFile {
  const bytes = readFileSync(new URL(`./static/${name}`, import.meta.url), "utf8");
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  return { path: `/static/${name.replace(".", `.${hash}.`)}`, type, bytes };
}

/** The style sheet. */
export const STYLE_SHEET = load("site.css", "text/css; charset=utf-8");
/** The icon. */
export const ICON = load("icon.svg", "image/svg+xml");

const BY_PATH = new Map([STYLE_SHEET, ICON].map((file) => [file.path, file]));

/** The file at a path. */
export function staticFile(path: string): StaticFile | undefined {
  return BY_PATH.get(path);
}
