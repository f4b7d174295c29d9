/**
 * Bodies that an instance compiles at once, possibly in a thread without JavaScript. In: an instance of its own, and
 * the work of a module. Out: what `compileListed` must be called with, and the code of each body afterwards. Loads
 * nothing of the table of opcodes.
 */
import type { MachineCode } from "../codegen/machine_code.ts";
import type { BodyPlace, ModuleWork } from "../compile/compile_options.ts";
import { passOptions } from "../optimize/pass_options.ts";
import type { ModuleDescription } from "../translate/describe_module.ts";
import { appendBody, BodyCounts, writeWork } from "./body_results.ts";
import { type CompilerExports, FACT, LISTED, LISTED_RECORD, passBits } from "./compiler_interface.ts";

/** The bodies of a list. */
export class ListedBodies {
  readonly #exports: CompilerExports;
  readonly #work: ModuleWork;
  readonly #code: MachineCode;
  readonly #bodies: readonly BodyPlace[];
  readonly #counts: BodyCounts;
  /** The arguments of `compileListed`. */
  readonly bits: readonly [passes: number, allocation: number];

  /** Writes the module of `work`, described by `description`, and the list. `code` has the stubs of its image. */
  constructor(
    exports: CompilerExports,
    work: ModuleWork,
    description: ModuleDescription,
    code: MachineCode,
    bodies: readonly BodyPlace[],
  ) {
    this.#exports = exports;
    this.#work = work;
    this.#code = code;
    this.#bodies = bodies;
    this.#counts = new BodyCounts(work);
    exports.reset();
    this.bits = [passBits(passOptions(work.context.optimizations)), writeWork(exports, work, description, code)];
    const list = exports.reserveList(bodies.length);
    const words = new Int32Array(exports.memory.buffer, list, bodies.length * LISTED.WORDS);
    for (const [n, { index, loop }] of bodies.entries()) {
      words.set([index, loop?.at ?? -1, loop?.as ?? index], n * LISTED.WORDS);
    }
  }

  /** Whether all bodies are compiled: otherwise the instance has trapped. */
  get isDone(): boolean {
    return this.#exports.listedDone() === this.#bodies.length;
  }

  /** Appends the code of body `n`; returns its inline sites, or undefined for a loop that cannot be entered. */
  take(n: number): number[] | undefined {
    const { memory: { buffer } } = this.#exports;
    const record = new Int32Array(buffer, this.#exports.listedRecord(n), LISTED_RECORD.WORDS);
    if (record[LISTED_RECORD.IS_COMPILED] === 0) return undefined;
    const { index, loop } = this.#bodies[n];
    appendBody(this.#exports, this.#work, this.#code, loop?.as ?? index, record);
    this.#counts.add(record.subarray(LISTED_RECORD.COUNTS));
    const sites = record[FACT.INLINE_SITES];
    return sites < 2 ? [] : [...new Int32Array(buffer, record[LISTED_RECORD.SITES_AT], sites * 3)];
  }
}
