/**
 * The optimizing compiler of bodies for arm64, which compile.ts loads when a body is to be optimized.
 */
import { OPTIMIZING_ARM64 } from "../backend_arm64/optimizing_target.ts";
import { BodyCompiler } from "./body_compiler.ts";

export const COMPILER: BodyCompiler = new BodyCompiler(OPTIMIZING_ARM64);
