/**
 * The symbol map for `perf`, which names code without symbols: `/tmp/perf-PID.map`, one line `start size name` per
 * function (Linux, tools/perf/Documentation/jit-interface.txt). In: a module whose code is placed. The file is
 * append-only: entries of released code remain, and perf prefers the later entries of code that replaces it.
 *
 * /tmp is world-writable, so a file there that is a link, has another name (a hard link to a file of the user, which
 * some systems let others make) or is not owned by the user is refused.
 */
import { nodeModule } from "../../host/process.ts";
import type { CompiledModule } from "./compiled_module.ts";

/** Appends the functions of `module` to the map of this process. Throws an Error if the file cannot be written. */
export function addToPerfMap(module: CompiledModule, path: string = `/tmp/perf-${process.pid}.map`): void {
  const { closeSync, constants, fstatSync, openSync, writeSync } = nodeModule("node:fs");
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW |
    constants.O_NONBLOCK;
  const file = openSync(path, flags, 0o600);
  try {
    const facts = fstatSync(file);
    const user = process.geteuid?.();
    const isOwn = facts.isFile() && facts.nlink === 1 && (user === undefined || facts.uid === user);
    if (!isOwn) {
      throw new Error(`${path} is not a regular file owned by this user, or has another name`);
    }
    const bytes = new TextEncoder().encode(perfMapLines(module));
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at, bytes.length - at);
  } finally {
    closeSync(file);
  }
}

/** One line per function; names are escaped so that they cannot break a line. */
function perfMapLines(module: CompiledModule): string {
  const { base, tables: { functionStart, functionEnd } } = module.image;
  const prefix = module.moduleName === undefined ? "wasm" : `wasm:${module.moduleName}`;
  let text = "";
  for (let k = 0; k < functionStart.length; k++) {
    if (functionStart[k] < 0) continue;
    const index = module.importedFuncCount + k;
    const bytes = functionEnd[k] - functionStart[k];
    const name = oneWord(`${prefix}:${module.funcName(index) ?? `func[${index}]`}`);
    text += `${(base + functionStart[k]).toString(16)} ${bytes.toString(16)} ${name}\n`;
  }
  return text;
}

function oneWord(name: string): string {
  // deno-lint-ignore no-control-regex
  return name.replace(/[\x00-\x20\x7f-\x9f\u2028\u2029]/g, "_");
}
