/**
 * The optimizing compiler of bodies for x64, which compile.ts loads when a body is to be optimized.
 */
import { OPTIMIZING_X64 } from "../backend_x64/optimizing_target.ts";
import { BodyCompiler } from "./body_compiler.ts";

export const COMPILER: BodyCompiler = new BodyCompiler(OPTIMIZING_X64);
