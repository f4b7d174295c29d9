/**
 * Turns an archive from `deno pack` into an npm package: pure functions over file names and bytes.
 *
 * In: the files of one package as `deno pack` emits them: JavaScript and declarations side by side under the source
 * paths. Out: the files of the npm package, which runs on Node 20 and Bun as it is: no TypeScript remains, JSON is
 * imported as modules, dependencies are exact. Invariant: paths equal those of the source tree, so that URLs relative
 * to `import.meta.url` resolve to the same neighbours.
 */
import { gunzipSync } from "node:zlib";

/** Files by path. */
export type Files = Map<string, Uint8Array>;

const BLOCK = 512;
const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/**
 * Reads a `.tar.gz` written by `deno pack`, `deno publish` or npm; strips the folder that prefixes all paths
 * (`package/` by default). Throws an Error for entries other than files and directories.
 */
export function readPack(packed: Uint8Array, folder = "package/"): Files {
  const tar = gunzipSync(packed);
  const files: Files = new Map();
  let longName: string | undefined;
  for (let at = 0; at + BLOCK <= tar.length && tar[at] !== 0;) {
    const field = (from: number, length: number) =>
      decoder.decode(tar.subarray(at + from, at + from + length)).split("\0")[0];
    const size = parseInt(field(124, 12), 8);
    const kind = field(156, 1);
    const bytes = tar.subarray(at + BLOCK, at + BLOCK + size);
    const path = longName ?? field(0, 100);
    longName = undefined;
    if (kind === "L") longName = decoder.decode(bytes).replace(/\0+$/, "");
    else if (kind === "0" || kind === "") {
      if (!path.startsWith(folder)) throw new Error(`"${path}" is not in the folder "${folder}"`);
      files.set(path.slice(folder.length), new Uint8Array(bytes));
    } else if (kind !== "5") throw new Error(`"${path}" has the entry type "${kind}", which packages must not contain`);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

const JSON_IMPORT = /(\bimport\s+[\w$]+\s+from\s*")(\.[^"]+\.json)"\s*with\s*\{\s*type:\s*"json"\s*\}/g;

/**
 * Rewrites a module for npm: relative `.ts` specifiers become `.js`, including the URLs of workers and child processes;
 * JSON imports become module imports, since Node 20 warns about the former. Also returns the imported JSON files.
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
function jsonModule(bytes: Uint8Array): Uint8Array {
  const value: unknown = JSON.parse(decoder.decode(bytes));
  return encoder.encode(`export default ${JSON.stringify(value, null, 2)};\n`);
}

const INTERNAL = /\/\*\*(?:(?!\*\/)[^])*@internal(?:(?!\*\/)[^])*\*\/\s*/g;

/** The index behind the declaration that begins at `at`: the first semicolon outside of brackets. */
function endOfDeclaration(text: string, at: number): number {
  let depth = 0;
  for (let k = at; k < text.length; k++) {
    if ("{([".includes(text[k])) depth++;
    else if ("})]".includes(text[k])) depth--;
    else if (text[k] === ";" && depth === 0) return k + 1;
    if (depth < 0) return k;
  }
  return text.length;
}

/** The start of the class or interface that surrounds `at`. */
function classBefore(text: string, at: number): number {
  return text.lastIndexOf("\n}", at) + 1;
}

function hasConstructor(members: string): boolean {
  return /(?:^|[/;{\s])constructor\(/.test(members);
}

/**
 * Removes the members that are tagged `@internal` from the declarations of a module; such a constructor becomes
 * private. Tagged declarations at the top level remain, because internal modules refer to them.
 */
export function stripInternal(declarations: string): string {
  let stripped = "";
  let from = 0;
  for (const match of declarations.matchAll(INTERNAL)) {
    const at = match.index + match[0].length;
    const isMember = /\n +$/.test(declarations.slice(0, match.index));
    if (!isMember) continue;
    const end = endOfDeclaration(declarations, at);
    // All overloads of a constructor are public, or none.
    const isOnlyConstructor = declarations.startsWith("constructor(", at) &&
      !hasConstructor(declarations.slice(classBefore(declarations, at), match.index)) &&
      !hasConstructor(declarations.slice(end).split(/^}/m, 1)[0]);
    stripped += declarations.slice(from, match.index) + (isOnlyConstructor ? "private constructor();" : "");
    from = end;
  }
  return (stripped + declarations.slice(from)).replace(/\n +(?=\n)/g, "");
}

/** Finishes every module of `files`, in place. */
export function finishModules(files: Files): void {
  for (const [path, bytes] of [...files]) {
    if (!path.endsWith(".js") && !path.endsWith(".d.ts")) continue;
    const source = decoder.decode(bytes);
    const { text, json } = finishModule(path.endsWith(".d.ts") ? stripInternal(source) : source);
    files.set(path, encoder.encode(text));
    for (const name of json) {
      const target = new URL(name, `file:///${path}`).pathname.slice(1);
      const data = files.get(target);
      if (data === undefined) throw new Error(`"${path}" imports "${name}", which is not in the package`);
      files.set(`${target}.js`, jsonModule(data));
    }
  }
}

/**
 * Returns the files that the `exports` of a package.json name and `files` lacks, such as the declarations of a module
 * without explicit types.
 */
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
    if (name !== undefined) versions.set(name, resolved.split("_")[0]);
  }
  return versions;
}
