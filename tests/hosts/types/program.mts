// A program that uses the packages: imports every public entry point by name and relies on the documented types. It is
// only type-checked, against the declarations of the installed packages (scripts/hosts/test_hosts.ts).
import {
  type Context,
  type Engine,
  type EngineOptions,
  host,
  type Instance,
  type Module,
  NewEngine,
  TrapError,
} from "@waft/engine";
import { Wasi } from "@waft/engine/wasi";
import { main } from "@waft/cli";
import { compileComponent, type ComponentInstance } from "@waft/component";
import { ComponentWasi } from "@waft/component/wasi";
import { NewEngine as sameEngine, VERSION } from "@waft/cli/project";

const options: EngineOptions = { interruptible: true, fuel: true, bounds: "explicit", limits: { maxMemoryPages: 16 } };
const engine: Engine = NewEngine(options);
const module: Module = engine.compile(new Uint8Array(8));
const context: Context = { deadline: 50, fuel: 1000n };
const memory = host.memory(1, 2);
const bytes: ArrayBuffer = memory.buffer;
const instance: Instance = module.instantiate(context, { env: { memory, log: (n: number) => n + 1 } });
const result: unknown = instance.call(context, "run", 1, 2n);
const text: string = VERSION;
const status: Promise<number> = main(["--version"]);
const engines: (typeof NewEngine)[] = [sameEngine];
try {
  instance.call({}, "run");
} catch (error) {
  if (error instanceof TrapError) console.log(error.message.toUpperCase());
}
interface Greeting {
  greet(name: string): string;
}
const greeter: ComponentInstance<Greeting> = compileComponent(engine, "(component)")
  .instantiate<Greeting>({ resettable: true }, new ComponentWasi({ args: ["greeter"] }).imports);
const greeting: string = greeter.exports.greet("you");
greeter.reset();
// @ts-expect-error There is no export `part`.
greeter.exports.part("you");
// @ts-expect-error There is no option `bound`.
NewEngine({ bound: "guard" });
// @ts-expect-error A deadline is a number of milliseconds or a Date.
instance.call({ deadline: "soon" }, "run");
console.log(greeting, bytes, result, text, status, engines, Wasi);
