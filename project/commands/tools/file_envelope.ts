/**
 * The frame of commands that read one or more files and know `--json`: a document in the envelope of output_schemas.ts
 * with the command's data, or with the finding if a file was refused. Without `--json` the failure is thrown.
 */
import process from "node:process";
import { WaftError } from "@waft/engine/internal/errors";
import { writeText } from "@waft/engine/internal/host/process";
import { type Diagnostic, EXIT, jsonLine } from "../../base/diagnostic.ts";
import { FileFailure, oneLine, UsageError } from "../../base/failure.ts";

/** The output of a command with a result. */
interface EnvelopeOutput<T> {
  readonly data: (result: T) => object;
  readonly print: (result: T) => void;
  /** Findings about a file that was read. None when absent. */
  readonly diagnostics?: (result: T) => readonly Diagnostic[];
}

/** Prints the result of `work` on `file` as JSON, or with `print`. Throws FileFailure without `json`. */
export async function withEnvelope<T>(
  command: string,
  file: string,
  json: boolean,
  work: () => T | Promise<T>,
  output: EnvelopeOutput<T>,
): Promise<void> {
  try {
    const result = await work();
    const diagnostics = output.diagnostics?.(result) ?? [];
    if (json) writeEnvelope(command, output.data(result), diagnostics);
    else output.print(result);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const failed = error instanceof FileFailure ? error : new FileFailure(file, error);
    const { cause } = failed;
    const place = cause instanceof WaftError ? cause.place : {};
    if (!json) throw place.file === undefined ? failed : new FileFailure(place.file, cause);
    if (!(cause instanceof WaftError) && !isSystemError(cause)) throw error;
    writeEnvelope(command, null, [finding(command, cause, { ...place, file: place.file ?? failed.file })]);
    process.exitCode = EXIT.failure;
  }
}

function writeEnvelope(command: string, data: object | null, diagnostics: readonly Diagnostic[]): void {
  const ok = diagnostics.length === 0;
  writeText(1, `${jsonLine({ schemaVersion: 1, command, ok, data, diagnostics })}\n`);
}

/** True for a failure of the operating system, such as a missing file. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** The finding for a file that is refused. */
export function finding(
  command: string,
  error: Error,
  { file, line, column }: { file: string; line?: number; column?: number },
): Diagnostic {
  return {
    code: `${command.split(".")[0]}.${error instanceof WaftError ? "rejected" : "unreadable"}`,
    severity: "error",
    message: oneLine(error.message),
    file,
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
  };
}
