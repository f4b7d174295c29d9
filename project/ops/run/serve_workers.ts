/**
 * The primary process of `waft serve --workers`: it holds the address and starts workers with its own command line. In:
 * their number, signals to replace or to stop them. Out: events for a log, and the sum of their samples. Invariants: a
 * worker that ends unexpectedly is replaced, later each time if it ends soon after its start; old workers stop
 * accepting connections only when their successors accept them; the counters of workers that have ended remain in the
 * sum.
 */
import cluster, { type Worker } from "node:cluster";
import { type AddressInfo, createServer } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import { isSingleExecutable, programArguments } from "@waft/engine/internal/host/process";
import { addSamples, cumulativeSamples, type Samples, seriesName } from "../../base/prometheus.ts";
import { buildSamples, processSamples, SERVE_METRICS } from "./serve_metrics.ts";
import type { FromWorker, ToWorker } from "./serve_worker.ts";

/** The unexpected end of a worker; another one is started after `delay` milliseconds. */
export interface WorkerEnd {
  readonly pid: number;
  readonly status: number | null;
  readonly signal: string | null;
  readonly delay: number;
}

/** Functions that are called when workers start and end. */
export interface WorkerListener {
  /** A worker accepts connections. */
  started(pid: number): void;
  ended(end: WorkerEnd): void;
  /** All workers have been replaced; or, if not `ok`, a successor did not start, and the remaining old ones go on. */
  reloaded(ok: boolean): void;
}

/** Options of the workers. */
export interface WorkersOptions {
  readonly count: number;
  /** The address; undefined for a socket that the process has inherited. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  /** The words of a command line that choose an address. */
  readonly addressArguments: (host: string, port: number) => readonly string[];
  /** The time that a worker has to end, in milliseconds. */
  readonly gracefulMs: number;
  readonly listener: WorkerListener;
}

/** The first worker did not start; it has reported why. */
export class WorkerStartError extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`A worker did not start: status ${status}`);
    this.status = status;
  }
}

interface Member {
  readonly worker: Worker;
  readonly pid: number;
  readonly startedAt: number;
  /** Resolves when the worker has listened, or has ended without. */
  readonly start: Promise<{ readonly url: string } | { readonly status: number }>;
  readonly ended: Promise<void>;
  samples: Samples;
  /** Called when samples arrive. */
  sampled: (() => void) | undefined;
  state: "starting" | "ready" | "ending";
  /** Whether the samples of the worker, which has ended, are in the sum; a busy primary receives the last ones late. */
  hasLeft: boolean;
}

/** The delay before a worker is started again, which doubles with each one that ends soon after its start. */
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;
/** A worker that lived as long was sound. */
const SOUND_LIFE_MS = 10_000;
/** The time in which clients close idle connections of a worker that is replaced. */
const DRAIN_IDLE_MS = 5_000;
/** The time that a worker has to send samples; those that it sent before count otherwise. */
const SAMPLE_TIMEOUT_MS = 1_000;

/** Worker processes that share an address. */
export class Workers {
  readonly #options: WorkersOptions;
  readonly #members = new Set<Member>();
  /** Workers that have ended, and whose last messages may still arrive. */
  readonly #leaving = new Set<Member>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  readonly #counted: Samples = { waft_worker_restarts_total: 0 };
  #shortLives = 0;
  #isStopping = false;
  #reload: Promise<void> | undefined;
  #reloadAgain = false;
  #url = "";

  private constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Starts the workers. Resolves when all of them accept connections; throws WorkerStartError. */
  static async start(options: WorkersOptions): Promise<Workers> {
    const { address } = options;
    // Workers that asked for any port would get another one when no earlier worker is left.
    const chosen = address?.port === 0 ? options.addressArguments(address.host, await freePort(address.host)) : [];
    const [words, operands] = splitAtDashes(programArguments());
    const all = [...words, ...chosen, ...operands];
    // A single executable has no script: its first word becomes `exec`, and must not remain among the arguments.
    cluster.setupPrimary(isSingleExecutable() ? { exec: all[0], args: all.slice(1) } : { args: all });
    const workers = new Workers(options);
    // The first one compiles the component for all, and is the first to fail.
    const first = await workers.#fork().start;
    if ("status" in first) throw new WorkerStartError(first.status);
    workers.#url = first.url;
    await Promise.all(Array.from({ length: options.count - 1 }, () => workers.#forkInPlace()));
    return workers;
  }

  /** The address. */
  get url(): string {
    return this.#url;
  }

  /** True while a worker accepts connections and none has been told to end for good. */
  get isReady(): boolean {
    return !this.#isStopping && this.#ready().length > 0;
  }

  #ready(): Member[] {
    return [...this.#members].filter(({ state }) => state === "ready");
  }

  #fork(): Member {
    const worker = cluster.fork();
    let started: (result: { url: string } | { status: number }) => void = () => {};
    let end: () => void = () => {};
    const member: Member = {
      worker,
      pid: worker.process.pid ?? 0,
      startedAt: performance.now(),
      start: new Promise((resolve) => started = resolve),
      ended: new Promise((resolve) => end = resolve),
      samples: {},
      sampled: undefined,
      state: "starting",
      hasLeft: false,
    };
    this.#members.add(member);
    worker.on("message", (message: FromWorker) => {
      if (message.type === "samples") {
        if (member.hasLeft) this.#count(member.samples, message.samples);
        member.samples = message.samples;
        member.sampled?.();
      } else if (member.state === "starting") {
        member.state = "ready";
        this.#options.listener.started(member.pid);
        started({ url: message.url });
      }
    });
    // A message to a worker that has just ended.
    worker.on("error", () => {});
    worker.on("exit", (status, signal) => {
      this.#members.delete(member);
      this.#leaving.add(member);
      if (member.state === "ready") this.#restart(member, status, signal);
      started({ status: status ?? 1 });
      const leave = () => {
        clearTimeout(timer);
        if (!this.#leaving.delete(member)) return;
        member.hasLeft = true;
        this.#count({}, member.samples);
        end();
      };
      const timer = setTimeout(leave, SAMPLE_TIMEOUT_MS);
      if (worker.isConnected()) worker.once("disconnect", leave);
      else leave();
    });
    return member;
  }

  /** Counts the samples of a worker that has ended, in place of those that were counted before. */
  #count(before: Samples, samples: Samples): void {
    const [old, now] = [before, samples].map((some) => cumulativeSamples(SERVE_METRICS, some));
    for (const [series, value] of Object.entries(old)) now[series] = (now[series] ?? 0) - value;
    addSamples(this.#counted, now);
  }

  /** Starts a successor of a worker that ended unexpectedly, or that did not start. */
  #restart({ pid, startedAt }: Member, status: number | null, signal: string | null): void {
    if (this.#isStopping) return;
    this.#shortLives = performance.now() - startedAt < SOUND_LIFE_MS ? this.#shortLives + 1 : 0;
    const delay = this.#shortLives === 0
      ? 0
      : Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(this.#shortLives - 1, 16));
    this.#counted["waft_worker_restarts_total"]++;
    this.#options.listener.ended({ pid, status, signal, delay });
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void this.#forkInPlace();
    }, delay);
    this.#timers.add(timer);
  }

  /** Starts a worker; one that does not start is started again later. */
  async #forkInPlace(): Promise<void> {
    const member = this.#fork();
    const result = await member.start;
    if ("status" in result) this.#restart(member, result.status, null);
  }

