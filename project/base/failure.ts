/**
 * Reports the failure of a command: errors as lines on stderr, and an exit status: 1 failure, 2 wrong usage, 134 trap,
 * or the guest's own. Every error begins with `waft:` and names the file and position if known. Invariant: external
 * text is escaped, so it cannot forge, hide or reorder lines. waft's own stack traces appear only when WAFT_DEBUG is
 * set.
 */
// From their files: the whole engine would be loaded for commands that never compile.
import { collapseRecursion, displayName } from "@waft/engine/internal/base/guest_stack";
import { describeTrap, errorCode, LinkError, TrapError, WaftError } from "@waft/engine/internal/errors";
import { fileFacts, readFile } from "@waft/engine/internal/host/files";
import { environmentVariable, systemName, writeText } from "@waft/engine/internal/host/process";
import { escapeHostile, formatDiagnostic, ProjectError } from "./diagnostic.ts";

/** Wrong usage: exit status 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** The guest ended with this status (WASI proc_exit). */
export class GuestExit extends Error {
  override name = "GuestExit";
  readonly status: number;
  /** A probable remedy, for a line after the program's own output. */
  hint: string | undefined;

  constructor(status: number) {
    super(`The program ended with status ${status}`);
    this.status = status;
  }
}

/** A failure that concerns `file`; the message is prefixed with the file and the position in it. */
export class FileFailure extends Error {
  override name = "FileFailure";
  readonly file: string;
  /** A probable remedy, for a line after the error. */
  hint: string | undefined;

  constructor(file: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.file = file;
  }
}

/** A failure with a list below its message, such as all names that are missing. */
export class ListedFailure extends Error {
  override name = "ListedFailure";
  /** Lines that are printed verbatim; external text in them must already be escaped. */
  readonly rows: readonly string[];

  constructor(message: string, rows: readonly string[]) {
    super(message);
    this.rows = rows;
  }
}

/** Exit status of an error. */
export function exitStatus(error: unknown): number {
  if (error instanceof FileFailure) return exitStatus(error.cause);
  if (error instanceof UsageError) return 2;
  if (error instanceof ProjectError) return error.exitCode;
  if (error instanceof TrapError) return 134;
  if (error instanceof GuestExit) return error.status;
  return 1;
}

/** Writes the error to stderr. */
export function report(error: unknown): void {
  const hint = error instanceof GuestExit || error instanceof FileFailure ? error.hint : undefined;
  const lines = [
    ...(error instanceof GuestExit ? [] : [describe(error)]),
    ...(hint === undefined ? [] : [`waft: hint: ${hint}`]),
  ];
  if (lines.length > 0) writeText(2, `${lines.join("\n")}\n`);
  if (error instanceof GuestExit) return;
  if (environmentVariable("WAFT_DEBUG") !== undefined && error instanceof Error) writeText(2, `${error.stack}\n`);
}

/** The lines for an error. */
export function describe(error: unknown): string {
  if (error instanceof FileFailure) {
    const { cause, file } = error;
    if (cause instanceof TrapError) return trapLines(file, cause);
    if (cause instanceof WaftError && cause.place.line !== undefined) {
      const { line, column = 1 } = cause.place;
      return `waft: ${oneLine(file)}:${line}:${column}: ${oneLine(cause.message)}${snippet(file, line, column)}`;
    }
    if (cause instanceof ListedFailure) {
      return [`waft: ${oneLine(file)}: ${oneLine(cause.message)}:`, ...cause.rows].join("\n");
    }
    if (cause instanceof LinkError && cause.missing.length > 0) {
      const rows = cause.missing.map((entry) => `    ${oneLine(entry)}`);
      return [`waft: ${oneLine(file)}: the component's imports are missing:`, ...rows].join("\n");
    }
    const where = cause instanceof WaftError && cause.where !== "" ? ` (${cause.where})` : "";
    return `waft: ${oneLine(file)}: ${oneLine(systemMessage(cause, file) ?? error.message)}${where}`;
  }
  if (error instanceof UsageError) return `waft: ${error.message.split("\n").map(oneLine).join("\n")}`;
  if (error instanceof ProjectError) return error.diagnostics.map((d) => `waft: ${formatDiagnostic(d)}`).join("\n");
  if (error instanceof Error) {
    const { path } = error as { path?: unknown };
    const message = systemMessage(error, path);
    if (message === undefined) return `waft: ${oneLine(error.message)}`;
    return `waft: ${typeof path === "string" ? `${oneLine(path)}: ` : ""}${message}`;
  }
  return `waft: ${oneLine(String(error))}`;
}

