/** The options whose values completions know exist. */
import assert from "node:assert/strict";
import { type CommandNode, commandTree } from "../command_tree.ts";
import { KNOWN_OPTIONS } from "./completion_values.ts";
import { COMMANDS } from "../table.ts";

Deno.test("every option with known values exists, where its command is named", async () => {
  const all = new Set<string>();
  const walk = ({ options, children }: CommandNode, words: string): void => {
    for (const option of options) for (const word of option.words) all.add(word).add(`${words} ${word}`);
    for (const child of children) walk(child, `${words} ${child.name}`);
  };
  for (const node of await commandTree(COMMANDS)) walk(node, node.name);
  // Of the registry, which is another unit.
  const others = ["--data", "--releases"];
  assert.deepEqual(KNOWN_OPTIONS.filter((option) => !all.has(option) && !others.includes(option)), []);
});
