/** Starts a runner whose guest never returns, and prints the number of its process. */
import { Runner } from "../../engine/runner/mod.ts";

const runner = await Runner.start();
const instance = await (await runner.compile(`(module (func (export "spin") (loop (br 0))))`)).instantiate();
void instance.call({}, "spin");
console.log(runner.processId);
