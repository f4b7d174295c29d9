/**
 * Findings, and their conversion to text and exit codes.
 *
 * In: the fault, its position (file, line, column, JSON pointer) and the remedy. Out: one line of text with a
 * `help:` line, or the JSON form of `--json`. Invariant: every failure that a user sees carries a stable code, and the
 * exit code follows from that code alone (EXIT_OF_CODE), so scripts can rely on either.
 */

/** Exit codes of every command. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  project: 3,
  review: 4,
  integrity: 5,
  unresolvable: 6,
  network: 7,
  authentication: 8,
  incompatible: 9,
  pending: 10,
} as const;

/** One of the exit codes above. */
export type ExitCode = typeof EXIT[keyof typeof EXIT];

/** The severity of a finding. */
export type Severity = "error" | "warning" | "note";

/** A finding. Lines and columns count from 1; columns count UTF-16 code units. */
export interface Diagnostic {
  /** A stable identifier, such as `lock.stale`. */
  readonly code: string;
  /** The severity. */
  readonly severity: Severity;
  /** The fault and its place, in one line. */
  readonly message: string;
  /** The file that the finding is about. */
  readonly file?: string;
  /** The line in the file. */
  readonly line?: number;
  /** The column in the line. */
  readonly column?: number;
  /** RFC 6901 pointer into the file. */
  readonly pointer?: string;
  /** Facts behind the message, a line each. */
  readonly details?: readonly string[];
  /** The remedy, or the likely mistake. */
  readonly help?: string;
}

/** Code prefixes and the exit code they mean; the longest prefix that fits wins. */
const EXIT_OF_CODE: readonly (readonly [string, ExitCode])[] = [
  ["usage.", EXIT.usage],
  ["manifest.", EXIT.project],
  ["project.", EXIT.project],
  ["lock.", EXIT.project],
  ["lock.digest", EXIT.integrity],
  ["lock.review", EXIT.review],
  ["policy.", EXIT.review],
  ["review.", EXIT.review],
  ["trust.", EXIT.review],
  ["authority.", EXIT.review],
  ["integrity.", EXIT.integrity],
  ["archive.", EXIT.integrity],
  ["catalog.", EXIT.project],
  ["range.", EXIT.project],
  ["version.", EXIT.project],
  ["resolve.", EXIT.unresolvable],
  ["binding.", EXIT.unresolvable],
  ["registry.", EXIT.network],
  ["registry.not-found", EXIT.unresolvable],
  ["registry.exists", EXIT.failure],
  ["registry.rejected", EXIT.project],
  ["registry.removed", EXIT.unresolvable],
  ["registry.untrusted", EXIT.review],
  ["registry.rollback", EXIT.integrity],
  ["signature.", EXIT.integrity],
  ["log.", EXIT.integrity],
  ["release.", EXIT.network],
  ["release.unknown", EXIT.unresolvable],
  ["release.rollback", EXIT.integrity],
  ["release.expired", EXIT.integrity],
  ["release.hash", EXIT.integrity],
  ["release.invalid", EXIT.integrity],
  ["install.", EXIT.failure],
  ["auth.", EXIT.authentication],
  ["incompatible.", EXIT.incompatible],
  ["link.", EXIT.project],
  ["serve.", EXIT.project],
];

/** The exit code for a finding's code. */
export function exitOf(code: string): ExitCode {
  let best = "";
  let exit: ExitCode = EXIT.failure;
  for (const [prefix, value] of EXIT_OF_CODE) {
    if (code.startsWith(prefix) && prefix.length > best.length) {
      best = prefix;
      exit = value;
    }
  }
  return exit;
}

/** A failure to show to the user as findings, without a stack trace. */
export class ProjectError extends Error {
  /** "ProjectError". */
  override readonly name = "ProjectError";
  /** The findings, at least one. */
  readonly diagnostics: readonly Diagnostic[];
  /** The exit status of a command that fails with these findings. */
  readonly exitCode: ExitCode;

