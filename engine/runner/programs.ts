/**
 * Programs of WASI in messages. In: the inputs of a program, and its result. Out: payloads, and the same again.
 * Invariant: the result of a hostile runner has the parts that its type names.
 */
import { bytesIn, isRecord, requireKnownNames, requireRecord } from "../base/arguments.ts";
import { TrapError } from "../base/errors.ts";
import type { Contents } from "../wasi/memory_streams.ts";
import type { ProgramLimits, ProgramOptions, ProgramResult } from "../wasi/prepare_program.ts";
import { describeFailure, readFailure } from "./failures.ts";
import { millisecondsOf, within } from "./limits.ts";
import { ProtocolError } from "./protocol.ts";
import { jsonOf, PayloadReader, type PayloadWriter } from "./values.ts";

/** The inputs of a program of WASI in a runner. */
export interface RunnerProgram {
  /** The arguments after the program's name. */
  args?: readonly string[];
  /** The program's name, its argument 0. Default: `program`. */
  name?: string;
  /** Environment variables by name. */
  env?: Readonly<Record<string, string>>;
  /** Standard input. */
  stdin?: Contents;
  /** Files in memory by their paths, which the program sees below `/`. */
  files?: Readonly<Record<string, Contents>>;
  /** Limits of the run. */
  limits?: Omit<ProgramLimits, "signal">;
}

const PROGRAM_NAMES: Readonly<Record<keyof RunnerProgram, true>> = {
  args: true,
  name: true,
  env: true,
  stdin: true,
  files: true,
  limits: true,
};

const ENCODER = new TextEncoder();

/** The request that runs a program. Throws TypeError and RangeError for options that are refused. */
export function programRequest(program: RunnerProgram): {
  readonly within: number | undefined;
  readonly write: (writer: PayloadWriter) => void;
} {
  requireRecord(program, "The options of a program");
  requireKnownNames("option of a program", program, PROGRAM_NAMES);
  const { stdin = "", files = {}, limits = {}, ...rest } = program;
  const { fuel, ...others } = limits;
  const deadline = millisecondsOf(limits.deadline);
  const paths = Object.keys(files);
  const json = JSON.stringify({
    ...rest,
    paths,
    limits: { ...others, ...(deadline === undefined ? {} : { deadline }) },
    ...(fuel === undefined ? {} : { fuel: String(fuel) }),
  });
  const write = (writer: PayloadWriter) => {
    writer.text(json).bytes(contentsOf(stdin, "The option stdin"));
    for (const path of paths) writer.bytes(contentsOf(files[path], `The file "${path}"`));
  };
  return { within: within(deadline), write };
}

function contentsOf(contents: Contents, what: string): Uint8Array {
  return typeof contents === "string" ? ENCODER.encode(contents) : bytesIn(contents, what);
}

/** Reads the result of a program. Throws ProtocolError. */
export function readProgramResult(payload: Uint8Array): ProgramResult {
  const reader = new PayloadReader(payload);
  const json = jsonOf(reader.bytes());
  const { status, paths, trap } = (isRecord(json) ? json : {}) as Record<string, unknown>;
  if (typeof status !== "number" || !Array.isArray(paths)) throw new ProtocolError("a result without a status");
  const stdoutBytes = reader.bytes();
  const stderrBytes = reader.bytes();
  const files: Record<string, Uint8Array> = Object.create(null);
  for (const path of paths) files[String(path)] = reader.bytes();
  reader.end();
  const error = typeof trap === "string" ? readFailure(ENCODER.encode(trap)).error : undefined;
  return {
    status,
    stdout: new TextDecoder().decode(stdoutBytes),
    stderr: new TextDecoder().decode(stderrBytes),
    stdoutBytes,
    stderrBytes,
    files,
    ...(TrapError.is(error) ? { trap: error } : {}),
  };
}

/** Reads the inputs of a program, in the runner. */
export function readProgramOptions(payload: Uint8Array): ProgramOptions {
  const reader = new PayloadReader(payload);
  const { paths, fuel, ...options } = jsonOf(reader.bytes()) as ProgramOptions & { paths: string[]; fuel?: string };
  const stdin = reader.bytes();
  const files: Record<string, Uint8Array> = Object.create(null);
  for (const path of paths) files[path] = reader.bytes();
  const limits = fuel === undefined ? options.limits : { ...options.limits, fuel: BigInt(fuel) };
  return { ...options, ...(limits === undefined ? {} : { limits }), stdin, files };
}

/** Writes the result of a program, in the runner. */
export function writeProgramResult(
  writer: PayloadWriter,
  { status, stdoutBytes, stderrBytes, files, trap }: ProgramResult,
) {
  const paths = Object.keys(files);
  const failure = trap === undefined ? {} : { trap: describeFailure(trap) };
  writer.text(JSON.stringify({ status, paths, ...failure })).bytes(stdoutBytes).bytes(stderrBytes);
  for (const path of paths) writer.bytes(files[path]);
}
