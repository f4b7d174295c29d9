/**
 * The generator of arm64 stubs and parts of thunks, which `deno task build:stubs` stores, and of whole thunks, with
 * which tests compare those that are made of the stored parts.
 */
import type { StubGenerator } from "../codegen/target.ts";
import { emitImageStubs } from "./image_stubs.ts";
import { buildCacheMaintenance, buildProcessStubs } from "./process_stubs.ts";
import { emitEntryThunk, emitHostThunk, thunkParts } from "./thunks.ts";

export const GENERATOR: StubGenerator = {
  emitStubs: emitImageStubs,
  emitEntryThunk,
  emitHostThunk,
  processStubs: buildProcessStubs,
  cacheMaintenance: buildCacheMaintenance,
  thunkParts,
};
