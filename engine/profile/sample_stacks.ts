/**
 * Guest stacks of samples. In: the copies of stacks that a sampler made, and the modules whose code was running. Out:
 * frames, innermost first, with inlined functions, and host functions as frames.
 *
 * At a call the tables give the size of the frame. The innermost frame was interrupted anywhere, so its size is that at
 * a nearby site, or none in a prologue; a return address is accepted if the call before it leads to the interrupted
 * function. Invariant: nothing on the stack is trusted; an implausible word ends the walk.
 */
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { STATUS, TAIL_FRAME } from "../abi/context_layout.ts";
import { nearSites, type PositionOf } from "../link/code_positions.ts";
import { callerAt, type ImageOwner } from "../runtime/traps/trap_error.ts";
import { COPIED_BYTES, type RawSample } from "./sampler.ts";

/** A frame of a sample. */
export type SampleFrame =
  | {
    readonly kind: "wasm";
    readonly owner: ImageOwner;
    readonly funcIndex: number;
    /** Byte offset in the module; 0 if it is unknown. */
    readonly offset: number;
    readonly isInlined: boolean;
  }
  /** A function of the host, a builtin or intrinsic code of the engine, or other JavaScript. */
  | { readonly kind: "host" | "engine"; readonly name: string };

/** Lookups in the running code that reading stacks needs. */
interface StackSources {
  readonly arch: "x64" | "arm64";
  readonly lookup: (address: number) => ImageOwner | undefined;
  /** The return address of tail calls into other instances. */
  readonly tailReturn: number;
  /** The name of the import that a parked context has called, for display. */
  readonly hostName: (context: number, index: number) => string | undefined;
  /** Positions in a function's code, if they are known exactly. */
  readonly positionsOf: (owner: ImageOwner, defined: number) => PositionOf | undefined;
  /** Bytes of code of an image. */
  readonly codeOf: (owner: ImageOwner) => DataView | undefined;
}

/** Largest number of frames of a sample. */
const MAX_FRAMES = 256;
/** Largest number of words between a parked stack pointer, or the end of an activation, and the next return address. */
const PARKED_WORDS = 48;
/** Largest number of jumps between a call and its function: out of an image, and to the function's optimized code. */
const MAX_JUMPS = 3;
/** Largest innermost frame, in words. */
const FRAME_WORDS = 512;
/** Largest copy of a stack, in words. */
const COPIED_WORDS = COPIED_BYTES / 8;

const JAVASCRIPT: SampleFrame = { kind: "host", name: "JavaScript" };
const DEEPER: SampleFrame = { kind: "engine", name: "(outer frames)" };

/** Opcodes of x64 in front of a displacement of four bytes. */
const JMP_REL32 = 0xe9;
const CALL_REL32 = 0xe8;

/** Reads the stacks of samples. */
export class StackReader {
  readonly #sources: StackSources;
  #frames: SampleFrame[] = [];

  constructor(sources: StackSources) {
    this.#sources = sources;
  }

  /** The frames of a sample, innermost first; at least one. */
  read(sample: RawSample): SampleFrame[] {
    this.#frames = [];
    const owner = sample.pc === 0 ? undefined : this.#sources.lookup(sample.pc);
    const defined = owner === undefined ? -1 : owner.image.functionAt(sample.pc);
    if (sample.pc === 0) this.#frames.push(this.#hostFrame(sample));
    if (owner === undefined || defined < 0) this.#walk(sample.words, this.#nextReturn(sample.words, 0, PARKED_WORDS));
    else {
      this.#innermost(owner, defined, sample.pc);
      this.#walk(sample.words, this.#callerOf(sample, owner, defined));
    }
    if (this.#frames.length === 0) this.#frames.push(JAVASCRIPT);
    return this.#frames;
  }

  #hostFrame({ status, index, context }: RawSample): SampleFrame {
    if (status === STATUS.HOST) {
      const name = this.#sources.hostName(context, index);
      return name === undefined ? JAVASCRIPT : { kind: "host", name };
    }
    if (status === STATUS.BUILTIN) return { kind: "engine", name: BUILTIN_ROWS[index]?.name ?? "builtin" };
    return JAVASCRIPT;
  }

