/**
 * Findings of the lockfile's strict parse, collected with their places.
 *
 * In: codes, pointers and sentences of the stages of lockfile.ts. Out: diagnostics, at most a thousand.
 */
import { type Diagnostic, stepInto } from "../base/diagnostic.ts";
import type { JsonDocument } from "../base/json_read.ts";

/** Collects the findings of one stage, with their positions. */
export class LockReport {
  readonly found: Diagnostic[] = [];
  readonly document: JsonDocument;
  constructor(document: JsonDocument) {
    this.document = document;
  }
  add(code: string, pointer: string, message: string, help?: string, part: "key" | "value" = "value"): void {
    if (this.found.length >= 1000) return;
    this.found.push({
      code: `lock.${code}`,
      severity: "error",
      message,
      file: this.document.file,
      ...this.document.place(pointer, part),
      pointer,
      ...(help === undefined ? {} : { help }),
    });
  }
}

/** The pointer of a plugin's entry. */
export function pluginAt(id: string): string {
  return stepInto("/plugins", id);
}

/** The pointer of a package's entry. */
export function packageAt(id: string): string {
  return stepInto("/packages", id);
}