  /** The error for `diagnostics`; `exitCode` replaces the status that follows from their codes. */
  constructor(diagnostics: readonly Diagnostic[], exitCode?: ExitCode) {
    super(diagnostics.map(formatDiagnostic).join("\n"));
    this.diagnostics = diagnostics;
    const first = diagnostics.find((d) => d.severity === "error") ?? diagnostics[0];
    this.exitCode = exitCode ?? (first === undefined ? EXIT.failure : exitOf(first.code));
  }
}

/** A ProjectError with one finding. */
export function fail(code: string, message: string, more: Partial<Diagnostic> = {}): ProjectError {
  return new ProjectError([{ severity: "error", ...more, code, message }]);
}

/** `file:line:column: code: message`, then details and a `help:` line; nothing in them can forge or hide a line. */
export function formatDiagnostic(d: Diagnostic): string {
  let where = "";
  if (d.file !== undefined) {
    where = d.file + (d.line === undefined ? "" : `:${d.line}:${d.column ?? 1}`) + ": ";
  }
  const level = d.severity === "error" ? "" : `${d.severity}: `;
  const text = escapeHostile(`${where}${level}${d.code}: ${d.message}`);
  const lines = [text, ...(d.details ?? []).map((line) => `    ${escapeHostile(line)}`)];
  if (d.help !== undefined) lines.push(`  help: ${escapeHostile(d.help)}`);
  return lines.join("\n");
}

/** A JSON pointer as people read it: `packages["github.com/acme/kv"].version`. */
export function readablePointer(pointer: string): string {
  let text = "";
  for (const raw of pointer.split("/").slice(1)) {
    const step = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^[0-9]+$/.test(step)) text += `[${step}]`;
    else if (/^[$A-Za-z_][$\w]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${quote(step)}]`;
  }
  return text === "" ? "the top level" : text;
}

/** Appends a step to a JSON pointer. */
export function stepInto(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/**
 * The place to which an answer redirects, for messages: the origin of `next`, or the target as given where that has
 * none, as a file.
 */
export function redirectPlace(next: URL | undefined, target: string): string {
  return quote(next === undefined || next.origin === "null" ? target : next.origin);
}

/** Shortens and quotes a hostile or long string: control, bidi and zero-width characters are escaped. */
export function quote(text: string, limit = 120): string {
  const cut = text.length > limit ? text.slice(0, limit) + "…" : text;
  return `"${escapeHostile(cut).replaceAll('"', '\\"')}"`;
}

/**
 * A part of a grant as one word. Text with other characters than those of paths and addresses is quoted as in JSON, so
 * that it does not look like several words, and blanks that follow a blank are escaped, so that it does not reach the
 * next line.
 */
export function oneWord(text: string): string {
  if (/^[\w./:\\@#*+~$%&!?^{}<>[\]-]+$/.test(text)) return text;
  return JSON.stringify(text).replace(/(?<=\s)\s|(?! )\s/gu, (blank) => {
    return `\\u${blank.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/**
 * Matches hostile characters by Unicode's properties, so that none is forgotten: control and format characters (bidi
 * controls, marks without width, tags), lone surrogates, line and paragraph separators, and characters that fonts draw
 * as nothing (fillers, variation selectors, the Braille pattern without dots, the null notehead); and combining marks
 * behind four others, which would cover the lines around them. Created on use, since the tables of these properties
 * take half a millisecond of every start.
 */
function hostile(): RegExp {
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u202f\u205f\u2800\u{1d159}]|(?<=\p{M}{4})\p{M}/gu;
}

/** Every character that could move the cursor, reorder or hide text becomes a visible escape. */
export function escapeHostile(text: string): string {
  return text.replace(hostile(), (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

/**
 * A value as one line of JSON for people and programs: hostile characters in its strings are escaped as JSON's
 * `\\uXXXX`, so that a terminal shows the line as it is, and parsing returns the same value.
 */
export function jsonLine(value: unknown): string {
  const unit = (k: number, text: string): string => `\\u${text.charCodeAt(k).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(
    hostile(),
    (text) => Array.from({ length: text.length }, (_, k) => unit(k, text)).join(""),
  );
}
