/**
 * The commands of `waft`, one row each: name, group and summary for the help page, and the loader of its module. A
 * module adds its command, with options, to the program. Start-up time counts, so a module is loaded only when its
 * command is named.
 */
import { lateImports } from "../base/late_import.ts";
import type { CommandModule, CommandRow } from "./command_row.ts";

export type { CommandModule, CommandRow };

const late = lateImports(import.meta.url);

/** The headings of the groups that help shows. */
export const GROUP = {
  programs: "Programs:",
  tools: "Tools:",
  components: "Components:",
  projects: "Projects and plugins:",
  itself: "waft itself:",
} as const;

/** The rows, by groups. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: "run",
    group: GROUP.programs,
    summary: "Compile a module and call one of its functions",
    load: late("./run/run.ts"),
  },
  {
    name: "serve",
    group: GROUP.programs,
    summary: "Answer HTTP requests with a component",
    load: late("./run/serve.ts"),
  },
  {
    name: "build",
    group: GROUP.programs,
    summary: "Make one executable of a module or component",
    load: late("./project/build.ts"),
  },
  {
    name: "compile",
    group: GROUP.programs,
    summary: "Compile a module to an artifact",
    load: late("./tools/compile.ts"),
  },
  {
    name: "snapshot",
    group: GROUP.programs,
    summary: "Write a module whose initialization has run",
    load: late("./tools/snapshot.ts"),
  },
  {
    name: "runner",
    group: GROUP.programs,
    summary: "Run WebAssembly for a program that starts this command",
    load: late("./run/runner.ts"),
  },
  {
    name: "replay",
    group: GROUP.programs,
    summary: "Repeat a recorded run without its host",
    load: late("./run/replay.ts"),
  },
  {
    name: "debug",
    group: GROUP.tools,
    summary: "Run a module or component under the debugger, in the terminal or an editor",
    load: late("./tools/debug.ts"),
  },
  {
    name: "profile",
    group: GROUP.tools,
    summary: "Run a program and show where its time goes",
    load: late("./tools/profile.ts"),
  },
  {
    name: "explore",
    group: GROUP.tools,
    summary: "Write a page that shows how functions are compiled",
    load: late("./tools/explore.ts"),
  },
  {
    name: "inspect",
    group: GROUP.tools,
    summary: "Show the content of a module, component, artifact or recording",
    load: late("./tools/inspect.ts"),
  },
  {
    name: "objdump",
    group: GROUP.tools,
    summary: "List sections, bytes and instructions of a module or component",
    load: late("./tools/objdump.ts"),
  },
  {
    name: "validate",
    group: GROUP.tools,
    summary: "Check modules and components without running them",
    load: late("./tools/validate.ts"),
  },
  {
    name: "verify",
    group: GROUP.tools,
    summary: "Prove that machine code stays in its sandbox",
    load: late("./tools/verify.ts"),
  },
  {
    name: "parse",
    group: GROUP.tools,
    summary: "Translate the text of a module or component to binary form",
    load: late("./tools/parse.ts"),
  },
  { name: "print", group: GROUP.tools, summary: "Print a module or component as text", load: late("./tools/print.ts") },
  {
    name: "push",
    group: GROUP.tools,
    summary: "Store a module or component in an OCI registry",
    load: late("./tools/push.ts"),
  },
  {
    name: "pull",
    group: GROUP.tools,
    summary: "Fetch a module or component from an OCI registry",
    load: late("./tools/pull.ts"),
  },
  { name: "wast", group: GROUP.tools, summary: "Run WebAssembly test scripts", load: late("./tools/wast.ts") },
  {
    name: "component",
    group: GROUP.components,
    summary: "Make components of core modules",
    load: late("./tools/component.ts"),
  },
  {
    name: "wit",
    group: GROUP.components,
    summary: "Fetch the packages that WIT refers to",
    load: late("./tools/wit.ts"),
  },
  {
    name: "compose",
    group: GROUP.components,
    summary: "Connect components with each other",
    load: late("./tools/compose.ts"),
  },
  {
    name: "types",
    group: GROUP.components,
    summary: "Write TypeScript declarations of a component",
    load: late("./tools/types.ts"),
  },
  {
    name: "init",
    group: GROUP.projects,
    summary: "Start a project: an application or a plugin",
    load: late("./project/init.ts"),
  },
  {
    name: "add",
    group: GROUP.projects,
    summary: "Add plugins, or update the lockfile",
    load: late("./project/add.ts"),
  },
  { name: "rm", group: GROUP.projects, summary: "Remove plugins", load: late("./project/rm.ts") },
  {
    name: "plugin",
    group: GROUP.projects,
    summary: "List, check, plan, update, review and publish plugins",
    load: late("./project/plugin.ts"),
  },
  {
    name: "search",
    group: GROUP.projects,
    summary: "Search the registry for plugins",
    load: late("./project/search.ts"),
  },
  {
    name: "outdated",
    group: GROUP.projects,
    summary: "Show plugins with newer versions",
    load: late("./project/outdated.ts"),
  },
  {
    name: "tree",
    group: GROUP.projects,
    summary: "Show the dependency tree of plugins",
    load: late("./project/tree.ts"),
  },
  {
    name: "trust",
    group: GROUP.projects,
    summary: "Accept the lockfile's grants on this machine",
    load: late("./project/trust.ts"),
  },
  {
    name: "status",
    group: GROUP.projects,
    summary: "Show runtime, project, lockfile and plugins",
    load: late("./project/status.ts"),
  },
  { name: "login", group: GROUP.projects, summary: "Store a token for the registry", load: late("./project/login.ts") },
  { name: "logout", group: GROUP.projects, summary: "Remove the registry's token", load: late("./project/logout.ts") },
  {
    name: "config",
    group: GROUP.projects,
    summary: "Show and change settings of the project",
    load: late("./settings/config.ts"),
  },
  {
    name: "version",
    group: GROUP.itself,
    summary: "Install and choose versions of waft",
    load: late("./installation/version.ts"),
  },
  {
    name: "self",
    group: GROUP.itself,
    summary: "Install and remove waft itself",
    load: late("./installation/self.ts"),
  },
  {
    name: "cache",
    group: GROUP.itself,
    summary: "Show or clear the cache of compiled modules",
    load: late("./installation/cache.ts"),
  },
  {
    name: "opts",
    group: GROUP.itself,
    summary: "List the compiler's optimizations and their state",
    load: late("./settings/opts.ts"),
  },
  {
    name: "features",
    group: GROUP.itself,
    summary: "List WebAssembly features and their state",
    load: late("./settings/features.ts"),
  },
  {
    name: "completion",
    group: GROUP.itself,
    summary: "Print completions for a shell",
    load: late("./help/completion.ts"),
  },
  {
    name: "commands",
    group: GROUP.itself,
    summary: "List all commands with their options",
    load: late("./help/commands.ts"),
  },
  { name: "man", group: GROUP.itself, summary: "Write the manual pages", load: late("./help/man.ts") },
];
