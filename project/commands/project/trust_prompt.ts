/**
 * The terminal prompt that accepts the grants of a lockfile.
 *
 * In: a project, the plugins and the groups of WASI that no record of this machine covers. Out: yes or no. Every
 * grant is shown in full before the question; the default is no; earlier input is discarded.
 */
import { confirm, isCancel } from "@clack/prompts";
import process from "node:process";
import { escapeHostile } from "../../base/diagnostic.ts";
import type { AuthorityHolder } from "../../lockfile/held_authority.ts";
import { groupLines, holderLines } from "../../plugins/acceptance.ts";
import { drainInput, showWhole } from "../terminal_input.ts";

/** Asks; false for no and for a cancelled question. */
export async function askToAccept(
  root: string,
  holders: readonly AuthorityHolder[],
  groups: readonly string[],
): Promise<boolean> {
  const subjects = [...(holders.length === 0 ? [] : ["plugins"]), ...(groups.length === 0 ? [] : ["rights of guests"])];
  const head = `${escapeHostile(root)} has ${subjects.join(" and ")} that you have not accepted on this machine:`;
  await showWhole([head, ...holders.flatMap(holderLines), ...groupLines(groups)].join("\n"));
  await drainInput();
  const answer = await confirm({
    message: "Accept these grants?",
    output: process.stderr,
    initialValue: false,
  });
  return !isCancel(answer) && answer;
}
