/**
 * The site's style sheet, script and pictures, under names that change with their bytes, so that they can be cached
 * permanently.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A file of the site. */
interface StaticFile {
  readonly path: string;
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

function load(name: string, type: string): StaticFile {
  const bytes = new Uint8Array(readFileSync(new URL(`./static/${name}`, import.meta.url)));
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  return { path: `/static/${name.replace(".", `.${hash}.`)}`, type, bytes };
}

/** The style sheet. */
export const STYLE_SHEET = load("site.css", "text/css; charset=utf-8");
/** The script of every page: copy buttons, the key of the search. */
export const SCRIPT = load("site.js", "text/javascript; charset=utf-8");
/** The script of the playground. */
export const PLAYGROUND_SCRIPT = load("playground.js", "text/javascript; charset=utf-8");
/** The icon. */
export const ICON = load("icon.svg", "image/svg+xml");
/** The picture that other sites show beside a link. */
export const CARD = load("card.png", "image/png");

/** The pictures of docs/, which scripts/generate/pictures.ts makes, by their addresses in the pages there. */
const PICTURES = new Map(
  ["explore.png", "profile.png", "inspect.svg", "debug.svg", "record.svg"].map((name) => [
    `../registry/site/static/${name}`,
    load(name, name.endsWith(".svg") ? "image/svg+xml" : "image/png"),
  ]),
);

const FILES = [STYLE_SHEET, SCRIPT, PLAYGROUND_SCRIPT, ICON, CARD, ...PICTURES.values()];
const BY_PATH = new Map(FILES.map((file) => [file.path, file]));

/** A picture of the site: its address and its size in pixels. */
interface Picture {
  readonly path: string;
  readonly width: number;
  readonly height: number;
}

/** The picture with the address `source` in a page of docs/; undefined for any other address. */
export function pictureOf(source: string): Picture | undefined {
  const file = PICTURES.get(source);
  if (file === undefined) return undefined;
  return { path: file.path, ...(file.type === "image/png" ? sizeOfPng(file.bytes) : sizeOfSvg(file.bytes)) };
}

function sizeOfPng(bytes: Uint8Array<ArrayBuffer>): Omit<Picture, "path"> {
  const header = new DataView(bytes.buffer, 16, 8);
  return { width: header.getUint32(0), height: header.getUint32(4) };
}

/** The size of a picture that scripts/generate/terminal_picture.ts made. */
function sizeOfSvg(bytes: Uint8Array): Omit<Picture, "path"> {
  const [, width, height] = /^<svg [^>]*width="(\d+)" height="(\d+)"/.exec(new TextDecoder().decode(bytes)) ?? [];
  return { width: Number(width), height: Number(height) };
}

/** The file at a path. */
export function staticFile(path: string): StaticFile | undefined {
  return BY_PATH.get(path);
}
