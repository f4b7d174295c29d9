/**
 * The generator of x64 stubs and thunks: for `deno task build:stubs`, which stores most of them, and for those of
 * uncommon signatures and variants, and fast entries.
 */
import type { StubGenerator } from "../codegen/target.ts";
import { emitImageStubs } from "./image_stubs.ts";
import { buildProcessStubs } from "./process_stubs.ts";
import { buildFastEntry, emitEntryThunk, emitHostThunk } from "./thunks.ts";

export const GENERATOR: StubGenerator = {
  emitStubs: emitImageStubs,
  emitEntryThunk,
  emitHostThunk,
  processStubs: buildProcessStubs,
  fastEntry: buildFastEntry,
};
