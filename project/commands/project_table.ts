/**
 * The project commands, one row each, for the table of all commands: name, summary, and the loader of the command's
 * module.
 */
import type { Command } from "commander";
import { lateImports } from "../base/late_import.ts";

const late = lateImports(import.meta.url);

/** A row of the table of commands. */
interface ProjectCommandRow {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<{ addCommand(program: Command): void }>;
}

/** The rows. */
export const PROJECT_COMMANDS: readonly ProjectCommandRow[] = [
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
];
