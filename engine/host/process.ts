/**
 * This process: its environment, directory, user and output. Out: strings and numbers; text written to a descriptor.
 *
 * Deno sets up its whole Node compatibility when the first module of Node is imported or the global `process` is touched, which takes longer than an
 * empty script does. So there Deno's own functions are used, and Node's modules only once something needs them (`nodeModule`).
 */

/** Modules of Node that are loaded when they are asked for. */
interface NodeModules {
  "node:crypto": typeof import("node:crypto");
  "node:fs": typeof import("node:fs");
  "node:module": typeof import("node:module");
  "node:os": typeof import("node:os");
  "node:timers": typeof import("node:timers");
  "node:url": typeof import("node:url");
  "node:wasi": typeof import("node:wasi");
  "node:v8": typeof import("node:v8");
  "node:worker_threads": typeof import("node:worker_threads");
}

/** The key of the method by which Deno's `console.log` shows an object. */
export const DENO_INSPECT: unique symbol = Symbol.for("Deno.customInspect") as typeof DENO_INSPECT;

const own = (globalThis as { Deno?: typeof Deno }).Deno;

/** A module of Node, which Deno and Bun have, too; loaded by the first call. */
export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] {
  return process.getBuiltinModule(name) as unknown as NodeModules[Name];
}

/** A variable of the environment. */
export function environmentVariable(name: string): string | undefined {
  return own === undefined ? process.env[name] : own.env.get(name);
}

/** The current directory. */
export function currentDirectory(): string {
  return own === undefined ? process.cwd() : own.cwd();
}

/** The arguments of the program. */
export function programArguments(): string[] {
  return own === undefined ? process.argv.slice(2) : [...own.args];
}

/** How the system ends a process at once, if a host knows. */
let end: ((status: number) => void) | undefined;

/**
 * Lets `exitProcess` end the process by `how`. For Node: `process.exit` waits for what V8 compiles on threads of its own, and one of those may be
 * waiting for the main thread to collect garbage; then the process never ends.
 */
export function endProcessBy(how: (status: number) => void): void {
  end = how;
}

/** Ends the process when standard output and error have been taken by whoever reads them. */
export async function exitProcess(status: number): Promise<never> {
  if (own !== undefined) return own.exit(status);
  // Node keeps what a pipe cannot take yet, and forgets it when the process ends. Bun makes the pipe non-blocking for all its users once it is asked.
  for (const stream of "Bun" in globalThis ? [] : [process.stdout, process.stderr]) await written(stream);
  if (end !== undefined) {
    process.emit("exit", status);
    end(status);
  }
  return process.exit(status);
}

/** Resolves when all that was written to `stream` has been taken, or has no reader any more. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableLength === 0) return resolve();
    stream.once("error", () => resolve());
    stream.write("", () => resolve()); // not end(), which would shut down a socket for all processes that have it
  });
}

/** The operating system as Node calls it: `linux`, `darwin`, … */
export function systemName(): string {
  if (own === undefined) return process.platform;
  return own.build.os === "windows" ? "win32" : own.build.os;
}

/** The processor as Node calls it: `x64`, `arm64`, … */
export function processorName(): string {
  if (own === undefined) return process.arch;
  return own.build.arch === "x86_64" ? "x64" : "arm64";
}

/** The user that new files belong to; undefined where there are no users. */
export function currentUser(): number | undefined {
  if (own !== undefined) return own.uid() ?? undefined;
  return process.geteuid?.() ?? process.getuid?.();
}

/** Writes text to standard output (1) or standard error (2) and returns when all of it is written, or the reader is gone. */
export function writeText(descriptor: 1 | 2, text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSome(descriptor, bytes.subarray(at));
    } catch (error) {
      const { name, code } = error as { name: string; code?: string };
      if (name === "BrokenPipe" || code === "EPIPE") return;
      // Somebody has made the pipe non-blocking, and its reader is slow.
      if (name !== "WouldBlock" && code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function writeSome(descriptor: 1 | 2, bytes: Uint8Array): number {
  if (own === undefined) return nodeModule("node:fs").writeSync(descriptor, bytes);
  return (descriptor === 1 ? own.stdout : own.stderr).writeSync(bytes);
}
