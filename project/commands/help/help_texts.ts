/**
 * The groups of options in help, and for each command two examples and the address of its page. In: the program with
 * its commands. Out: the program, whose help shows them. Loaded only when help is shown.
 */
import type { Command } from "commander";
import { BASE_URL } from "../../base/constants.ts";

/** Groups of options that many commands have; the others stay below "Options:". */
const OPTION_GROUPS: readonly (readonly [heading: string, options: readonly string[]])[] = [
  ["Authority of the guest:", ["--dir", "--env", "--net", "--listen"]],
  ["Limits:", ["--timeout", "--processor-time", "--fuel", "--max-memory", "--max-heap"]],
  ["Compilation:", [
    "--tier",
    "--feature",
    "--opt",
    "--bounds",
    "--parallel",
    "--no-cache",
    "--explain-compile",
    "--perf-map",
  ]],
  ["Project:", ["--project", "--bare", "--locked", "--trust", "--allow-path-plugins", "--offline", "--registry"]],
];

/** The help of a command after its options. */
interface CommandHelp {
  /** The name of its page in the documentation. */
  readonly page: string;
  readonly examples: readonly [Example, Example];
}

type Example = readonly [command: string, effect: string];

/** By the words of the command. */
export const COMMAND_HELP: { readonly [words: string]: CommandHelp } = {
  "run": {
    page: "getting-started",
    examples: [
      ["waft run --invoke add math.wasm 2 3", "call an exported function"],
      ["waft run --dir . --timeout 5s tool.wasm in.txt", "run a program of WASI with a directory and a limit"],
    ],
  },
  "push": {
    page: "oci",
    examples: [
      ["waft push oci://ghcr.io/ada/hello:1.0 hello.wasm", "store a program under a tag"],
      ["waft push localhost:5000/hello:1.0 hello.wasm", "use a registry on this machine"],
    ],
  },
  "pull": {
    page: "oci",
    examples: [
      ["waft pull oci://ghcr.io/ada/hello:1.0 -o hello.wasm", "write a program to a file"],
      ["waft pull oci://ghcr.io/ada/hello:1.0", "print the digest that the tag names"],
    ],
  },
  "wit": {
    page: "oci",
    examples: [
      ["waft wit fetch", "fetch the packages that the folder wit refers to"],
      ["waft wit fetch --registry acme=wit.example.com api", "name the registry of a namespace, and another folder"],
    ],
  },
  "serve": {
    page: "serve",
    examples: [
      ["waft serve --workers auto --admin 127.0.0.1:9090 app.wasm", "use all processors, and answer probes"],
      ["waft serve --net api.example.com:443 app.wasm", "let the component send requests to one host"],
    ],
  },
  "build": {
    page: "artifacts",
    examples: [
      ["waft build tool.wasm -o tool", "write one executable file"],
      ["waft build --dir . --env LANG=C tool.wasm -o tool", "give the program a directory and a variable"],
    ],
  },
  "compile": {
    page: "artifacts",
    examples: [
      ["waft compile tool.wasm -o tool.waft", "write the machine code of this machine"],
      ["waft compile --target linux/arm64 tool.wasm -o tool.waft", "write that of another one"],
    ],
  },
  "snapshot": {
    page: "artifacts",
    examples: [
      ["waft snapshot app.wasm -o ready.wasm", "run wizer.initialize or _initialize, and keep the state"],
      ["waft snapshot --init load --dir data app.wasm -o ready.wasm", "run another function, which reads files"],
    ],
  },
  "runner": {
    page: "untrusted",
    examples: [
      ["waft runner", 'what Runner.start({ command: ["waft", "runner"] }) starts'],
      ["waft runner < /dev/null", "it ends with its input"],
    ],
  },
  "replay": {
    page: "recording",
    examples: [
      ["waft replay run.log", "repeat a run that --record has written"],
      ["waft replay --coredump core run.log", "write a core dump if it traps again"],
    ],
  },
  "debug": {
    page: "debugging",
    examples: [
      ["waft debug tool.wasm in.txt", "wait for commands: `break NAME`, then `run`"],
      ["waft debug --dap", "serve an editor on standard input and output"],
    ],
  },
  "profile": {
    page: "profiling",
    examples: [
      ["waft profile tool.wasm in.txt", "sample a run, and write a flame graph"],
      ["waft profile --counts --invoke f lib.wasm 5", "count calls and loop iterations exactly"],
    ],
  },
  "explore": {
    page: "exploring",
    examples: [
      ["waft explore lib.wasm", "write lib.html with all functions"],
      ["waft explore --function parse -o parse.html lib.wasm", "show the functions of that name alone"],
    ],
  },
  "inspect": {
    page: "inspecting",
    examples: [
      ["waft inspect lib.wasm", "show imports, exports and the size of each part"],
      ["waft inspect --json core", "print a core dump as JSON"],
    ],
  },
  "objdump": {
    page: "inspecting",
    examples: [
      ["waft objdump -h lib.wasm", "list the sections with their offsets and sizes"],
      ["waft objdump -d -j code lib.wasm", "disassemble the functions, with offsets and bytes"],
    ],
  },
  "validate": {
    page: "inspecting",
    examples: [
      ["waft validate lib.wasm app.wat", "check two files"],
      ["waft validate --feature threads=off lib.wasm", "check that the module needs no threads"],
    ],
  },
  "verify": {
    page: "inspecting",
    examples: [
      ["waft verify lib.wasm", "prove the machine code of this machine"],
      ["waft verify --target linux/arm64 --json lib.wasm", "prove that of another one, as JSON"],
    ],
  },
  "parse": {
    page: "getting-started",
    examples: [
      ["waft parse lib.wat", "write lib.wasm"],
      ["waft parse - -o lib.wasm < lib.wat", "read standard input"],
    ],
  },
  "print": {
    page: "inspecting",
    examples: [
      ["waft print lib.wasm", "print the module as text"],
      ["waft print lib.wasm -o lib.wat", "write it to a file"],
    ],
  },
  "wast": {
    page: "inspecting",
    examples: [
      ["waft wast tests/", "run all scripts of a directory"],
      ["waft wast --tier optimizing i32.wast", "run one with the optimizing compiler"],
    ],
  },
  "component": {
    page: "components",
    examples: [
      ["waft component new core.wasm --wit wit -o app.wasm", "make a component of a core module"],
      ["waft help component new", "show the options"],
    ],
  },
  "component new": {
    page: "components",
    examples: [
      ["waft component new core.wasm --wit wit --world app -o app.wasm", "make a component for a world"],
      ["waft component new core.wasm -o app.wasm", "take the world that the module contains"],
    ],
  },
  "compose": {
    page: "components",
    examples: [
      ["waft compose app.wasm --plug auth.wasm -o both.wasm", "satisfy the imports of app.wasm"],
      ["waft compose app.wasm --plug a.wasm --plug b.wasm -o all.wasm", "connect several"],
    ],
  },
  "types": {
    page: "components",
    examples: [
      ["waft types app.wasm -o types", "write the declarations to a directory"],
      ["waft types --world app wit/", "take a world of WIT files"],
    ],
  },
  "init": {
    page: "getting-started",
    examples: [
      ["waft init", "ask, and write waft.json"],
      ["waft init --kind plugin --name kv", "start a plugin"],
    ],
  },
  "add": {
    page: "getting-started",
    examples: [
      ["waft add github.com/acme/kv", "add a plugin after a review of its authorities"],
      ["waft add --user github.com/acme/kv", "add one for all programs that you run"],
    ],
  },
  "rm": {
    page: "manifest",
    examples: [
      ["waft rm github.com/acme/kv", "remove a plugin and what only it requires"],
      ["waft rm --dry-run github.com/acme/kv", "show the changes alone"],
    ],
  },
  "plugin": {
    page: "plugin-authoring",
    examples: [
      ["waft plugin list", "list the plugins of the project"],
      ["waft help plugin publish", "show the options of a command below"],
    ],
  },
  "search": {
    page: "registry",
    examples: [
      ["waft search kv store", "find plugins by words"],
      ["waft search --json kv", "print them as JSON"],
    ],
  },
  "outdated": {
    page: "lockfile",
    examples: [
      ["waft outdated", "show plugins with newer versions"],
      ["waft outdated --json", "print them as JSON"],
    ],
  },
  "tree": {
    page: "lockfile",
    examples: [
      ["waft tree", "show which plugin requires which"],
      ["waft tree --json", "print the tree as JSON"],
    ],
  },
  "trust": {
    page: "security",
    examples: [
      ["waft trust", "review the grants of the lockfile"],
      ["waft trust sha256:6b86b273…", "accept those with this digest"],
    ],
  },
  "status": {
    page: "configuration",
    examples: [
      ["waft status", "show the state of machine and project"],
      ["waft status --json", "print it as JSON"],
    ],
  },
  "login": {
    page: "registry",
    examples: [
      ["waft login", "ask for a token and store it"],
      ["waft login --registry https://plugins.example.com < token", "store that of another registry"],
    ],
  },
  "logout": {
    page: "registry",
    examples: [
      ["waft logout", "remove the stored token"],
      ["waft logout --registry https://plugins.example.com", "remove that of another registry"],
    ],
  },
  "registry": {
    page: "registry",
    examples: [
      ["waft registry serve --data ./data", "run a registry with its data in a directory"],
      ["waft help registry account", "show the options of a command below"],
    ],
  },
  "version": {
    page: "installing",
    examples: [
      ["waft version list", "list the installed versions"],
      ["waft version use 0.1.0", "choose one"],
    ],
  },
  "self": {
    page: "installing",
    examples: [
      ["waft self uninstall", "remove waft from this machine"],
      ["waft help self install", "show the options of a command below"],
    ],
  },
  "cache": {
    page: "artifacts",
    examples: [
      ["waft cache list", "list the cached modules"],
      ["waft cache clear", "remove them"],
    ],
  },
  "opts": {
    page: "embedding",
    examples: [
      ["waft opts", "list the optimizations"],
      ["waft opts --opt inline=off", "show the effect of a switch"],
    ],
  },
  "features": {
    page: "embedding",
    examples: [
      ["waft features", "list the features of WebAssembly"],
      ["waft features --json", "print them as JSON"],
    ],
  },
  "config": {
    page: "configuration",
    examples: [
      ["waft config set features.simd off", "write a setting to waft.json"],
      ["waft config diff", "list the settings that differ from their defaults"],
    ],
  },
  "commands": {
    page: "installing",
    examples: [
      ["waft commands", "list the commands with their arguments"],
      ["waft commands --json", "print them with all options as JSON"],
    ],
  },
  "completion": {
    page: "installing",
    examples: [
      ["waft completion --install", "complete words in your shell"],
      ["waft completion fish > ~/.config/fish/completions/waft.fish", "choose the file"],
    ],
  },
  "man": {
    page: "installing",
    examples: [
      ["waft man run | man -l -", "read a manual page"],
      ["waft man --out ~/.local/share/man/man1", "write all of them"],
    ],
  },
};

