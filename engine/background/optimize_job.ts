/**
 * A request to compile a whole module with the optimizing compiler in another thread, which also places the code. In: a
 * module and options. Out: the description of the code in shared memory, and the code at the address that the
 * requesting thread allocates when it learns the size. Loads nothing of the compiler (run_optimize_job.ts does).
 *
 *     requester                                  worker
 *     RUNNING ─────────────────────────────────▶ compiles
 *                                     COMPILED ◀─ writes the description, waits
 *     allocates an address ─▶ ALLOCATED ───────▶ places the code
 *                                       PLACED ◀─
 *
 * Several realms can share a job. The first one that needs the code claims the job and sends it; the worker leaves the
 * code in the output, where the state COMPILED is the last one, and each realm places a copy.
 *
 * Invariant: the code is executable and complete before the state is PLACED. A failure, on either side, is final.
 */
import type { Target } from "../codegen/target.ts";
import type { CompileOptions, LoopPlace } from "../compile/compile.ts";
import type { CodeDescription, InlineSite } from "../link/code_description.ts";
import type { CodeTables } from "../link/image.ts";
import { Output } from "../parallel/output.ts";

/** States of a job, in its first word. */
export const JOB = { RUNNING: 0, COMPILED: 1, ALLOCATED: 2, PLACED: 3, FAILED: 4, CANCELLED: 5 } as const;

/** Words at the start of a job's output. */
export const WORD = {
  STATE: 0,
  CODE_BYTES: 1,
  ADDRESS_LOW: 2,
  ADDRESS_HIGH: 3,
  TEXT_AT: 4,
  TEXT_BYTES: 5,
  /** Whether a realm has claimed a shared job. */
  CLAIMED: 6,
  /** The first word of a shared job's code. */
  CODE_AT: 7,
  COUNT: 8,
} as const;

/** The parts of a request that its requester names. */
type JobRequest = Omit<OptimizeJob, "kind" | "binary" | "output" | "isShared">;

/** Functions that are compiled before the whole module: see compileBatch. */
export interface Batch {
  readonly wanted: readonly number[];
  readonly mostBytes: number;
}

/** The request, as a message. */
export interface OptimizeJob {
  readonly kind: "optimize";
  /** The module's binary form. */
  readonly binary: SharedArrayBuffer;
  readonly target: Target["name"];
  readonly options: Omit<CompileOptions, "target" | "cpu" | "share" | "form" | "tier" | "note">;
  readonly cpu: readonly string[];
  /** Compile this loop alone, as code that is entered there. */
  readonly loop?: LoopPlace;
  /** Compile these functions alone. */
  readonly batch?: Batch;
  readonly output: SharedArrayBuffer;
  /** Whether several realms share the job, each of which places the code. */
  readonly isShared: boolean;
  /** Address of the poll page that interruptible code reads. */
  readonly pollPage: number;
}

/** The output without the bytes of the code, as the requester reads it. */
export interface OptimizedCode {
  readonly description: CodeDescription;
  readonly tables: CodeTables;
  readonly codeBytes: number;
  /** The entry of a loop's code. */
  readonly entry: number | undefined;
  /** The jumps of a loop's or batch's code. */
  readonly jumps: readonly number[];
  readonly statistics: Readonly<Record<string, number>>;
}

/** The text part of an output. A column is `length` bytes or words that begin at word `at` of the shared memory. */
export interface OutputText {
  readonly description: Omit<CodeDescription, "signatureIds" | "inlineSites">;
  readonly inlineSites: readonly (readonly [number, readonly InlineSite[]])[];
  readonly statistics: Readonly<Record<string, number>>;
  readonly entry?: number;
  readonly jumps?: readonly number[];
  readonly columns: readonly {
    readonly name: string;
    readonly at: number;
    readonly length: number;
    readonly bytes: boolean;
  }[];
}

/** Moves a job from one state to another, if it is in the former, and wakes all waiters. */
export function changeState(state: Int32Array, from: number, to: number): boolean {
  const changed = Atomics.compareExchange(state, WORD.STATE, from, to) === from;
  Atomics.notify(state, WORD.STATE);
  return changed;
}

/** A job as its requester sees it. */
export class RequestedJob {
  readonly message: OptimizeJob;
  readonly #state: Int32Array;

  /** Opens the job of a message, which another realm may have made. */
  constructor(message: OptimizeJob) {
    this.message = message;
    this.#state = new Int32Array(message.output, 0, WORD.COUNT);
  }

  /** Makes a job. `binary` is copied to shared memory, unless it is there already for another job. */
  static make(request: JobRequest, binary: Uint8Array | SharedArrayBuffer, isShared = false): RequestedJob {
    const shared = binary instanceof SharedArrayBuffer ? binary : new SharedArrayBuffer(binary.length);
    if (binary instanceof Uint8Array) new Uint8Array(shared).set(binary);
    const output = Output.make(shared.byteLength).buffer;
    return new RequestedJob({ kind: "optimize", binary: shared, output, isShared, ...request });
  }

  /** One of {@linkcode JOB}. */
  get state(): number {
    return Atomics.load(this.#state, WORD.STATE);
  }

  /** Claims a shared job. Returns false if another realm has claimed it. */
  claim(): boolean {
    return Atomics.compareExchange(this.#state, WORD.CLAIMED, 0, 1) === 0;
  }

  /** Leaves a claimed job that could not be sent to the other realms. */
  disclaim(): void {
    Atomics.store(this.#state, WORD.CLAIMED, 0);
  }

  /** The code of a shared job that is compiled. */
  get code(): Uint8Array {
    return new Uint8Array(this.message.output, this.#state[WORD.CODE_AT] * 4, this.#state[WORD.CODE_BYTES]);
  }

  /** Gives a compiled job the address of its code. */
  allocate(address: number): void {
    this.#state[WORD.ADDRESS_LOW] = address | 0;
    this.#state[WORD.ADDRESS_HIGH] = (address / 0x1_0000_0000) | 0;
    changeState(this.#state, JOB.COMPILED, JOB.ALLOCATED);
  }

  /** Ends the job if it has not placed code yet. Returns whether an allocated address may still be written to. */
  cancel(): boolean {
    if (this.message.isShared) return false;
    for (const state of [JOB.RUNNING, JOB.COMPILED]) if (changeState(this.#state, state, JOB.CANCELLED)) return false;
    return this.state === JOB.ALLOCATED;
  }

  /** The description of a compiled job; its columns are views of the shared output. */
  read(): OptimizedCode {
    const { output } = this.message;
    const bytes = new Uint8Array(output, this.#state[WORD.TEXT_AT] * 4, this.#state[WORD.TEXT_BYTES]).slice();
    const { description, inlineSites, statistics, entry, jumps = [], columns } = JSON.parse(
      new TextDecoder().decode(bytes),
    ) as OutputText;
    const tables = Object.fromEntries(
      columns.map(({ name, at, length, bytes }) => [
        name,
        bytes ? new Uint8Array(output, at * 4, length) : new Int32Array(output, at * 4, length),
      ]),
    );
    const { signatureIds, ...rest } = tables;
    return {
      description: {
        ...description,
        signatureIds: signatureIds as Int32Array,
        inlineSites: new Map(inlineSites),
      },
      tables: rest as unknown as CodeTables,
      codeBytes: this.#state[WORD.CODE_BYTES],
      statistics,
      entry,
      jumps,
    };
  }
}