  #innermost(owner: ImageOwner, defined: number, pc: number): void {
    const { base, tables } = owner.image;
    const at = pc - base;
    const exact = this.#sources.positionsOf(owner, defined)?.(at, at + 1);
    const near = exact ?? nearSites(tables, at, tables.functionStart[defined], tables.functionEnd[defined])[0];
    this.#add(owner, defined, near?.pos ?? 0, near?.site ?? 0);
  }

  /** Adds a function's frame, and before it those of the functions inlined at site `site`. */
  #add(owner: ImageOwner, defined: number, pos: number, site: number): void {
    if (owner.internal) {
      const name = owner.moduleName ?? "garbage collector";
      const last = this.#frames.at(-1);
      if (last?.kind !== "engine" || last.name !== name) this.#frames.push({ kind: "engine", name });
      return;
    }
    const sites = owner.inlineSites(defined);
    let offset = pos;
    for (let s = site; s > 0 && sites[s] !== undefined; s = sites[s].parent) {
      this.#frames.push({ kind: "wasm", owner, funcIndex: sites[s].funcIndex, offset, isInlined: true });
      offset = sites[s].callPos;
    }
    const funcIndex = owner.importedFuncCount + defined;
    this.#frames.push({ kind: "wasm", owner, funcIndex, offset, isInlined: false });
  }

  /** Index of the word with the return address of the interrupted function; −1 if there is none. */
  #callerOf({ words, link, pc }: RawSample, owner: ImageOwner, defined: number): number {
    const { image: { base, tables } } = owner;
    const at = pc - base;
    const [start, end] = [tables.functionStart[defined], tables.functionEnd[defined]];
    const entry = base + start;
    if (
      this.#sources.arch === "arm64" && this.#calls(link, entry) === "this" &&
      owner.image.functionAt(link - 1) !== defined
    ) {
      this.#addCall(link);
      return this.#afterLink(words, link);
    }
    // A frame has words that were never written: elsewhere than at a known size, a call by address may be one of an
    // activation that has returned.
    const known = new Set([...nearSites(tables, at, start, end).map(({ frame }) => frame >> 3), 0]);
    const sizes = new Set([...known, ...Array.from({ length: Math.min(FRAME_WORDS, words.length) }, (_, k) => k)]);
    let possible = -1;
    for (const size of sizes) {
      if (size >= words.length) continue;
      const kind = this.#calls(words[size], entry);
      if (kind === "this") return size;
      if (kind === "unknown" && possible < 0 && (known.has(size) || known.size === 1)) possible = size;
    }
    return possible;
  }

  /** The next return address after that in the link register, whose call site gives the frame's size. */
  #afterLink(words: Float64Array, link: number): number {
    const frame = callerAt(this.#sources.lookup, link)?.image.callSiteAt(link)?.frame ?? 0;
    const at = frame >> 3;
    return at < words.length ? at : -1;
  }

  #addCall(address: number): boolean {
    const owner = callerAt(this.#sources.lookup, address);
    const site = owner?.image.callSiteAt(address);
    if (owner === undefined || site === undefined) return false;
    const defined = owner.image.functionAt(address - 1);
    if (defined < 0) return false;
    this.#add(owner, defined, site.pos, site.site);
    return true;
  }

  /**
   * Whether `word` returns from a call of the code at `entry` ("this"), from a call by address ("unknown"), or neither
   * ("no").
   */
  #calls(word: number, entry: number): "this" | "unknown" | "no" {
    const owner = callerAt(this.#sources.lookup, word);
    if (owner === undefined || owner.image.callSiteAt(word) === undefined) return "no";
    let target = this.#directTarget(owner, word);
    if (target === undefined) return "unknown";
    for (let jumps = 0; target !== undefined && jumps <= MAX_JUMPS; jumps++) {
      if (target === entry) return "this";
      target = this.#jumpTarget(target);
    }
    return "no";
  }

  /** The target of the jump at `address`, as at the start of a replaced function; undefined if there is none. */
  #jumpTarget(address: number): number | undefined {
    const owner = this.#sources.lookup(address);
    const code = owner && this.#sources.codeOf(owner);
    if (owner === undefined || code === undefined) return undefined;
    const at = address - owner.image.base;
    if (this.#sources.arch === "arm64") {
      const instruction = at + 4 > code.byteLength ? 0 : code.getUint32(at, true);
      return instruction >>> 26 === 0b000101 ? address + ((instruction << 6) >> 6) * 4 : undefined;
    }
    const isJump = at + 5 <= code.byteLength && code.getUint8(at) === JMP_REL32;
    return isJump ? address + 5 + code.getInt32(at + 1, true) : undefined;
  }

  /** The target of the direct call before a return address. */
  #directTarget(owner: ImageOwner, word: number): number | undefined {
    const code = this.#sources.codeOf(owner);
    if (code === undefined) return undefined;
    const at = word - owner.image.base;
    if (this.#sources.arch === "arm64") {
      const instruction = at < 4 ? 0 : code.getUint32(at - 4, true);
      return instruction >>> 26 === 0b100101 ? word - 4 + ((instruction << 6) >> 6) * 4 : undefined;
    }
    return at >= 5 && code.getUint8(at - 5) === CALL_REL32 ? word + code.getInt32(at - 4, true) : undefined;
  }

  /** Index of the first known return address from word `at` on, in the next `count` words; −1 if there is none. */
  #nextReturn(words: Float64Array, at: number, count: number): number {
    for (let k = at; k < Math.min(words.length, at + count); k++) {
      if (callerAt(this.#sources.lookup, words[k])?.image.callSiteAt(words[k]) !== undefined) return k;
    }
    return -1;
  }

  /** Adds frames by following return addresses from word `first` on, also those of outer activations. */
  #walk(words: Float64Array, first: number): void {
    for (let at = first; at >= 0 && this.#frames.length < MAX_FRAMES;) {
      if (at >= words.length) {
        if (words.length >= COPIED_WORDS) this.#frames.push(DEEPER);
        return;
      }
      if (words[at] === this.#sources.tailReturn) {
        at += TAIL_FRAME.SIZE >> 3;
        continue;
      }
      const site = callerAt(this.#sources.lookup, words[at])?.image.callSiteAt(words[at]);
      if (site !== undefined && this.#addCall(words[at])) {
        at += 1 + (site.frame >> 3);
        continue;
      }
      // Not a frame of a function: a stub whose caller's frame follows (loop entries), or the end of an activation.
      const next = site === undefined ? -1 : at + 1 + (site.frame >> 3);
      const isStub = next >= 0 && this.#nextReturn(words, next, 1) >= 0;
      at = isStub ? next : this.#nextReturn(words, at + 1, PARKED_WORDS);
      if (!isStub && at >= 0 && this.#frames.at(-1)?.kind !== "host") this.#frames.push(JAVASCRIPT);
    }
  }
}
