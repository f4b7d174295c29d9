/**
 * The current process: environment, working directory, user and output. In: names, and text to write. Out: strings and
 * numbers; text written to a descriptor.
 *
 * Deno initializes its Node compatibility layer when a Node module is first imported or the global `process` is first
 * accessed; that takes longer than running an empty script. On Deno, this file therefore uses Deno's own functions and
 * loads Node modules only on demand (`nodeModule`).
 */
import { errorCode } from "../base/errors.ts";
import { ownBun, ownDeno as own } from "./globals.ts";

/** Node modules loaded on demand. */
interface NodeModules {
  "node:async_hooks": typeof import("node:async_hooks");
  "node:buffer": typeof import("node:buffer");
  "node:child_process": typeof import("node:child_process");
  "node:cluster": Pick<typeof import("node:cluster").default, "isWorker">;
  "node:crypto": typeof import("node:crypto");
  "node:fs": typeof import("node:fs");
  "node:module": typeof import("node:module");
  "node:os": typeof import("node:os");
  "node:process": Pick<typeof process, "send">;
  "node:timers": typeof import("node:timers");
  "node:url": typeof import("node:url");
  "node:wasi": typeof import("node:wasi");
  "node:v8": typeof import("node:v8");
  "node:worker_threads": typeof import("node:worker_threads");
  "node:zlib": typeof import("node:zlib");
}

/** A Node module, also available on Deno and Bun; the first call loads it. */
export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] {
  return process.getBuiltinModule(name) as unknown as NodeModules[Name];
}

/** A variable of the environment. */
export function environmentVariable(name: string): string | undefined {
  return own === undefined ? process.env[name] : own.env.get(name);
}

/** All variables of the environment. */
export function environment(): Record<string, string> {
  return own === undefined ? { ...process.env as Record<string, string> } : own.env.toObject();
}

/** The current directory. */
export function currentDirectory(): string {
  return own === undefined ? process.cwd() : own.cwd();
}

/** The arguments of the program. */
export function programArguments(): string[] {
  if (own !== undefined) return [...own.args];
  const [, program, ...words] = process.argv;
  // The workers that node:cluster starts from a single executable of Bun get the program's path once more.
  return isSingleExecutable() && words[0] === program ? words.slice(1) : words;
}

/** Whether this program is a single executable, which contains its modules and the JavaScript runtime. */
export function isSingleExecutable(): boolean {
  return own === undefined ? ownBun?.isStandaloneExecutable === true : own.build.standalone;
}

/** Ends the process immediately; undefined until a host provides it. */
let end: ((status: number) => void) | undefined;

/**
 * Makes `exitProcess` end the process with `how`. Needed on Node: `process.exit` waits for V8's compiler threads, and
 * such a thread may wait for the main thread to collect garbage, a deadlock.
 */
export function endProcessBy(how: (status: number) => void): void {
  end = how;
}

/** Ends the process after all pending standard output and error has been written. */
export async function exitProcess(status: number): Promise<never> {
  if (own !== undefined) return own.exit(status);
  // Node buffers output that a pipe cannot take yet, and drops it at exit. On Bun, merely accessing the stream makes
  // the pipe non-blocking for all processes that share it.
  for (const stream of "Bun" in globalThis ? [] : [process.stdout, process.stderr]) await written(stream);
  if (end !== undefined) {
    process.emit("exit", status);
    end(status);
  }
  return process.exit(status);
}

/** Resolves when all data written to `stream` has been consumed, or its reader has closed. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableLength === 0) return resolve();
    stream.once("error", () => resolve());
    stream.write("", () => resolve()); // not end(), which shuts a socket down for all processes that share it
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

/** The user id that owns new files; undefined on systems without users. */
export function currentUser(): number | undefined {
  if (own !== undefined) return own.uid() ?? undefined;
  return process.geteuid?.() ?? process.getuid?.();
}

/** Writes text as {@linkcode writeBytes} does. */
export function writeText(descriptor: 1 | 2, text: string): void {
  writeBytes(descriptor, new TextEncoder().encode(text));
}

/**
 * Writes bytes to standard output (1) or standard error (2); returns when all of them are written, or when the reader
 * has closed.
 */
export function writeBytes(descriptor: 1 | 2, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSome(descriptor, bytes.subarray(at));
    } catch (error) {
      const code = errorCode(error);
      const name = error instanceof Error ? error.name : undefined;
      if (name === "BrokenPipe" || code === "EPIPE") return;
      // The pipe is non-blocking and its reader is slow: retry.
      if (name !== "WouldBlock" && code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function writeSome(descriptor: 1 | 2, bytes: Uint8Array): number {
  if (own === undefined) return nodeModule("node:fs").writeSync(descriptor, bytes);
  return (descriptor === 1 ? own.stdout : own.stderr).writeSync(bytes);
}
