/**
 * Help: every command has a group, two examples whose options exist, and a page that exists.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { Command } from "commander";
import { type CommandNode, commandTree } from "../command_tree.ts";
import { addHelpTexts, COMMAND_HELP, commandHelp } from "./help_texts.ts";
import { COMMANDS, GROUP } from "../table.ts";

async function nodes(): Promise<Map<string, CommandNode>> {
  const found = new Map<string, CommandNode>();
  const walk = (node: CommandNode, words: string): void => {
    found.set(words, node);
    for (const child of node.children) walk(child, `${words} ${child.name}`);
  };
  for (const node of await commandTree(COMMANDS)) walk(node, node.name);
  return found;
}

Deno.test("every command has two examples with options that it has, and a page", async () => {
  const all = await nodes();
  for (const { name } of COMMANDS) assert.ok(Object.hasOwn(COMMAND_HELP, name), name);
  for (const words of all.keys()) {
    const page = commandHelp(words)?.page;
    assert.ok(existsSync(new URL(`../../../docs/${page}.md`, import.meta.url)), `${words}: ${page}`);
  }
  for (const [words, { examples }] of Object.entries(COMMAND_HELP)) {
    for (const [line] of examples) {
      // The registry's commands are another unit's.
      if (words === "registry") continue;
      const [waft, first, ...rest] = line.split(/ [|<>] /)[0].split(" ");
      assert.equal(waft, "waft", line);
      const help = first === "help";
      const path = help ? rest.join(" ") : all.has(`${first} ${rest[0]}`) ? `${first} ${rest[0]}` : first;
      const node = all.get(path);
      assert.ok(node !== undefined, line);
      assert.ok(path === words || help || path.startsWith(`${words} `), `${line} in the help of ${words}`);
      const options = node.options.flatMap((option) => option.words);
      for (const word of rest) if (/^-\w|^--/.test(word)) assert.ok(options.includes(word), `${line}: ${word}`);
    }
  }
});

Deno.test("help shows options in groups, then the examples and the address", async () => {
  const program = new Command("waft").enablePositionalOptions();
  const row = COMMANDS.find(({ name }) => name === "run")!;
  (await row.load()).addCommand(program);
  addHelpTexts(program);
  let text = "";
  const [run] = program.commands;
  run.configureOutput({ writeOut: (part) => text += part }).outputHelp();
  const headings = [...text.matchAll(/^([A-Z].*):$/gm)].map(([, heading]) => heading);
  const groups = ["Authority of the guest", "Project", "Compilation", "Limits"];
  assert.deepEqual(headings, ["Arguments", "Options", ...groups, "Examples"]);
  assert.match(
    text,
    /\nExamples:\n {2}waft run .*\n {6}.*\n {2}waft run .*\n {6}.*\n\nMore: https:\S+\/getting-started\n$/,
  );
});

Deno.test("commands of a group are adjacent", () => {
  const groups = COMMANDS.map(({ group }) => group).filter((group, k, all) => group !== all[k - 1]);
  assert.deepEqual(groups, Object.values(GROUP));
});
