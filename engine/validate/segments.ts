/**
 * Rules of element and data segments (specification, 3.5.7 and 3.5.8). Functions in element segments become declared.
 */
import type { ElementSegment } from "../wasm/module.ts";
import { matchesIn } from "../wasm/subtype.ts";
import { FUNCREF, HEAP, refType, valTypeName } from "../wasm/types.ts";
import { validateConstExpr } from "./constants.ts";
import { funcRef } from "./exact_types.ts";
import { FEATURE } from "./gate.ts";
import { sectionOffset } from "./locate.ts";
import { SECTION } from "../wasm/section_ids.ts";
import { type Declarations, invalid, useFeature, validateValType } from "./types.ts";
import type { ValidModule } from "./valid_module.ts";

const BULK = FEATURE["bulk-memory-operations"];
/** The element type of segments of function indices. */
const FUNC_ELEMENT = refType(false, HEAP.func);

export function validateElems(declarations: Declarations, valid: ValidModule): void {
  let at = 0;
  declarations.locate = () => at;
  for (const segment of valid.elems) {
    at = segment.offset;
    const { type, init, mode } = segment;
    if (type !== FUNCREF && !(type === FUNC_ELEMENT && init.kind === "funcs")) validateValType(declarations, type);
    if (init.kind === "exprs" || mode.kind === "passive") {
      useFeature(declarations, BULK, "a passive elem segment, or one of expressions");
    }
    if (mode.kind === "declarative") useFeature(declarations, FEATURE["reference-types"], "a declarative elem segment");
    if (mode.kind === "active") validateTarget(declarations, valid, segment, mode.table);
    validateElements(declarations, valid, segment);
    if (mode.kind === "active") {
      const address = valid.tableTypes[mode.table].limits.address;
      validateConstExpr(valid, mode.start, address, valid.globalTypes.length);
    }
  }
}

function validateTarget(declarations: Declarations, valid: ValidModule, segment: ElementSegment, index: number): void {
  const table = valid.tableTypes[index];
  if (table === undefined) invalid(declarations, `unknown table ${index}`);
  if (matchesIn(valid.canonicalIds, segment.type, table.element)) return;
  const names = `${valTypeName(segment.type)}, table ${index} requires ${valTypeName(table.element)}`;
  invalid(declarations, `type mismatch: elem segment has elements ${names}`);
}

function validateElements(declarations: Declarations, valid: ValidModule, { type, init }: ElementSegment): void {
  if (init.kind === "exprs") {
    for (const expr of init.exprs) validateConstExpr(valid, expr, type, valid.globalTypes.length);
    return;
  }
  const takesAnyFunc = matchesIn(valid.canonicalIds, FUNC_ELEMENT, type);
  for (const index of init.indices) {
    if (index >= valid.funcTypes.length) invalid(declarations, `unknown function ${index}`);
    valid.declaredFuncs[index] = 1;
    if (takesAnyFunc) continue;
    if (!matchesIn(valid.canonicalIds, funcRef(valid, index), type)) {
      invalid(declarations, `type mismatch: function ${index} is not an element of type ${valTypeName(type)}`);
    }
  }
}

export function validateDatas(declarations: Declarations, valid: ValidModule): void {
  if (valid.dataCount !== undefined) {
    declarations.locate = () => sectionOffset(valid, SECTION.dataCount);
    useFeature(declarations, BULK, "a data count section");
  }
  let at = 0;
  declarations.locate = () => at;
  for (const { mode, offset } of valid.datas) {
    at = offset;
    if (mode.kind === "passive") {
      useFeature(declarations, BULK, "a passive data segment");
      continue;
    }
    const memory = valid.memoryTypes[mode.memory];
    if (memory === undefined) invalid(declarations, `unknown memory ${mode.memory}`);
    validateConstExpr(valid, mode.start, memory.limits.address, valid.globalTypes.length);
  }
}
