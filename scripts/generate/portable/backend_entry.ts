/**
 * The entry of selection and emission as WebAssembly, in AssemblyScript: they work on the function of the optimizer's
 * entry, and on the VCode and allocation of the allocator's. The host writes the options of a module once
 * (backend_module.ts).
 *
 *     beginModule(…)    the processor, the options, the number of defined functions, and the place of the constants in
 *                       front of their code; addSignature, setSignatureType and setShared follow
 *     select(…)         selects instructions for the function that is loaded
 *     emit(index)       emits it as defined function `index`, alone, after its registers were allocated
 *     compileBody(…)    all steps from the IR as it is loaded
 *     compileFunction(…)  all steps from the bytes of a function, for the module that translation has opened
 *     compileLoop(…)    the same from a loop on
 *     reserveList(n)    makes room for a list of n bodies, rows of LISTED (compiler_interface.ts), and their records
 *     compileListed(…)  compiles the bodies of the list in their order, and keeps the results
 *     listedDone()      the number of bodies of the list that are compiled
 *     listedRecord(n)   address of the record LISTED_RECORD about body n of the list, which is never overwritten
 *     codeFacts(index)  address of the record of FACT (compiler_interface.ts), about defined function `index`
 *     counts()          address of the record of COUNTS, about the function compiled last
 *     knownColumn(n)    address of a column of facts about the functions that are compiled already
 */
import { STUB } from "../../../engine/codegen/machine_code.ts";
import {
  COUNTS,
  FACT,
  FIRST_DENIAL,
  KNOWN_COLUMNS,
  LISTED,
  LISTED_RECORD,
  MAX_DENIALS,
  OPTION_FLAGS,
} from "../../../engine/portable/compiler_interface.ts";

/** Stores the counts of each stage, objects by the names of the stages, into the record. */
function storeCounts(): string {
  const fields = Object.entries(COUNTS).flatMap(([stage, names]) => names.map((name) => `${stage}.${name}`));
  return fields.map((field, n) => `  COUNTS[${n}] = ${field};`).join("\n");
}

