/**
 * The commands of `waft`, one row each: name, summary for the help page, and the loader of the command's module. A
 * module adds its command, with options, to the program. Start-up time counts, so a module is loaded only when its
 * command is named.
 */
import { lateImports } from "../base/late_import.ts";
import type { CommandModule, CommandRow } from "./command_row.ts";

export type { CommandModule, CommandRow };

const late = lateImports(import.meta.url);

/** The rows. */
export const COMMANDS: readonly CommandRow[] = [
  { name: "run", summary: "Compile a module and call one of its functions", load: late("./run.ts") },
  { name: "replay", summary: "Repeat a recorded run without its host", load: late("./replay.ts") },
  { name: "serve", summary: "Answer HTTP requests with a component", load: late("./serve.ts") },
  { name: "compile", summary: "Compile a module to an artifact", load: late("./compile.ts") },
  { name: "build", summary: "Make one executable of a module or component", load: late("./build.ts") },
  { name: "cache", summary: "Show or clear the cache of compiled modules", load: late("./cache.ts") },
  {
    name: "validate",
    summary: "Check modules and components without running them",
    load: late("./validate.ts"),
  },
  { name: "verify", summary: "Prove that machine code stays in its sandbox", load: late("./verify.ts") },
  {
    name: "parse",
    summary: "Translate the text of a module or component to binary form",
    load: late("./parse.ts"),
  },
  { name: "print", summary: "Print a module or component as text", load: late("./print.ts") },
  {
    name: "inspect",
    summary: "Show the content of a module, component, artifact or recording",
    load: late("./inspect.ts"),
  },
  {
    name: "explore",
    summary: "Write a page that shows how functions are compiled",
    load: late("./explore.ts"),
  },
  {
    name: "profile",
    summary: "Run a program and show where its time goes",
    load: late("./profile.ts"),
  },
  {
    name: "debug",
    summary: "Run a module under the debugger, in the terminal or an editor",
    load: late("./debug.ts"),
  },
  { name: "types", summary: "Write TypeScript declarations of a component", load: late("./types.ts") },
  { name: "component", summary: "Make components of core modules", load: late("./component.ts") },
  { name: "compose", summary: "Connect components with each other", load: late("./compose.ts") },
  { name: "wast", summary: "Run WebAssembly test scripts", load: late("./wast.ts") },
  { name: "init", summary: "Start a project: an application or a plugin", load: late("./init.ts") },
  { name: "add", summary: "Add plugins, or update the lockfile", load: late("./add.ts") },
  { name: "rm", summary: "Remove plugins", load: late("./rm.ts") },
  {
    name: "plugin",
    summary: "List, check, plan, update, review and publish plugins",
    load: late("./plugin.ts"),
  },
  { name: "search", summary: "Search the registry for plugins", load: late("./search.ts") },
  { name: "outdated", summary: "Show plugins with newer versions", load: late("./outdated.ts") },
  { name: "tree", summary: "Show the dependency tree of plugins", load: late("./tree.ts") },
  { name: "login", summary: "Store a token for the registry", load: late("./login.ts") },
  { name: "logout", summary: "Remove the registry's token", load: late("./logout.ts") },
  { name: "trust", summary: "Accept the lockfile's grants on this machine", load: late("./trust.ts") },
  { name: "status", summary: "Show runtime, project, lockfile and plugins", load: late("./status.ts") },
  { name: "version", summary: "Install and choose versions of waft", load: late("./version.ts") },
  { name: "self", summary: "Install and remove waft itself", load: late("./self.ts") },
  { name: "opts", summary: "List the compiler's optimizations and their state", load: late("./opts.ts") },
  { name: "features", summary: "List WebAssembly features and their state", load: late("./features.ts") },
  { name: "completion", summary: "Print completions for a shell", load: late("./completion.ts") },
  { name: "man", summary: "Write the manual pages", load: late("./man.ts") },
];
