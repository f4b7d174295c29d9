/**
 * The context of code outside any module: stubs, thunks, native builtins. Invariant: no optional feature is on, so such
 * code is the same for every module.
 */
import { layoutContext } from "../abi/context_layout.ts";
import { optimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { Allocation } from "./allocation.ts";
import type { CodegenContext } from "./target.ts";
import { VCode } from "./vcode.ts";

/** The context of code outside any module. */
export const BARE_CONTEXT: CodegenContext = {
  layout: layoutContext({ memories: 0, tables: 0, globals: 0, importedFuncs: 0, definedFuncs: 0, types: 0 }),
  explicitBounds: false,
  signatures: [],
  functionSignature: new Int32Array(0),
  optimizations: optimizationSet(),
  statistics: new Statistics(),
  cpu: new Set(),
  stackFence: false,
};

/** The VCode of such code and its allocation: empty. */
export const NO_VCODE: VCode = new VCode();
export const NO_ALLOCATION: Allocation = new Allocation();
