/**
 * Runs a program of WASI with its input, output and files in memory, and prints what it wrote.
 *
 *     deno run --allow-ffi --allow-read examples/wasi/capture.ts
 */
import { readFileSync } from "node:fs";
import { runProgram } from "@waft/engine/wasi/program";

const program = readFileSync(new URL("words.wasm", import.meta.url));
const { status, stdout } = await runProgram(program, { stdin: "to be or not to be\n", limits: { deadline: 1000 } });
console.log(`status ${status}\n${stdout}`);
