/**
 * What turns an archive of `deno pack` into an npm package: pure functions over file names and bytes.
 *
 * In: the files of one package, as `deno pack` made them: JavaScript and declarations beside each other under the paths of the sources. Out:
 * the files of the npm package, which runs on Node 20 and Bun as it is: no TypeScript is left, JSON is imported as a module, dependencies are
 * exact. Invariant: paths stay what they are in the source tree, so that `import.meta.url` finds the same neighbours.
 */
import { gunzipSync } from "node:zlib";

/** Files by path. */
export type Files = Map<string, Uint8Array>;

const BLOCK = 512;
const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/**
 * Reads a `.tar.gz` that `deno pack`, `deno publish` or npm wrote, without the folder that all its paths begin with (`package/` by default). Throws
 * an Error for other kinds of files.
 */
export function readPack(packed: Uint8Array, folder = "package/"): Files {
  const tar = gunzipSync(packed);
  const files: Files = new Map();
  let longName: string | undefined;
  for (let at = 0; at + BLOCK <= tar.length && tar[at] !== 0;) {
    const field = (from: number, length: number) =>
      decoder.decode(tar.subarray(at + from, at + from + length)).split("\0")[0]!;
    const size = parseInt(field(124, 12), 8);
    const kind = field(156, 1);
    const bytes = tar.subarray(at + BLOCK, at + BLOCK + size);
    const path = longName ?? field(0, 100);
    longName = undefined;
    if (kind === "L") longName = decoder.decode(bytes).replace(/\0+$/, "");
    else if (kind === "0" || kind === "") {
      if (!path.startsWith(folder)) throw new Error(`"${path}" is not in the folder "${folder}"`);
      files.set(path.slice(folder.length), new Uint8Array(bytes));
    } else if (kind !== "5") throw new Error(`"${path}" is of the kind "${kind}", which packages do not have`);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

const JSON_IMPORT = /(\bimport\s+[\w$]+\s+from\s*")(\.[^"]+\.json)"\s*with\s*\{\s*type:\s*"json"\s*\}/g;

/**
 * The text of a module for npm: relative names of sources become names of JavaScript, also where a worker or a process is started by URL;
 * imports of JSON become imports of modules, since Node 20 warns of the former. Tells which JSON files those are.
 */
export function finishModule(text: string): { text: string; json: string[] } {
  const json: string[] = [];
  const finished = text
    .replace(/((?:\bfrom|\bimport)\s*\(?\s*"\.[^"]*)\.ts"/g, '$1.js"')
    .replace(/(\bnew URL\("\.[^"]*)\.ts"(?=, import\.meta\.url\))/g, '$1.js"')
    .replace(JSON_IMPORT, (_, before: string, path: string) => {
      json.push(path);
      return `${before}${path}.js"`;
    });
  return { text: finished, json };
}

/** A JSON file as a module. */
export function jsonModule(bytes: Uint8Array): Uint8Array {
  const value: unknown = JSON.parse(decoder.decode(bytes));
  return encoder.encode(`export default ${JSON.stringify(value, null, 2)};\n`);
}

/** Finishes every module of `files`, in place. */
export function finishModules(files: Files): void {
  for (const [path, bytes] of [...files]) {
    if (!path.endsWith(".js") && !path.endsWith(".d.ts")) continue;
    const { text, json } = finishModule(decoder.decode(bytes));
    files.set(path, encoder.encode(text));
    for (const name of json) {
      const target = new URL(name, `file:///${path}`).pathname.slice(1);
      const source = files.get(target);
      if (source === undefined) throw new Error(`"${path}" imports "${name}", which the package does not have`);
      files.set(`${target}.js`, jsonModule(source));
    }
  }
}

/** Files that `exports` of a package.json names and `files` does not have, such as declarations of a module whose types are not written out. */
export function missingExports(files: Files, exports: unknown): string[] {
  if (typeof exports === "string") return files.has(exports.replace(/^\.\//, "")) ? [] : [exports];
  return Object.values(exports as Record<string, unknown>).flatMap((value) => missingExports(files, value));
}

/** Resolved versions by package name, from a deno.lock. */
export function lockedVersions(lock: string): Map<string, string> {
  const { specifiers } = JSON.parse(lock) as { specifiers: Record<string, string> };
  const versions = new Map<string, string>();
  for (const [specifier, resolved] of Object.entries(specifiers)) {
    const name = /^npm:(@?[^@]+)@/.exec(specifier)?.[1];
    if (name !== undefined) versions.set(name, resolved.split("_")[0]!);
  }
  return versions;
}
