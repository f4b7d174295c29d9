/**
 * The entry of translation as WebAssembly, in AssemblyScript. The module holds the description of a module and its
 * bodies; functions are translated into the function of the optimizer (optimizer_entry.ts), which can run at once.
 *
 *     reserveModule(words, bytes)  makes room for a description (translate/module_description.ts) and bodies; the
 *                                  description's address, and bodiesAddress() that of the bodies
 *     openModule()   reads the description
 *     reserveScan(functions, tables, bytes)  makes room for bodies, whose address bodiesAddress() is, and for their
 *                    starts, whose address is returned
 *     scanBodies(imported)  scans them, for a module with so many imported functions
 *     scanColumn(n)  the address of column n of SCAN_COLUMNS (compiler_interface.ts); scannedCalls(): the length of
 *                    that of callees
 *     translate(k)   translates defined function k and returns the address of the function's record
 *     translateLoop(k, at)  translates it from the loop at offset `at` on; whether that is possible
 *     inlineSite(n, field), inlineSites()   the inlined calls of the function
 */
import { SCAN_COLUMNS } from "../../../engine/portable/compiler_interface.ts";

export const TRANSLATOR_ENTRY = `
import { BodyScan } from "./translate/body_scan";
import { ModuleFacts, TranslationCounts } from "./translate/module_facts";
import { DescriptionReader, readBodies, readModuleFacts } from "./translate/module_description";
import { ValidBodies, ValidBodyTranslator } from "./translate/valid_body";
import { currentFunction, describeFunction } from "./optimizer_entry";

let words: Int32Array = new Int32Array(0);
let bytes: Uint8Array = new Uint8Array(0);
let facts: ModuleFacts = changetype<ModuleFacts>(0);
let bodies: ValidBodies = changetype<ValidBodies>(0);
let translator: ValidBodyTranslator = new ValidBodyTranslator();
let scan: BodyScan = new BodyScan(0, 0);
let starts: Int32Array = new Int32Array(0);
let calleesFirst: Int32Array = new Int32Array(0);

export function renewTranslator(): void {
  words = new Int32Array(0);
  bytes = new Uint8Array(0);
  translator = new ValidBodyTranslator();
  scan = new BodyScan(0, 0);
  starts = new Int32Array(0);
  calleesFirst = new Int32Array(0);
}

export function reserveModule(wordCount: i32, byteCount: i32): usize {
  words = new Int32Array(wordCount);
  bytes = new Uint8Array(byteCount);
  return words.dataStart;
}

export function bodiesAddress(): usize {
  return bytes.dataStart;
}

export function openModule(): void {
  const reader = new DescriptionReader(words);
  facts = readModuleFacts(reader);
  bodies = readBodies(reader, bytes);
}

export function reserveScan(functions: i32, tables: i32, byteCount: i32): usize {
  scan = new BodyScan(functions, tables);
  starts = new Int32Array(functions + 1);
  bytes = new Uint8Array(byteCount);
  return starts.dataStart;
}

export function scanBodies(imported: i32): void {
  for (let k = 0; k + 1 < starts.length; k++) scan.scan(k, bytes.subarray(starts[k], starts[k + 1]), imported);
  scan.markMutualCalls();
  calleesFirst = scan.calleesFirst();
}

export function scannedCalls(): i32 {
  return scan.calleeCount;
}

export function scanColumn(n: i32): usize {
  switch (n) {
${SCAN_COLUMNS.slice(0, -1).map((name, n) => `    case ${n}: return scan.${name}.dataStart;`).join("\n")}
    default: return calleesFirst.dataStart;
  }
}

export function translate(k: i32): usize {
  translator.counts.reset();
  translator.translate(facts, bodies, k, currentFunction());
  return describeFunction();
}

export function translateLoop(k: i32, at: i32): bool {
  translator.counts.reset();
  return translator.translateLoop(facts, bodies, k, at, currentFunction());
}

export function inlineSites(): i32 {
  return currentFunction().inlineSites.length;
}

export function inlineSite(n: i32, field: i32): i32 {
  const site = currentFunction().inlineSites[n];
  return field == 0 ? site.parent : field == 1 ? site.callPos : site.funcIndex;
}

/** The counts of the function that was translated last. */
export function translationCounts(): TranslationCounts {
  return translator.counts;
}
`;
