/**
 * Annotations that become custom sections: `(@custom "name" place? "bytes"*)` among the fields (specification, appendix
 * A.5), and the branch hints that parse_code.ts collected (appendix A.6).
 */
import { ByteWriter } from "../base/bytes.ts";
import { SECTION, SECTION_ORDER } from "../wasm/section_ids.ts";
import { BRANCH_HINTS } from "../wasm/branch_hints.ts";
import { K } from "./keywords.ts";
import type { ModuleContext } from "./module_context.ts";
import { CUSTOM_ANNOTATION, KEYWORD, LEFT, STRING } from "./tokens.ts";

const CUSTOM = "@custom annotation";

/** The keywords of sections in the place of a custom section. */
const PLACE_ROWS = [
  [SECTION.type, "type"],
  [SECTION.import, "import"],
  [SECTION.function, "func"],
  [SECTION.table, "table"],
  [SECTION.memory, "memory"],
  [SECTION.tag, "tag"],
  [SECTION.global, "global"],
  [SECTION.export, "export"],
  [SECTION.start, "start"],
  [SECTION.element, "elem"],
  [SECTION.dataCount, "datacount"],
  [SECTION.code, "code"],
  [SECTION.data, "data"],
] as const;
/** Keyword by section, for the printer. */
export const PLACE_NAMES: ReadonlyMap<number, string> = new Map(PLACE_ROWS);
const SECTION_BY_KEYWORD: ReadonlyMap<number, number> = new Map(PLACE_ROWS.map(([id, name]) => [K[name], id]));

/** Parses an annotation among the fields. */
export function parseCustomAnnotation(context: ModuleContext): void {
  const { cursor, module } = context;
  if (cursor.values[cursor.at] !== CUSTOM_ANNOTATION) {
    if (!cursor.isNameAnnotation()) cursor.fail("@metadata.code.branch_hint annotation: not in a function");
    cursor.unexpected();
  }
  cursor.at++;
  if (cursor.kind !== STRING) cursor.fail(`${CUSTOM}: missing section name`);
  const name = cursor.name(`${CUSTOM}: `);
  const after = cursor.kind === LEFT ? parsePlace(context) : SECTION.data;
  const bytes = cursor.strings();
  if (!cursor.takeClose()) cursor.fail(`${CUSTOM}: unexpected token`);
  module.customs.push({ name, bytes, offset: 0, after });
}

/**
 * Parses `(before first)`, `(after last)`, `(before section)` or `(after section)`; returns the id of the section
 * before.
 */
function parsePlace(context: ModuleContext): number {
  const cursor = context.cursor;
  cursor.at++;
  const before = cursor.isKeyword(K.before);
  if (!before && !cursor.isKeyword(K.after)) cursor.fail(`${CUSTOM}: malformed placement`);
  cursor.at++;
  let place: number | undefined;
  if (before && cursor.isKeyword(K.first)) place = SECTION.custom;
  else if (!before && cursor.isKeyword(K.last)) place = SECTION.data;
  else if (cursor.kind === KEYWORD) {
    const section = SECTION_BY_KEYWORD.get(cursor.values[cursor.at]);
    if (section !== undefined) place = before ? sectionBefore(section) : section;
  }
  if (place === undefined) return cursor.fail(`${CUSTOM}: malformed section kind`);
  cursor.at++;
  if (!cursor.takeClose()) cursor.fail(`${CUSTOM}: unexpected token`);
  return place;
}

function sectionBefore(section: number): number {
  return SECTION_ORDER[SECTION_ORDER.indexOf(section) - 1] ?? SECTION.custom;
}

/** Adds the custom section of the branch hints, which must precede the code section. */
export function addBranchHints(context: ModuleContext): void {
  if (context.hints.size === 0) return;
  const out = new ByteWriter(64);
  out.u32(context.hints.size);
  for (const [funcIndex, hints] of [...context.hints].sort((a, b) => a[0] - b[0])) {
    out.u32(funcIndex);
    out.u32(hints.length);
    for (const { offset, likely } of hints.sort((a, b) => a.offset - b.offset)) {
      out.u32(offset);
      out.u32(1);
      out.u8(likely);
    }
  }
  context.module.customs.push({ name: BRANCH_HINTS, bytes: out.finish(), offset: 0, after: SECTION.dataCount });
}
