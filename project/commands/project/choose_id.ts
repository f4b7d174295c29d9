/** The question which of the plugins that a search found is to be added. Loaded only for an open question. */
import { isCancel, select } from "@clack/prompts";
import process from "node:process";
import type { FoundId } from "../../ops/project/find_ids.ts";
import { safeHint, safeProse } from "../../base/terminal.ts";
import { drainInput } from "../terminal_input.ts";

const HINT_CHARACTERS = 100;

/** Asks which plugin is meant; undefined for none. */
export async function chooseId(word: string, found: readonly FoundId[]): Promise<string | undefined> {
  await drainInput();
  const answer = await select({
    message: `Which plugin is ${JSON.stringify(word)}?`,
    output: process.stderr,
    initialValue: "",
    options: [
      ...found.map(({ name, version, description }) => ({
        value: name,
        label: `${name} ${version}`,
        hint: safeHint(safeProse(description), HINT_CHARACTERS),
      })),
      { value: "", label: "none of these" },
    ],
  });
  return isCancel(answer) || answer === "" ? undefined : answer;
}