export const BACKEND_ENTRY = `
import { allocateCurrent, allocationCounts, currentAllocation, currentVCode, denials } from "./allocator_entry";
import { Emission as Arm64Emission } from "./backend_arm64/emission";
import { Arm64Emitter, emitFunction as emitArm64 } from "./backend_arm64/emit";
import { Arm64Selection, selectFunction as selectArm64 } from "./backend_arm64/select";
import { Emission as X64Emission } from "./backend_x64/emission";
import { emitFunction as emitX64, X64Emitter } from "./backend_x64/emit";
import { selectFunction as selectX64, X64Selection } from "./backend_x64/select";
import { BlockEnds } from "./codegen/block_ends";
import { CodegenOptions } from "./codegen/codegen_options";
import { MachineCode } from "./codegen/machine_code";
import { Signature } from "./ir/types";
import { currentFunction, describeFunction, loadedFunction, passCounts, run } from "./optimizer_entry";
import { translate, translateLoop, translationCounts } from "./translator_entry";

const FACTS: StaticArray<i32> = [${Array(FACT.COUNT).fill(0).join(", ")}];
const COUNTS: StaticArray<i32> = [${Array(FIRST_DENIAL + MAX_DENIALS).fill(0).join(", ")}];
let x64Selection: X64Selection = new X64Selection();
let x64Emission: X64Emission = new X64Emission();
let x64Emitter: X64Emitter = new X64Emitter();
let arm64Selection: Arm64Selection = new Arm64Selection();
let arm64Emission: Arm64Emission = new Arm64Emission();
let arm64Emitter: Arm64Emitter = new Arm64Emitter();
let list: Int32Array = new Int32Array(0);
let records: Int32Array = new Int32Array(0);
let done: i32 = 0;
let isArm64: bool = false;
let ends: BlockEnds = new BlockEnds();
let options: CodegenOptions = new CodegenOptions();
let signatures: Signature[] = [];
let code: MachineCode = new MachineCode(0, 0);

export function renewBackend(): void {
  x64Selection = new X64Selection();
  x64Emission = new X64Emission();
  x64Emitter = new X64Emitter();
  arm64Selection = new Arm64Selection();
  arm64Emission = new Arm64Emission();
  arm64Emitter = new Arm64Emitter();
  ends = new BlockEnds();
  options = new CodegenOptions();
  signatures = [];
  code = new MachineCode(0, 0);
  list = new Int32Array(0);
  records = new Int32Array(0);
  done = 0;
}

export function beginModule(
  arm64: i32, bits: i32, memoriesOffset: i32, importsOffset: i32, sharedLengthsOffset: i32, importedFuncs: i32, memories: i32,
  definedFuncs: i32, constants: i32,
): void {
  isArm64 = arm64 != 0;
  options = new CodegenOptions();
${OPTION_FLAGS.map((name, n) => `  options.${name} = (bits & ${1 << n}) != 0;`).join("\n")}
  options.memoriesOffset = memoriesOffset;
  options.importsOffset = importsOffset;
  options.sharedLengthsOffset = sharedLengthsOffset;
  options.importedFuncs = importedFuncs;
  options.sharedMemories = new Uint8Array(memories);
  signatures = [];
  options.signatures = signatures;
  code = new MachineCode(definedFuncs, 0);
  code.stubStart[${STUB.CONSTANTS}] = constants;
}

export function setShared(memory: i32): void {
  options.sharedMemories[memory] = 1;
}

export function addSignature(params: i32, results: i32): void {
  signatures.push({ params: new Uint8Array(params), results: new Uint8Array(results) });
}

export function setSignatureType(id: i32, k: i32, ty: i32): void {
  const signature = signatures[id], count = signature.params.length;
  if (k < count) signature.params[k] = <u8>ty;
  else signature.results[k - count] = <u8>ty;
}

export function select(signature: i32, funcIndex: i32): void {
  const f = loadedFunction();
  f.signature = signatures[signature];
  f.funcIndex = funcIndex;
  selectLoaded();
}

function selectLoaded(): void {
  const f = loadedFunction();
  code.clear();
  code.missing = -1;
  options.counts.reset();
  if (isArm64) selectArm64(arm64Selection, f, currentVCode(), options, code);
  else selectX64(x64Selection, f, currentVCode(), options, code);
}

export function emit(index: i32): void {
  const v = currentVCode(), allocation = currentAllocation();
  if (isArm64) emitArm64(arm64Emitter, arm64Emission, ends, v, allocation, options, code, index);
  else emitX64(x64Emitter, x64Emission, ends, v, allocation, options, code, index);
}

export function allocateSelected(bits: i32): void {
  allocateCurrent(bits);
}

export function compileBody(signature: i32, funcIndex: i32, index: i32, passes: i32, allocation: i32): void {
  run(passes);
  select(signature, funcIndex);
  allocateCurrent(allocation);
  emit(index);
}

export function compileFunction(index: i32, passes: i32, allocation: i32): usize {
  translate(index);
  return compileTranslated(index, passes, allocation);
}

export function compileLoop(index: i32, at: i32, as: i32, passes: i32, allocation: i32): usize {
  if (!translateLoop(index, at)) return 0;
  describeFunction();
  return compileTranslated(as, passes, allocation);
}

function compileTranslated(index: i32, passes: i32, allocation: i32): usize {
  run(passes);
  selectLoaded();
  if (code.missing < 0) {
    allocateCurrent(allocation);
    emit(index);
  }
  return codeFacts(index);
}

export function reserveList(bodies: i32): usize {
  list = new Int32Array(bodies * ${LISTED.WORDS});
  records = new Int32Array(bodies * ${LISTED_RECORD.WORDS});
  done = 0;
  return list.dataStart;
}

export function listedDone(): i32 {
  return done;
}

export function listedRecord(n: i32): usize {
  return records.dataStart + <usize>(n * ${LISTED_RECORD.WORDS * 4});
}

export function compileListed(passes: i32, allocation: i32): void {
  for (let n = 0, at = 0; at < list.length; n++, at += ${LISTED.WORDS}) {
    const index = list[at + ${LISTED.INDEX}], loop = list[at + ${LISTED.LOOP_AT}];
    const isCompiled = loop < 0
      ? compileFunction(index, passes, allocation) != 0
      : compileLoop(index, loop, list[at + ${LISTED.AS}], passes, allocation) != 0;
    if (isCompiled) keep(n * ${LISTED_RECORD.WORDS});
    done = n + 1;
  }
}

/** Copies what is known about the function compiled last to the record that begins at word \`record\`. */
function keep(record: i32): void {
  for (let n = 0; n < ${FACT.COUNT}; n++) records[record + n] = FACTS[n];
  keepWords(record + ${FACT.CALLS_AT}, FACTS[${FACT.CALL_WORDS}]);
  keepWords(record + ${FACT.TRAPS_AT}, FACTS[${FACT.TRAP_WORDS}]);
  const relocations = FACTS[${FACT.RELOCATIONS}];
  keepWords(record + ${FACT.RELOC_AT}, relocations);
  keepWords(record + ${FACT.RELOC_KIND_AT}, relocations);
  keepWords(record + ${FACT.RELOC_TARGET_AT}, relocations);
  records[record + ${FACT.CODE_AT}] = copied(FACTS[${FACT.CODE_AT}], FACTS[${FACT.CODE_BYTES}]);
  const sites = currentFunction().inlineSites, count = sites.length;
  const words = new Int32Array(count * 3);
  for (let n = 0; n < count; n++) {
    words[n * 3] = sites[n].parent;
    words[n * 3 + 1] = sites[n].callPos;
    words[n * 3 + 2] = sites[n].funcIndex;
  }
  records[record + ${LISTED_RECORD.SITES_AT}] = <i32>words.dataStart;
  counts();
  for (let n = 0; n < ${FIRST_DENIAL + MAX_DENIALS}; n++) records[record + ${LISTED_RECORD.COUNTS} + n] = COUNTS[n];
  records[record + ${LISTED_RECORD.IS_COMPILED}] = 1;
}

/** Copies the array of \`count\` words whose address is in word \`at\` of the records. */
function keepWords(at: i32, count: i32): void {
  records[at] = copied(records[at], count << 2);
}

function copied(at: i32, bytes: i32): i32 {
  const copy = __alloc(<usize>bytes);
  memory.copy(copy, <usize>at, <usize>bytes);
  return <i32>copy;
}

export function codeFacts(index: i32): usize {
  const calls = code.callRows, traps = code.trapRows;
  FACTS[${FACT.CODE_AT}] = <i32>code.bytes.dataStart;
  FACTS[${FACT.CODE_BYTES}] = code.length;
  FACTS[${FACT.CALLS_AT}] = <i32>calls.dataStart;
  FACTS[${FACT.CALL_WORDS}] = calls.length;
  FACTS[${FACT.TRAPS_AT}] = <i32>traps.dataStart;
  FACTS[${FACT.TRAP_WORDS}] = traps.length;
  FACTS[${FACT.RELOC_AT}] = <i32>code.relocAt.dataStart;
  FACTS[${FACT.RELOC_KIND_AT}] = <i32>code.relocKind.dataStart;
  FACTS[${FACT.RELOC_TARGET_AT}] = <i32>code.relocTarget.dataStart;
  FACTS[${FACT.RELOCATIONS}] = code.relocAt.length;
  FACTS[${FACT.WRITTEN_GENERAL}] = code.writtenGeneral[index];
  FACTS[${FACT.WRITTEN_VECTOR}] = code.writtenVector[index];
  FACTS[${FACT.END}] = code.functionEnd[index];
  FACTS[${FACT.FRAME}] = code.functionFrame[index];
  FACTS[${FACT.ALIGNMENT}] = code.alignment;
  FACTS[${FACT.MISSING}] = code.missing;
  FACTS[${FACT.INLINE_SITES}] = currentFunction().inlineSites.length;
  return changetype<usize>(FACTS);
}

export function counts(): usize {
  const translation = translationCounts(), passes = passCounts(), allocation = allocationCounts();
  const codegen = options.counts, denied = denials();
${storeCounts()}
  for (let n = 0; n < denied.length; n++) COUNTS[${FIRST_DENIAL} + n] = denied[n].applied;
  return changetype<usize>(COUNTS);
}

export function knownColumn(n: i32): usize {
  switch (n) {
${KNOWN_COLUMNS.map((name, n) => `    case ${n}: return code.${name}.dataStart;`).join("\n")}
    default: return rankColumn();
  }
}

function rankColumn(): usize {
  const rank = new Int32Array(code.writtenGeneral.length);
  code.rank = rank;
  return rank.dataStart;
}
`;
