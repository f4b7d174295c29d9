/**
 * Profiles in the format that the Firefox profiler opens: its processed profile, version 49. In: a profile. Out: the
 * JSON value. Invariant: every table has columns of one length, whose indices are within the tables that they refer to.
 */
import { displayName } from "../base/guest_stack.ts";
import type { Profile, ProfileFrame } from "./profile.ts";

/** The format of the value, and that of the profiler of Firefox from which it derives. */
const PROCESSED_VERSION = 49;
const GECKO_VERSION = 24;

const CATEGORIES = [
  { name: "Other", color: "grey", subcategories: ["Other"] },
  { name: "WebAssembly", color: "purple", subcategories: ["Other"] },
  { name: "Host", color: "yellow", subcategories: ["Other"] },
  { name: "Engine", color: "orange", subcategories: ["Other"] },
] as const;

const CATEGORY: Readonly<Record<ProfileFrame["kind"], number>> = { wasm: 1, host: 2, engine: 3 };

/** Numbers texts in order of their first use. */
class Texts {
  readonly list: string[] = [];
  readonly #numbers = new Map<string, number>();

  number(text: string): number {
    const known = this.#numbers.get(text) ?? this.list.push(text) - 1;
    this.#numbers.set(text, known);
    return known;
  }
}

function columnOf<T>(length: number, value: T): T[] {
  return new Array<T>(length).fill(value);
}

/** The JSON value for `profile`, with `name` for the program. */
export function firefoxProfile(profile: Profile, name: string): object {
  const { interval, sampleTimes } = profile;
  const end = (sampleTimes.at(-1) ?? 0) + interval;
  return {
    meta: {
      product: name,
      interval,
      startTime: Date.now() - end,
      processType: 0,
      stackwalk: 1,
      debug: false,
      version: GECKO_VERSION,
      preprocessedProfileVersion: PROCESSED_VERSION,
      symbolicated: true,
      importedFrom: "waft",
      categories: CATEGORIES,
      markerSchema: [],
      extensions: { id: [], name: [], baseURL: [], length: 0 },
      sampleUnits: { time: "ms", eventDelay: "ms", threadCPUDelta: "µs" },
      doesNotUseFrameImplementation: true,
      usesOnlyOneStackType: true,
      sourceCodeIsNotOnSearchfox: true,
    },
    libs: [],
    pages: [],
    counters: [],
    profilerOverhead: [],
    threads: [thread(profile, name)],
  };
}

function thread(profile: Profile, name: string): object {
  const texts = new Texts();
  const { frames, stackFrames, stackCallers, sampleStacks, sampleTimes } = profile;
  const kinds = stackFrames.map((frame) => CATEGORY[frames[frame].kind]);
  const functions = functionTable(frames, texts);
  return {
    name: "guest",
    processName: name,
    processType: "default",
    isMainThread: true,
    pid: "1",
    tid: 1,
    registerTime: 0,
    unregisterTime: null,
    processStartupTime: 0,
    processShutdownTime: null,
    pausedRanges: [],
    samples: {
      stack: sampleStacks,
      time: sampleTimes,
      weight: null,
      weightType: "samples",
      length: sampleStacks.length,
    },
    stackTable: {
      frame: stackFrames,
      prefix: stackCallers.map((caller) => caller < 0 ? null : caller),
      category: kinds,
      subcategory: columnOf(kinds.length, 0),
      length: stackFrames.length,
    },
    frameTable: frameTable(frames, functions.ofFrame),
    funcTable: functions.table,
    resourceTable: { lib: [], name: [], host: [], type: [], length: 0 },
    nativeSymbols: { libIndex: [], address: [], name: [], functionSize: [], length: 0 },
    markers: { data: [], name: [], startTime: [], endTime: [], phase: [], category: [], length: 0 },
    stringArray: texts.list,
  };
}

function frameTable(frames: readonly ProfileFrame[], functionOf: readonly number[]): object {
  const { length } = frames;
  return {
    address: columnOf(length, -1),
    inlineDepth: frames.map(({ isInlined }) => isInlined ? 1 : 0),
    category: frames.map(({ kind }) => CATEGORY[kind]),
    subcategory: columnOf(length, 0),
    func: functionOf,
    nativeSymbol: columnOf(length, null),
    innerWindowID: columnOf(length, null),
    implementation: columnOf(length, null),
    line: frames.map(({ line }) => line ?? null),
    column: columnOf(length, null),
    optimizations: columnOf(length, null),
    length,
  };
}

/** The functions of the frames, and the function of each frame. A function has the file of its first frame. */
function functionTable(frames: readonly ProfileFrame[], texts: Texts): { table: object; ofFrame: number[] } {
  const numbers = new Map<string, number>();
  const firsts: ProfileFrame[] = [];
  const ofFrame = frames.map((frame) => {
    const key = JSON.stringify([frame.kind, frame.module, frame.funcIndex ?? frame.name, frame.file]);
    const known = numbers.get(key) ?? firsts.push(frame) - 1;
    numbers.set(key, known);
    return known;
  });
  const { length } = firsts;
  const table = {
    name: firsts.map(({ name }) => texts.number(displayName(name))),
    isJS: columnOf(length, false),
    relevantForJS: firsts.map(({ kind }) => kind === "host"),
    resource: columnOf(length, -1),
    fileName: firsts.map(({ file }) => file === undefined ? null : texts.number(file)),
    lineNumber: columnOf(length, null),
    columnNumber: columnOf(length, null),
    length,
  };
  return { table, ofFrame };
}