/** The help of a command, or of the command that it belongs to. */
export function commandHelp(words: string): CommandHelp | undefined {
  return COMMAND_HELP[words] ?? COMMAND_HELP[words.split(" ")[0]];
}

/** Adds groups of options, examples and addresses to the help of `program` and its commands. */
export function addHelpTexts(program: Command): void {
  for (const command of program.commands) addCommandHelp(command, command.name());
  program.addHelpText("after", `\nHelp for a command: waft help run. All pages: ${BASE_URL}/`);
}

function addCommandHelp(command: Command, words: string): void {
  for (const option of command.options) {
    const group = OPTION_GROUPS.find(([, names]) => names.includes(option.long ?? ""));
    if (group !== undefined) option.helpGroup(group[0]);
  }
  const own = COMMAND_HELP[words];
  if (own !== undefined) {
    const examples = own.examples.map(([line, effect]) => `\n  ${line}\n      ${effect}`).join("");
    command.addHelpText("after", `\nExamples:${examples}`);
  }
  const page = commandHelp(words)?.page;
  if (page !== undefined) command.addHelpText("after", `\nMore: ${BASE_URL}/${page}`);
  // One of its own, in place of that which it has from `waft`, with its group.
  if (command.commands.length > 0) command.helpCommand("help [command]", "Show help for a command");
  for (const child of command.commands) addCommandHelp(child, `${words} ${child.name()}`);
}
