/**
 * A profile: samples of stacks, with shared frames. In: frames of samples. Out: the share of each function, and the
 * file format of the Firefox profiler (firefox_profile.ts). Invariant: indices are within the tables that they refer
 * to, and the caller of a stack precedes it.
 */
import { reportedName, shortName } from "../base/guest_stack.ts";
import type { SourcePlace } from "../base/errors.ts";
import type { ImageOwner } from "../runtime/traps/trap_error.ts";
import { firefoxProfile } from "./firefox_profile.ts";
import type { SampleFrame } from "./sample_stacks.ts";

/** A function, or a line of it, on a stack. */
export interface ProfileFrame {
  /** `wasm`: compiled code; `host`: a function of the host or other JavaScript; `engine`: code of the engine itself. */
  readonly kind: "wasm" | "host" | "engine";
  /** The name of the function or import; `func 7` if a function has none. */
  readonly name: string;
  /** The name of the module, if it has one. */
  readonly module?: string;
  /** The index of the function in its module. */
  readonly funcIndex?: number;
  /** Whether the function was inlined into the frame around it. */
  readonly isInlined: boolean;
  /** The source file, as the source map or the DWARF line tables name it. */
  readonly file?: string;
  /** The line in the source, from 1. */
  readonly line?: number;
}

/** A function with its samples. */
export interface ProfiledFunction {
  /** The kind of its frames. */
  readonly kind: ProfileFrame["kind"];
  /** The name of the function or import. */
  readonly name: string;
  /** The name of the module, if it has one. */
  readonly module?: string;
  /** The index of the function in its module. */
  readonly funcIndex?: number;
  /** Samples in the function itself. */
  readonly self: number;
  /** Samples in the function or in functions that it called. */
  readonly total: number;
}

/** The samples of a run. */
export class Profile {
  /** Milliseconds between two samples. */
  readonly interval: number;
  /** The frames; each function has one per line. */
  readonly frames: readonly ProfileFrame[];
  /** By stack: the index of its innermost frame. */
  readonly stackFrames: readonly number[];
  /** By stack: the index of the stack without that frame, −1 for none. */
  readonly stackCallers: readonly number[];
  /** By sample: the index of its stack. */
  readonly sampleStacks: readonly number[];
  /** By sample: milliseconds since the start. */
  readonly sampleTimes: readonly number[];
  /** Samples for which there was no room. */
  readonly dropped: number;

  /** @internal */
  constructor(parts: ProfileParts) {
    this.interval = parts.interval;
    this.frames = parts.frames;
    this.stackFrames = parts.stackFrames;
    this.stackCallers = parts.stackCallers;
    this.sampleStacks = parts.sampleStacks;
    this.sampleTimes = parts.sampleTimes;
    this.dropped = parts.dropped;
  }

  /** The functions with their samples, in descending order of `self`, then of `total`. */
  functions(): ProfiledFunction[] {
    const found = new Map<string, { frame: ProfileFrame; self: number; total: number }>();
    const keys = this.frames.map(functionKey);
    const counts = new Uint32Array(this.stackFrames.length);
    for (const stack of this.sampleStacks) counts[stack]++;
    counts.forEach((count, stack) => {
      if (count === 0) return;
      const seen = new Set<string>();
      for (let at = stack; at >= 0; at = this.stackCallers[at]) {
        const frame = this.frames[this.stackFrames[at]];
        const key = keys[this.stackFrames[at]];
        const row = found.get(key) ?? { frame, self: 0, total: 0 };
        found.set(key, row);
        if (at === stack) row.self += count;
        if (!seen.has(key)) row.total += count;
        seen.add(key);
      }
    });
    return [...found.values()].sort((a, b) => b.self - a.self || b.total - a.total).map(({ frame, self, total }) => {
      const { kind, name, module, funcIndex } = frame;
      return {
        kind,
        name,
        ...(module === undefined ? {} : { module }),
        ...(funcIndex === undefined ? {} : { funcIndex }),
        self,
        total,
      };
    });
  }

