/**
 * Calls a component of the interface `example:greetings/greetings` from JavaScript. In: FILE and NAME from the command
 * line. Out: the greeting. Run: deno run -A examples/components/greet.ts FILE NAME
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { compileComponent } from "@waft/component";
import { NewEngine } from "@waft/engine";

/** The exports in the form that `waft types FILE -o DIR` writes them. */
interface Exports {
  readonly greetings: { greet(name: string): string };
}

const [file, name] = process.argv.slice(2);
const { exports } = compileComponent(NewEngine(), readFileSync(file)).instantiate<Exports>();
console.log(exports.greetings.greet(name));
