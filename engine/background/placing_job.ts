/**
 * A job of another thread (optimize_job.ts) as the requesting thread tracks it. In: a job that was sent, by this realm
 * or, if it is shared, by another one. Out: its code, placed. Invariant: an address that a worker may still write to is
 * never used for anything else.
 */
import type { CodeArena } from "../host/memory/code_arena.ts";
import { placeImage } from "../link/image.ts";
import { JOB, type OptimizedCode, type RequestedJob } from "./optimize_job.ts";

/** Milliseconds after which a job is abandoned: its thread is gone. */
export const JOB_MS = 300_000;

/** Code that a worker has placed. */
export interface PlacedCode extends OptimizedCode {
  readonly base: number;
}

/** Optimized code on its way, as the thread that asked for it tracks it. */
export interface CodeJob {
  /** The time of the request. */
  readonly since: number;
  /** Makes progress without blocking. Returns the code once it is placed; a failed job is abandoned. */
  advance(now: number): PlacedCode | "waiting" | "failed";
  /** Ends the job, unless it has ended. */
  abandon(): void;
}

export class PlacingJob implements CodeJob {
  readonly #job: RequestedJob;
  readonly #arena: CodeArena;
  readonly since: number;
  #code: PlacedCode | undefined;
  #ended = false;

  constructor(job: RequestedJob, arena: CodeArena, now: number) {
    this.#job = job;
    this.#arena = arena;
    this.since = now;
  }

  advance(now: number): PlacedCode | "waiting" | "failed" {
    const { state } = this.#job;
    if (state === JOB.FAILED || now > this.since + JOB_MS) return this.#fail();
    if (state === JOB.COMPILED) return this.#job.message.isShared ? this.#place() : this.#allocate();
    if (state !== JOB.PLACED || this.#code === undefined) return "waiting";
    this.#ended = true;
    return this.#code;
  }

  /** Allocates space for the code, whose size is known now. */
  #allocate(): "waiting" | "failed" {
    if (this.#code !== undefined) return "waiting";
    const code = this.#job.read();
    try {
      this.#code = { ...code, base: this.#arena.allocate(code.codeBytes) };
    } catch {
      return this.#fail();
    }
    this.#job.allocate(this.#code.base);
    return "waiting";
  }

  /** Places a copy of the code. */
  #place(): PlacedCode | "failed" {
    const code = this.#job.read();
    try {
      const { base } = placeImage(this.#arena, this.#job.code, code.tables);
      this.#ended = true;
      return { ...code, base };
    } catch {
      return this.#fail();
    }
  }

  #fail(): "failed" {
    this.abandon();
    return "failed";
  }

  abandon(): void {
    if (this.#ended) return;
    this.#ended = true;
    const mayWrite = this.#job.cancel();
    if (this.#code !== undefined && !mayWrite) this.#arena.release(this.#code.base, this.#code.codeBytes);
  }
}
