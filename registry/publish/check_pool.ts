/**
 * Runs checks in processes with bounds on time and memory.
 *
 * In: archives and READMEs. Out: the findings of check.ts, rendered HTML, or a Problem when a task took too long, took
 * too much memory, or too many wait. A process works on one task at a time and is replaced after a failure or after
 * CHECKS_PER_PROCESS tasks; nothing that an archive does to it reaches the registry's own process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Problem } from "../problem.ts";
import type { Settings } from "../settings.ts";
import type { CheckReply, CheckRequest, CheckResult, CheckTask, TaskInput } from "./check.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";
import type { LoadReleases } from "./graph.ts";

const SCRIPT = fileURLToPath(new URL("./check_process.ts", import.meta.url));
const MAX_REPLY_BYTES = 32 << 20;
const CHECKS_PER_PROCESS = 500;
const PAGE_BYTES = 4096;

type Result = CheckResult | string;

interface Job {
  readonly task: CheckTask;
  readonly bytes: Uint8Array;
  readonly load: LoadReleases;
  readonly resolve: (result: Result) => void;
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

  /** `script` replaces the checking program in tests. */
  constructor(settings: Settings, script: string = SCRIPT) {
    this.#settings = settings;
    this.#script = script;
  }

  /** Checks an archive; `load` gives the published releases that it may require. */
  async check(archive: Uint8Array, request: CheckRequest, load: LoadReleases): Promise<CheckResult> {
    return await this.#run({ kind: "archive", ...request }, archive, load) as CheckResult;
  }

  /** Renders Markdown of an author; "" when the HTML would be longer than `readmeHtmlBytes`. */
  async render(markdown: string, readmeHtmlBytes: number): Promise<string> {
    const bytes = new TextEncoder().encode(markdown);
    return await this.#run({ kind: "readme", readmeHtmlBytes }, bytes, () => Promise.resolve(new Map())) as string;
  }

  #run(task: CheckTask, bytes: Uint8Array, load: LoadReleases): Promise<Result> {
    if (this.#closed || this.#waiting.length >= this.#settings.checkQueue) {
      return Promise.reject(
        new Problem("server.unavailable", "too many packages wait to be checked", { headers: { "retry-after": "5" } }),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ task, bytes, load, resolve, reject });
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
      void this.#work(checker, job);
    }
  }

  async #work(checker: Checker, job: Job): Promise<void> {
    try {
      job.resolve(await checker.run(job));
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
  readonly #replies = new FrameReader(MAX_REPLY_BYTES);
  #load: LoadReleases = () => Promise.resolve(new Map());
  #answer: ((result: Result | Problem) => void) | undefined;
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
    const died = (): void => this.#fail("checking the package took more memory than is allowed, or failed");
    this.#child.on("error", died);
    this.#child.on("exit", died);
  }

  get usable(): boolean {
    return !this.#dead && this.#checks < CHECKS_PER_PROCESS;
  }

  async run(job: Job): Promise<Result> {
    this.#checks++;
    this.#load = job.load;
    const { checkTimeoutMs, checkMemoryMiB } = this.#settings;
    const timer = setTimeout(
      () => this.#fail(`checking the package took more than ${checkTimeoutMs / 1000} s`),
      checkTimeoutMs,
    );
    const watch = setInterval(() => {
      if (residentMiB(this.#child.pid) <= checkMemoryMiB) return;
      this.#fail(`checking the package took more than ${checkMemoryMiB} MiB`);
    }, 50);
    try {
      const result = await new Promise<Result | Problem>((resolve) => {
        this.#answer = resolve;
        if (this.#dead) return resolve(new Problem("publish.check", "the checking process could not be started"));
        this.#child.stdin!.write(encodeFrame(job.task, job.bytes));
      });
      if (result instanceof Problem) throw result;
      return result;
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
    }
  }

  #receive(chunk: Uint8Array): void {
    if (this.#dead) return;
    try {
      for (const frame of this.#replies.push(chunk)) this.#reply(frame);
    } catch {
      this.#fail("the result of the check is malformed or too large");
    }
  }

  #reply({ header }: Frame): void {
    const reply = header as CheckReply;
    if (reply.kind === "result") return this.#finish(reply.result);
    void this.#load(reply.ids).then(
      (found) => {
        const input: TaskInput = { releases: Object.fromEntries(found) };
        this.#child.stdin!.write(encodeFrame(input));
      },
      (error: unknown) => {
        this.end();
        this.#finish(error instanceof Problem ? error : new Problem("server.unavailable", "the store did not answer"));
      },
    );
  }

  #fail(detail: string): void {
    this.end();
    this.#finish(new Problem("publish.check", detail));
  }

  #finish(result: Result | Problem): void {
    this.#answer?.(result);
    this.#answer = undefined;
  }

  end(): void {
    this.#dead = true;
    this.#child.kill("SIGKILL");
  }
}

/** Resident memory of a process; 0 where the system does not report it. */
function residentMiB(pid: number | undefined): number {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
    return pages * PAGE_BYTES / (1 << 20);
  } catch {
    return 0;
  }
}