  /** Replaces all workers, one after the other. While that goes on, another call makes it happen once more. */
  reload(): Promise<void> {
    if (this.#reload !== undefined) {
      this.#reloadAgain = true;
      return this.#reload;
    }
    this.#reload = this.#replaceAll().finally(() => this.#reload = undefined);
    return this.#reload;
  }

  async #replaceAll(): Promise<void> {
    do {
      this.#reloadAgain = false;
      const ok = await this.#replaceEach(this.#ready());
      const series = seriesName("waft_reloads_total", { result: ok ? "success" : "failure" });
      this.#counted[series] = (this.#counted[series] ?? 0) + 1;
      if (!this.#isStopping) this.#options.listener.reloaded(ok);
    } while (this.#reloadAgain && !this.#isStopping);
  }

  async #replaceEach(old: readonly Member[]): Promise<boolean> {
    for (const member of old) {
      if (this.#isStopping) return false;
      const result = await this.#fork().start;
      if ("status" in result) return false;
      void this.#end(member, { type: "drain", idleMs: DRAIN_IDLE_MS }, this.#options.gracefulMs + DRAIN_IDLE_MS);
    }
    return true;
  }

  /** Asks a worker to end; kills it after `limitMs`. */
  async #end(member: Member, message: ToWorker, limitMs: number): Promise<void> {
    if (member.state === "starting") member.worker.process.kill("SIGKILL");
    member.state = "ending";
    tell(member, message);
    const timer = setTimeout(() => member.worker.process.kill("SIGKILL"), limitMs);
    await member.ended;
    clearTimeout(timer);
  }

  /** The number of requests in progress, as far as the workers have reported. */
  get active(): number {
    const samples: Samples = {};
    for (const member of this.#members) addSamples(samples, member.samples);
    return (samples["waft_http_requests_handling"] ?? 0) + (samples["waft_http_requests_queued"] ?? 0);
  }

  /** The samples of all processes. A worker that does not answer counts with those that it sent last. */
  async samples(): Promise<Samples> {
    await Promise.all([...this.#members].filter(({ state }) => state !== "starting").map(sampleNow));
    const sum: Samples = { ...this.#counted };
    for (const { samples } of this.#members) addSamples(sum, samples);
    for (const { samples } of this.#leaving) addSamples(sum, cumulativeSamples(SERVE_METRICS, samples));
    addSamples(sum, processSamples());
    return { ...sum, waft_workers: this.#ready().length, ...buildSamples() };
  }

  /** Stops all workers; those that still have requests after the graceful time are killed. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(
      [...this.#members].map((member) => this.#end(member, { type: "stop" }, this.#options.gracefulMs)),
    );
  }

  /** Kills all workers. */
  kill(): void {
    this.#isStopping = true;
    for (const { worker } of this.#members) worker.process.kill("SIGKILL");
  }
}

/** The words before the first `--`, and the others. */
function splitAtDashes(words: readonly string[]): [string[], string[]] {
  const at = words.indexOf("--");
  return at < 0 ? [[...words], []] : [words.slice(0, at), words.slice(at)];
}

/** A port that is free at this moment. */
function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen({ host, port: 0, exclusive: true }, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

function tell({ worker }: Member, message: ToWorker): void {
  try {
    if (worker.isConnected()) worker.send(message);
  } catch {
    // it has ended
  }
}

/** Asks a worker for its samples, and waits until they have arrived, it has ended, or the time is over. */
async function sampleNow(member: Member): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const arrived = new Promise<void>((resolve) => {
    member.sampled = resolve;
    timer = setTimeout(resolve, SAMPLE_TIMEOUT_MS);
  });
  tell(member, { type: "sample" });
  await Promise.race([arrived, member.ended]);
  clearTimeout(timer);
}
