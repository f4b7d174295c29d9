/**
 * Run times of the programs on both engines. In: a program. Out: the ratio once V8 has tiered up, and the ratio from
 * bytes to the first result, including compilation. Both engines must return bit-identical results.
 */
import { alternate, type Effort, median, timeOf, warmUp } from "./measure.ts";
import { type Program, programBytes } from "./programs.ts";
import { withSalt } from "./salt.ts";
import type { Call, Side } from "./sides.ts";

/** The measurements of one program; times in milliseconds. */
export interface ProgramResult {
  name: string;
  kind: string;
  waftMs: number;
  v8Ms: number;
  /** waft / V8 after tier-up. */
  runRatio: number;
  waftFirstMs: number;
  v8FirstMs: number;
  /** waft / V8 from bytes to the first result. */
  firstRatio: number;
}

let salt = 1;

/** Measures `program`; throws an Error if the engines disagree. */
export async function measureProgram(
  program: Program,
  waft: Side,
  v8: Side,
  effort: Effort,
): Promise<ProgramResult> {
  const bytes = programBytes(program);
  const runOf = (side: Side) => side.compile(bytes).instantiate().exports["run"] as Call;
  const [runA, runB] = [runOf(waft), runOf(v8)];
  const [workA, workB] = [() => runA(program.n), () => runB(program.n)];
  for (const n of [3, program.n]) {
    const [answerA, answerB] = [runA(n), runB(n)];
    if (!Object.is(answerA, answerB)) {
      throw new Error(`${program.name}(${n}): waft returns ${answerA}, V8 returns ${answerB}`);
    }
  }
  await warmUp(workB, effort);
  await warmUp(workA, { ...effort, warmMs: effort.warmMs / 4 });
  const { a: waftMs, b: v8Ms } = alternate(workA, workB, effort.rounds);
  const first = firstTimes(bytes, program.n, waft, v8, Math.min(5, effort.rounds));
  return {
    name: program.name,
    kind: program.kind,
    waftMs,
    v8Ms,
    runRatio: waftMs / v8Ms,
    waftFirstMs: first.a,
    v8FirstMs: first.b,
    firstRatio: first.a / first.b,
  };
}

function firstTimes(bytes: Uint8Array, n: number, waft: Side, v8: Side, rounds: number): { a: number; b: number } {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const salted = withSalt(bytes, salt++);
      const side = which === 0 ? waft : v8;
      times[which].push(timeOf(() => (side.compile(salted).instantiate().exports["run"] as Call)(n)));
    }
  }
  return { a: median(times[0]), b: median(times[1]) };
}
