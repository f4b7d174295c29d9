/**
 * Runs checks in processes with bounds on time and memory.
 *
 * In: archives. Out: what check.ts finds, or a Problem when a check took too long, took too much memory, or too many wait.
 * A process serves one check at a time and is replaced after it failed or has done its share; whatever an archive does to
 * it, the registry goes on.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Problem } from "../problem.ts";
import type { Settings } from "../settings.ts";
import type { CheckRequest, CheckResult } from "./check.ts";

const SCRIPT = fileURLToPath(new URL("./check_process.ts", import.meta.url));
const MAX_ANSWER_BYTES = 64 << 20;
const CHECKS_PER_PROCESS = 500;
const PAGE_BYTES = 4096;

interface Job {
  readonly archive: Uint8Array;
  readonly request: CheckRequest;
  readonly resolve: (result: CheckResult) => void;
  readonly reject: (error: unknown) => void;
}

/** The processes. */
export class CheckPool {
  readonly #settings: Settings;
  readonly #script: string;
  readonly #waiting: Job[] = [];
  readonly #idle: Checker[] = [];
  #working = 0;
  #closed = false;

  /** `script` replaces the checking program, for tests of what happens when it misbehaves. */
  constructor(settings: Settings, script: string = SCRIPT) {
    this.#settings = settings;
    this.#script = script;
  }

  /** Checks an archive. */
  check(archive: Uint8Array, request: CheckRequest): Promise<CheckResult> {
    if (this.#closed || this.#waiting.length >= this.#settings.checkQueue) {
      return Promise.reject(
        new Problem("server.unavailable", "too many packages wait to be checked", { headers: { "retry-after": "5" } }),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ archive, request, resolve, reject });
      this.#next();
    });
  }

  /** Starts a process ahead of the first check. */
  warm(): void {
    if (this.#idle.length + this.#working === 0) this.#idle.push(new Checker(this.#settings, this.#script));
  }

  #next(): void {
    while (this.#working < this.#settings.checkProcesses && this.#waiting.length > 0) {
      const job = this.#waiting.shift()!;
      let checker = this.#idle.pop();
      if (checker === undefined || !checker.usable) checker = new Checker(this.#settings, this.#script);
      this.#working++;
      void this.#run(checker, job);
    }
  }

  async #run(checker: Checker, job: Job): Promise<void> {
    try {
      job.resolve(await checker.check(job.archive, job.request));
    } catch (error) {
      job.reject(error);
    } finally {
      this.#working--;
      if (checker.usable && !this.#closed) this.#idle.push(checker);
      else checker.end();
      this.#next();
    }
  }

  /** Ends all processes. */
  close(): void {
    this.#closed = true;
    for (const job of this.#waiting.splice(0)) {
      job.reject(new Problem("server.unavailable", "the registry is stopping"));
    }
    for (const checker of this.#idle.splice(0)) checker.end();
  }
}

class Checker {
  readonly #settings: Settings;
  readonly #child: ChildProcess;
  #received: Uint8Array[] = [];
  #length = 0;
  #answer: ((result: CheckResult | Problem) => void) | undefined;
  #checks = 0;
  #dead = false;

  constructor(settings: Settings, script: string) {
    this.#settings = settings;
    const heap = `--max-old-space-size=${Math.ceil(settings.checkMemoryMiB / 2)}`;
    this.#child = spawn(process.execPath, ["run", "--quiet", "--no-prompt", `--v8-flags=${heap}`, script], {
      stdio: ["pipe", "pipe", "ignore"],
      env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", DENO_DIR: process.env.DENO_DIR ?? "" },
    });
    this.#child.stdout!.on("data", (chunk: Uint8Array) => this.#receive(chunk));
    this.#child.stdin!.on("error", () => {});
    const died = (): void => {
      this.#dead = true;
      this.#finish(new Problem("publish.check", "checking the package took more memory than is allowed, or failed"));
    };
    this.#child.on("error", died);
    this.#child.on("exit", died);
  }

  get usable(): boolean {
    return !this.#dead && this.#checks < CHECKS_PER_PROCESS;
  }

  async check(archive: Uint8Array, request: CheckRequest): Promise<CheckResult> {
    this.#checks++;
    const { checkTimeoutMs, checkMemoryMiB } = this.#settings;
    const header = new TextEncoder().encode(JSON.stringify(request));
    const lengths = new Uint8Array(8);
    const view = new DataView(lengths.buffer);
    view.setUint32(0, header.length);
    view.setUint32(4, archive.length);
    const timer = setTimeout(() => {
      this.end();
      this.#finish(new Problem("publish.check", `checking the package took more than ${checkTimeoutMs / 1000} s`));
    }, checkTimeoutMs);
    const watch = setInterval(() => {
      const used = residentMiB(this.#child.pid);
      if (used <= checkMemoryMiB) return;
      this.end();
      this.#finish(new Problem("publish.check", `checking the package took more than ${checkMemoryMiB} MiB`));
    }, 50);
    try {
      const result = await new Promise<CheckResult | Problem>((resolve) => {
        this.#answer = resolve;
        if (this.#dead) return resolve(new Problem("publish.check", "the checking process could not be started"));
        for (const part of [lengths, header, archive]) this.#child.stdin!.write(part);
      });
      if (result instanceof Problem) throw result;
      return result;
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
    }
  }

  #receive(chunk: Uint8Array): void {
    this.#received.push(chunk);
    this.#length += chunk.length;
    if (this.#length < 4) return;
    const joined = new Uint8Array(this.#length);
    let at = 0;
    for (const part of this.#received) {
      joined.set(part, at);
      at += part.length;
    }
    this.#received = [joined];
    const total = 4 + new DataView(joined.buffer).getUint32(0);
    if (total > MAX_ANSWER_BYTES) return this.end();
    if (joined.length < total) return;
    this.#received = [];
    this.#length = 0;
    this.#finish(JSON.parse(new TextDecoder().decode(joined.subarray(4, total))) as CheckResult);
  }

  #finish(result: CheckResult | Problem): void {
    this.#answer?.(result);
    this.#answer = undefined;
  }

  end(): void {
    this.#dead = true;
    this.#child.kill("SIGKILL");
  }
}

/** Memory that a process has in use; 0 where the system does not say. */
function residentMiB(pid: number | undefined): number {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
    return pages * PAGE_BYTES / (1 << 20);
  } catch {
    return 0;
  }
}
