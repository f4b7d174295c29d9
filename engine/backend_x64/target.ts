/**
 * The x64 backend without its optimizing part: the Target of codegen/target.ts with its generator of stubs.
 * optimizing_target.ts adds that part.
 */
import type { Target } from "../codegen/target.ts";
import { storedX64 } from "./stored_target.ts";
import { GENERATOR } from "./stub_generator.ts";

export const X64: Target = storedX64(() => GENERATOR);
