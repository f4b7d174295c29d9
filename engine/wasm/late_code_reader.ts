/**
 * The reader of instructions (code_reader.ts), which is loaded with the table of opcodes when the first one is read
 * that is not constant: compiling with the baseline tier reads none.
 */
import { LateModule, SUFFIX } from "../host/late_module.ts";
import type { CodeReader } from "./code_reader.ts";

const READER: LateModule<typeof import("./code_reader.ts")> = new LateModule(
  new URL(`./code_reader.${SUFFIX}`, import.meta.url),
  () => import("./code_reader.ts"),
);

/** Must be called before {@linkcode codeReader} where modules cannot be loaded synchronously. */
export async function prepareCodeReader(): Promise<void> {
  await READER.prepare();
}

/** A new CodeReader. */
export function codeReader(...given: ConstructorParameters<typeof CodeReader>): CodeReader {
  return new (READER.get().CodeReader)(...given);
}