/** Longest part of a line that a snippet shows, and how much of it is in front of the place. */
const SNIPPET_COLUMNS = 100;
const SNIPPET_BEFORE = 60;
/** Largest source that is read for a snippet. */
const MAX_SOURCE_BYTES = 16 << 20;

/** The line of a text with a caret under the column; empty when the file cannot be read again. */
function snippet(file: string, line: number, column: number): string {
  try {
    const { kind, bytes } = fileFacts(file);
    if (kind !== "file" || bytes > MAX_SOURCE_BYTES) return "";
    const source = new TextDecoder().decode(readFile(file)).split("\n")[line - 1];
    if (source === undefined) return "";
    const from = Math.max(0, column - 1 - SNIPPET_BEFORE);
    const shown = (text: string): string => oneLine(text.replaceAll("\t", " "));
    const before = shown(source.slice(from, column - 1));
    const after = shown(source.slice(column - 1, from + SNIPPET_COLUMNS).trimEnd());
    const number = String(line);
    return `\n  ${number} | ${before}${after}\n  ${" ".repeat(number.length)} | ${" ".repeat(before.length)}^`;
  } catch {
    return "";
  }
}

function trapLines(file: string, trap: TrapError): string {
  const lines = collapseRecursion(trap.frames, ({ funcIndex, funcName, offset, file, line, column }) => {
    const source = file === undefined ? "" : `${oneLine(file)}:`;
    const place = line === undefined ? `offset 0x${offset.toString(16)}` : `${source}${line}:${column}`;
    return `    at ${funcName === undefined ? `func[${funcIndex}]` : oneLine(displayName(funcName))} (${place})`;
  });
  return [`waft: ${oneLine(file)}: trap: ${oneLine(describeTrap(trap))}`, ...lines].join("\n");
}

/** Windows refuses to open directories as files, with the errors of other faults. */
const DIRECTORY_ERRORS: readonly unknown[] = ["EACCES", "EBUSY", "EINVAL", "EPERM"];

function isRefusedDirectory(code: unknown, file: unknown): boolean {
  if (systemName() !== "win32" || typeof file !== "string" || !DIRECTORY_ERRORS.includes(code)) return false;
  try {
    return fileFacts(file).kind === "directory";
  } catch {
    return false;
  }
}

/** Errors of disks in words, by code. */
export const DISK_ERRORS: { readonly [code: string]: string | undefined } = {
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is exceeded",
  EFBIG: "the file is larger than the system allows",
  EIO: "input/output error",
};

/** Words for errors of the operating system about `file`; undefined for other errors. */
function systemMessage(error: unknown, file: unknown): string | undefined {
  const code = errorCode(error);
  if (code === "ENOENT") return "no such file or directory";
  if (isRefusedDirectory(code, file)) return "is a directory";
  if (code === "EACCES" || code === "EPERM") return "permission denied";
  if (code === "EISDIR") return "is a directory";
  // Of Deno, for files that would give a program all permissions, which it cannot know that it has.
  if ((error as Error | null)?.name === "NotCapable") return "operation not permitted";
  return code === undefined ? undefined : DISK_ERRORS[code];
}

/** Text that cannot move the cursor, fake a second line, or hide or reorder its surroundings. */
export function oneLine(text: string): string {
  return escapeHostile(text);
}
