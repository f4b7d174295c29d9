/**
 * The inputs of programs whose files and streams are in memory, for modules (run_program.ts) and components
 * (component/program/mod.ts). In: the options of a run. Out: an engine, a context and the options of WASI, and the
 * result of the run. Invariant: the options give the program nothing of the host but clocks and random bytes.
 */
import { type Context, type Engine, NewEngine } from "../api/engine.ts";
import { TrapError } from "../base/errors.ts";
import { requireKnownNames, requireRecord } from "../base/arguments.ts";
import { bytesOf, Collected, type Contents } from "./memory_streams.ts";
import { WasiExit, type WasiOptions } from "./mod.ts";

/** Limits of a program. */
export interface ProgramLimits extends Pick<Context, "deadline" | "processorTime" | "fuel" | "signal"> {
  /** The maximum length of each memory in pages of 64 KiB. */
  maxMemoryPages?: number;
  /** The maximum number of bytes of its files and of its output together. Default: 64 MiB. */
  maxFileBytes?: number;
}

/** The inputs of a program. */
export interface ProgramOptions {
  /** The arguments after the program's name. */
  args?: readonly string[];
  /** The program's name, its argument 0. Default: `program`. */
  name?: string;
  /** Environment variables by name. */
  env?: Readonly<Record<string, string>>;
  /** Standard input: bytes, text, an iterable of them, or a stream, which is read before the program starts. */
  stdin?: Contents | Iterable<Contents> | AsyncIterable<Contents> | ReadableStream<Uint8Array>;
  /** Files in memory by their paths, which the program sees below `/`. */
  files?: Readonly<Record<string, Contents>>;
  /** Limits of the run. */
  limits?: ProgramLimits;
}

/** The result of a program. */
export interface ProgramResult {
  /** The status with which it exited: 0 if it returned, 134 if it trapped. */
  readonly status: number;
  /** Its standard output as text in UTF-8. */
  readonly stdout: string;
  /** Its standard error as text in UTF-8. */
  readonly stderr: string;
  /** Its standard output as it was written. */
  readonly stdoutBytes: Uint8Array<ArrayBuffer>;
  /** Its standard error as it was written. */
  readonly stderrBytes: Uint8Array<ArrayBuffer>;
  /** Its files by their paths: those that it was given, as it left them, and those that it made. */
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** The trap that ended it, also that of a limit. */
  readonly trap?: TrapError;
}

/** The status of a program that trapped: that of a process that a signal has aborted. */
const TRAPPED = 134;

const OPTION_NAMES: Readonly<Record<keyof ProgramOptions, true>> = {
  args: true,
  name: true,
  env: true,
  stdin: true,
  files: true,
  limits: true,
};

const LIMIT_NAMES: Readonly<Record<keyof ProgramLimits, true>> = {
  deadline: true,
  processorTime: true,
  fuel: true,
  signal: true,
  maxMemoryPages: true,
  maxFileBytes: true,
};

/** A run that has been prepared. */
export interface PreparedProgram {
  readonly engine: Engine;
  readonly context: Context;
  readonly wasi: WasiOptions;
  /** Runs `start` to its end; `files` are those of the program's WASI. */
  finish(start: () => Promise<number>, files: () => Record<string, Uint8Array>): Promise<ProgramResult>;
}

/** Reads the options of a run. Rejects with TypeError and RangeError for options that are refused. */
export async function prepareProgram(options: ProgramOptions): Promise<PreparedProgram> {
  requireRecord(options, "The options of a program");
  requireKnownNames("option of a program", options, OPTION_NAMES);
  const { name = "program", args = [], env = {}, files = {}, limits = {}, stdin = "" } = options;
  requireRecord(env, "The option env");
  requireRecord(limits, "The option limits");
  requireKnownNames("limit of a program", limits, LIMIT_NAMES);
  const { maxMemoryPages, maxFileBytes, ...context } = limits;
  const { deadline, processorTime, signal, fuel } = context;
  const engine = NewEngine({
    interruptible: deadline !== undefined || processorTime !== undefined || signal !== undefined,
    fuel: fuel !== undefined,
    ...(maxMemoryPages === undefined ? {} : { limits: { maxMemoryPages } }),
  });
  const [stdout, stderr] = [new Collected(), new Collected()];
  const wasi: WasiOptions = {
    args: [name, ...args],
    env: Object.entries(env),
    stdin: await wholeInput(stdin),
    stdout: stdout.add,
    stderr: stderr.add,
    files,
    ...(maxFileBytes === undefined ? {} : { maxFileBytes }),
  };
  return { engine, context, wasi, finish };

  async function finish(start: () => Promise<number>, remaining: () => Record<string, Uint8Array>) {
    let status = TRAPPED;
    let trap: TrapError | undefined;
    try {
      status = await start();
    } catch (error) {
      if (error instanceof WasiExit) status = error.status;
      else if (error instanceof TrapError) trap = error;
      else throw error;
    }
    const [out, err] = [stdout.bytes, stderr.bytes];
    return {
      status,
      stdout: new TextDecoder().decode(out),
      stderr: new TextDecoder().decode(err),
      stdoutBytes: out,
      stderrBytes: err,
      files: remaining(),
      ...(trap === undefined ? {} : { trap }),
    };
  }
}

/** The input of a program: as it is, or what a stream has until its end. */
async function wholeInput(stdin: NonNullable<ProgramOptions["stdin"]>): Promise<Contents | Iterable<Contents>> {
  if (typeof stdin !== "object" || !(Symbol.asyncIterator in stdin)) return stdin as Contents | Iterable<Contents>;
  const parts = new Collected();
  for await (const part of stdin as AsyncIterable<Contents>) parts.add(bytesOf(part, "A part of the option stdin"));
  return parts.bytes;
}
