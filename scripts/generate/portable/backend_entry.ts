/**
 * The entry of selection and emission as WebAssembly, in AssemblyScript: they work on the function of the optimizer's
 * entry, and on the VCode and allocation of the allocator's. The host writes the options of a module once
 * (backend_module.ts).
 *
 *     beginModule(…)    the processor, the options, the number of defined functions, and the end of the code in front
 *                       of them; addSignature, setSignatureType and setShared follow
 *     select(…)         selects instructions for the function that is loaded
 *     emit(index)       emits it as defined function `index`, after its registers were allocated
 *     compileBody(…)    all steps from the IR as it is loaded
 *     compileFunction(…)  all steps from the bytes of a function, for the module that translation has opened
 *     codeFacts(index)  address of the record FACTS: address and length of the code, words and address of the rows of
 *                       calls and of traps, number of relocations; then written registers, start, end and frame size of
 *                       defined function `index`
 *     relocation(k, n)  word n of relocation k
 *     counted(n)        the applications of optimization n of COUNT_FIELDS to the function selected last
 */
import { STUB } from "../../../engine/codegen/machine_code.ts";

/** The truth values of CodegenOptions, by bit of `beginModule`. */
export const OPTION_FLAGS = [
  ...["explicitBounds", "fuel", "stackFence", "avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt", "lse"] as const,
  ...["foldsBranches", "masksTables", "lazyReloads", "keepsVectors", "elidesFrames", "affineLea"] as const,
  ...["immediateRotations", "commutesUpdates", "reusesFlags", "storesConditions", "floatMemory"] as const,
  ...["elidesHomedFrames", "threeOperands", "overRight", "foldsExtensions", "forwardsLoads", "smallFrames"] as const,
] as const;

/** The fields of CodegenCounts. */
export const COUNT_FIELDS = [
  ...["affineLea", "commutedUpdates", "immediateRotations", "floatMemory", "reusedFlags", "storedConditions"] as const,
  ...["threeOperands", "overRight", "foldedExtensions", "forwardedLoads", "smallFrames", "elidedFrames"] as const,
] as const;

const CODE_FACTS = 12;

export const BACKEND_ENTRY = `
import { allocateCurrent, currentAllocation, currentVCode } from "./allocator_entry";
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
import { loadedFunction, run } from "./optimizer_entry";
import { translate } from "./translator_entry";

const FACTS: StaticArray<i32> = [${Array(CODE_FACTS).fill(0).join(", ")}];
let x64Selection: X64Selection = new X64Selection();
let x64Emission: X64Emission = new X64Emission();
let x64Emitter: X64Emitter = new X64Emitter();
let arm64Selection: Arm64Selection = new Arm64Selection();
let arm64Emission: Arm64Emission = new Arm64Emission();
let arm64Emitter: Arm64Emitter = new Arm64Emitter();
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
}

export function beginModule(
  arm64: i32, bits: i32, memoriesOffset: i32, importsOffset: i32, sharedLengthsOffset: i32, importedFuncs: i32, memories: i32,
  definedFuncs: i32, constants: i32, end: i32,
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
  code.length = end;
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

export function compileFunction(index: i32, passes: i32, allocation: i32): void {
  translate(index);
  run(passes);
  selectLoaded();
  allocateCurrent(allocation);
  emit(index);
}

export function codeFacts(index: i32): usize {
  const calls = code.callRows, traps = code.trapRows;
  FACTS[0] = <i32>code.bytes.dataStart;
  FACTS[1] = code.length;
  FACTS[2] = calls.length;
  FACTS[3] = <i32>calls.dataStart;
  FACTS[4] = traps.length;
  FACTS[5] = <i32>traps.dataStart;
  FACTS[6] = code.relocAt.length;
  FACTS[7] = code.writtenGeneral[index];
  FACTS[8] = code.writtenVector[index];
  FACTS[9] = code.functionStart[index];
  FACTS[10] = code.functionEnd[index];
  FACTS[11] = code.functionFrame[index];
  return changetype<usize>(FACTS);
}

export function relocation(k: i32, n: i32): i32 {
  return n == 0 ? code.relocAt[k] : n == 1 ? code.relocKind[k] : code.relocTarget[k];
}

export function counted(n: i32): i32 {
  switch (n) {
${COUNT_FIELDS.map((name, n) => `    case ${n}: return options.counts.${name};`).join("\n")}
    default: return 0;
  }
}
`;
