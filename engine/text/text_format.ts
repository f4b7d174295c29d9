/**
 * The text format, for code that reads modules of either form: the parser is loaded when the first text is read. In: a
 * text. Out: as parseModule of text/parse_module.ts, which callers use that only ever read texts.
 */
import { LateModule, SUFFIX } from "../host/late_module.ts";
import type { parseModule as parse } from "./parse_module.ts";

const parser = new LateModule(
  new URL(`./parse_module.${SUFFIX}`, import.meta.url),
  () => import("./parse_module.ts"),
);
await parser.prepare();

/** Parses the text of a module. Throws MalformedError. */
export function parseModule(...given: Parameters<typeof parse>): ReturnType<typeof parse> {
  return parser.get().parseModule(...given);
}
