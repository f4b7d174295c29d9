/**
 * Compares the JSON that commands print with the published schemas. In: an envelope. Out: an assertion, and the names
 * of the commands whose data was compared. Tests only.
 */
import assert from "node:assert/strict";
import { Ajv } from "ajv";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";

/** The document that a command prints with `--json`. */
export interface Envelope {
  readonly schemaVersion: number;
  readonly command: string;
  readonly ok: boolean;
  // deno-lint-ignore no-explicit-any -- shapes are asserted field by field
  readonly data: any;
  readonly diagnostics: readonly { readonly code: string; readonly severity: string }[];
}

const ajv = new Ajv({ allErrors: true, strict: false });

/** The commands whose data was compared with its schema. */
export const seenCommands: Set<string> = new Set();

/** A command's output has the shape that the site publishes. */
export function assertOutputSchema(envelope: Envelope): void {
  const schema = OUTPUT_SCHEMAS[envelope.command];
  assert.ok(schema !== undefined, `${envelope.command} has a schema`);
  const validate = ajv.getSchema((schema as { $id: string }).$id) ?? ajv.compile(schema);
  assert.ok(validate(envelope), `${JSON.stringify(validate.errors, null, 1)}\n${JSON.stringify(envelope)}`);
  if (envelope.data !== null) seenCommands.add(envelope.command);
}