  /** The profile as the JSON value that the Firefox profiler opens, with `name` for the program. */
  toFirefox(name: string): object {
    return firefoxProfile(this, name);
  }
}

/** The fields of a profile. */
type ProfileParts = Pick<
  Profile,
  "interval" | "frames" | "stackFrames" | "stackCallers" | "sampleStacks" | "sampleTimes" | "dropped"
>;

function functionKey({ kind, module, funcIndex, name }: ProfileFrame): string {
  return JSON.stringify([kind, module ?? "", funcIndex ?? name]);
}

/** The source location of an offset in the module of a frame. */
export type FramePlaces = (owner: ImageOwner, funcIndex: number, offset: number) => SourcePlace | undefined;

/** Builds the tables of a profile. */
export class ProfileBuilder {
  readonly #placeOf: FramePlaces;
  readonly #frames: ProfileFrame[] = [];
  readonly #frameNumbers = new Map<string, number>();
  readonly #modules = new Map<object, number>();
  readonly #stackFrames: number[] = [];
  readonly #stackCallers: number[] = [];
  readonly #stackNumbers = new Map<number, Map<number, number>>();
  readonly #sampleStacks: number[] = [];
  readonly #sampleTimes: number[] = [];

  constructor(placeOf: FramePlaces) {
    this.#placeOf = placeOf;
  }

  /** Adds a sample with its frames, innermost first. */
  add(frames: readonly SampleFrame[], time: number): void {
    let stack = -1;
    for (let k = frames.length - 1; k >= 0; k--) stack = this.#stack(stack, this.#frame(frames[k]));
    this.#sampleStacks.push(stack);
    this.#sampleTimes.push(time);
  }

  build(interval: number, dropped: number): Profile {
    return new Profile({
      interval,
      dropped,
      frames: this.#frames,
      stackFrames: this.#stackFrames,
      stackCallers: this.#stackCallers,
      sampleStacks: this.#sampleStacks,
      sampleTimes: this.#sampleTimes,
    });
  }

  #stack(caller: number, frame: number): number {
    let callees = this.#stackNumbers.get(caller);
    if (callees === undefined) this.#stackNumbers.set(caller, callees = new Map());
    const known = callees.get(frame);
    if (known !== undefined) return known;
    const number = this.#stackFrames.length;
    callees.set(frame, number);
    this.#stackFrames.push(frame);
    this.#stackCallers.push(caller);
    return number;
  }

  #frame(frame: SampleFrame): number {
    const place = frame.kind !== "wasm" || frame.offset === 0
      ? undefined
      : this.#placeOf(frame.owner, frame.funcIndex, frame.offset);
    const key = this.#key(frame, place);
    const known = this.#frameNumbers.get(key);
    if (known !== undefined) return known;
    const number = this.#frames.length;
    this.#frameNumbers.set(key, number);
    this.#frames.push(frame.kind === "wasm" ? wasmFrame(frame, place) : { ...frame, isInlined: false });
    return number;
  }

  /** The key that merges frames of the same function and line. */
  #key(frame: SampleFrame, place: SourcePlace | undefined): string {
    if (frame.kind !== "wasm") return JSON.stringify([frame.kind, frame.name]);
    const { owner: { valid }, funcIndex, isInlined } = frame;
    const module = this.#modules.get(valid) ?? this.#modules.size;
    this.#modules.set(valid, module);
    return JSON.stringify([module, funcIndex, isInlined, place?.file, place?.line]);
  }
}

type WasmFrame = Extract<SampleFrame, { kind: "wasm" }>;

function wasmFrame({ owner, funcIndex, isInlined }: WasmFrame, place: SourcePlace | undefined): ProfileFrame {
  return {
    kind: "wasm",
    // A report repeats the names in every stack.
    name: reportedName(owner.funcName(funcIndex) ?? `func ${funcIndex}`),
    ...(owner.moduleName === undefined ? {} : { module: shortName(owner.moduleName) }),
    funcIndex,
    isInlined,
    ...(place?.file === undefined ? {} : { file: place.file }),
    ...(place?.line === undefined ? {} : { line: place.line }),
  };
}
