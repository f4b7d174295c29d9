/**
 * The optimizing compiler of function bodies in its compiled form, as the engine uses it. In: an instance of its
 * module, and the state of a module's compilation (compile/compile.ts), whose bodies are valid. Out: code of single
 * bodies, equal to that of the TypeScript form (compile/body_compiler.ts), with the same counts and errors.
 *
 * Invariant: bodies are not validated. Whoever uses it has validated them.
 */
import { CalleeUnknown } from "../codegen/callee_unknown.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { CodeSource, CompileBody, CompileLoop, ModuleWork } from "../compile/compile_options.ts";
import { passOptions } from "../optimize/pass_options.ts";
import { describeModule, type ModuleDescription } from "../translate/describe_module.ts";
import { appendBody, BodyCounts, writeWork } from "./body_results.ts";
import { type CompilerExports, FACT, FIRST_DENIAL, MAX_DENIALS, passBits } from "./compiler_interface.ts";
import { readFailure } from "./compiler_status.ts";
import { KnownFunctions } from "./module_writer.ts";

/** Bytes that functions leave behind in the memory at most; then it is dropped and written anew. */
const MAX_LEFT_BYTES = 1 << 26;
/** The result for a function that the compiled form declines; the TypeScript form compiles it. */
const LEFT = "left";

export class PortableCompiler implements CodeSource {
  readonly #instance: CompilerInstance;

  constructor(exports: CompilerExports, maxLeftBytes: number = MAX_LEFT_BYTES) {
    this.#instance = { exports, maxLeftBytes, tenant: undefined };
  }

  /** The size of the memory, which never shrinks. */
  get memoryBytes(): number {
    return this.#instance.exports.memory.buffer.byteLength;
  }

  begin(work: ModuleWork, otherwise: CompileBody): CompileBody {
    const session = new Session(this.#instance, work);
    return (code, index) => {
      const sites = session.compile(code, index);
      return sites === LEFT ? otherwise(code, index) : sites;
    };
  }

  beginLoop(work: ModuleWork, otherwise: CompileLoop): CompileLoop {
    const session = new Session(this.#instance, work);
    return (code, index, at, as) => {
      const sites = session.compileLoop(code, index, at, as);
      return sites === LEFT ? otherwise(code, index, at, as) : sites;
    };
  }
}

/** An instance of the compiler. */
interface CompilerInstance {
  readonly exports: CompilerExports;
  readonly maxLeftBytes: number;
  /** The mark of the compilation whose module is in the memory. */
  tenant: object | undefined;
}

/** The compilation of the bodies of one module. */
class Session {
  readonly #instance: CompilerInstance;
  readonly #exports: CompilerExports;
  readonly #work: ModuleWork;
  readonly #description: ModuleDescription;
  readonly #passes: number;
  readonly #counts: BodyCounts;
  /** Not the session itself, so that an instance does not keep the last module alive. */
  readonly #mark = {};
  #allocation = 0;
  /** The code whose functions the instance knows. */
  #known: MachineCode | undefined;
  #functions: KnownFunctions | undefined;
  /** The end of the used memory when the module has been written. */
  #start = 0;

  constructor(instance: CompilerInstance, work: ModuleWork) {
    const { exports } = instance;
    this.#instance = instance;
    this.#exports = exports;
    this.#work = work;
    this.#description = describeModule(work.env);
    this.#passes = passBits(passOptions(work.context.optimizations));
    this.#counts = new BodyCounts(work);
  }

  /**
   * Appends the code of defined function `index`; returns its inline sites, or that another form must compile it.
   * Throws as that does.
   */
  compile(code: MachineCode, index: number): number[] | typeof LEFT {
    const at = this.#run(code, (passes, allocation) => this.#exports.compileFunction(index, passes, allocation));
    return at === LEFT ? LEFT : this.#take(code, index, at);
  }

  /** The same from the loop at offset `place` on, as function `as`; undefined if the loop cannot be entered. */
  compileLoop(code: MachineCode, index: number, place: number, as: number): number[] | typeof LEFT | undefined {
    const at = this.#run(code, (...bits) => this.#exports.compileLoop(index, place, as, ...bits));
    if (at === 0) return undefined;
    return at === LEFT ? LEFT : this.#take(code, as, at);
  }

  /** The result of `compile`, which gets the bits of passes and allocation. */
  #run(code: MachineCode, compile: (passes: number, allocation: number) => number): number | typeof LEFT {
    this.#prepare(code);
    try {
      return compile(this.#passes, this.#allocation);
    } catch (trap) {
      const { isOfThisForm, error } = readFailure(this.#exports);
      this.#instance.tenant = undefined;
      if (isOfThisForm) return LEFT;
      throw error ?? trap;
    }
  }

  /** Appends function `index`, whose record is at address `at`. */
  #take(code: MachineCode, index: number, at: number): number[] {
    const exports = this.#exports;
    const facts = new Int32Array(exports.memory.buffer, at, FACT.COUNT);
    if (facts[FACT.MISSING] >= 0) throw new CalleeUnknown(facts[FACT.MISSING]);
    appendBody(exports, this.#work, code, index, facts);
    const sites = this.#inlineSites(facts[FACT.INLINE_SITES]);
    const { maxLeftBytes } = this.#instance;
    if (exports.usedBytes() - this.#start > maxLeftBytes) this.#instance.tenant = undefined;
    this.#counts.add(new Int32Array(exports.memory.buffer, exports.counts(), FIRST_DENIAL + MAX_DENIALS));
    return sites;
  }

  /** Writes the module, unless the instance has it and knows the functions of `code`. */
  #prepare(code: MachineCode): void {
    if (this.#instance.tenant === this.#mark && this.#known === code) {
      if (code.rank !== undefined) this.#functions!.update();
      return;
    }
    const exports = this.#exports;
    exports.reset();
    this.#allocation = writeWork(exports, this.#work, this.#description, code);
    this.#functions = new KnownFunctions(exports, code);
    this.#start = exports.usedBytes();
    this.#known = code;
    this.#instance.tenant = this.#mark;
  }

  /** Three words for each of `count` sites; none if there is only the function itself. */
  #inlineSites(count: number): number[] {
    const words: number[] = [];
    if (count < 2) return words;
    for (let n = 0; n < count; n++) {
      for (let field = 0; field < 3; field++) words.push(this.#exports.inlineSite(n, field));
    }
    return words;
  }
}
