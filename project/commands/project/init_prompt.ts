/**
 * The questions of `waft init` at a terminal. Loaded only when a question is due.
 */
import { isCancel, select, text } from "@clack/prompts";
import process from "node:process";
import { explainPluginId } from "../../base/grammar.ts";
import { endProgress } from "../../base/progress.ts";
import { type InitRequest, missingFlags } from "../../ops/project/init.ts";
import { TEMPLATES } from "../../ops/project/templates.ts";

const output = process.stderr;

/** Asks for all that is missing; undefined when cancelled. */
export async function askInit(
  given: Omit<InitRequest, "kind">,
  wanted: string | undefined,
): Promise<InitRequest | undefined> {
  endProgress();
  let kind = wanted === "full" ? undefined : wanted as InitRequest["kind"] | undefined;
  if (wanted === undefined) {
    const setup = await select({
      message: "What do you want to create?",
      output,
      options: [
        { value: "quick", label: "quick setup", hint: "only waft.json" },
        { value: "application", label: "an application", hint: "a module that runs, and can use plugins" },
        { value: "plugin", label: "a plugin", hint: "ready to publish" },
        { value: "template", label: "a program by language", hint: TEMPLATES.map(({ name }) => name).join(", ") },
      ],
    });
    if (isCancel(setup)) return undefined;
    kind = setup as InitRequest["kind"];
  } else if (kind === undefined) {
    const chosen = await select({
      message: "Which kind?",
      output,
      options: [{ value: "application", label: "an application" }, { value: "plugin", label: "a plugin" }],
    });
    if (isCancel(chosen)) return undefined;
    kind = chosen as InitRequest["kind"];
  }
  if (kind === "quick") return { root: given.root, kind };
  if (kind === "template") {
    const template = await select({
      message: "Which template?",
      output,
      options: TEMPLATES.map(({ name, about }) => ({ value: name, label: name, hint: about })),
    });
    return isCancel(template) ? undefined : { ...given, kind, template };
  }
  const answers: { [name: string]: string | undefined } = {};
  for (const flag of ["name", ...missingFlags({ ...given, kind }).map((f) => f.slice(2))]) {
    if (answers[flag] !== undefined) continue;
    const proposed = flag === "name"
      ? given.name
      : flag === "license"
      ? "Apache-2.0"
      : flag === "repository"
      ? `https://${answers.module ?? given.module ?? ""}`
      : undefined;
    const answer = await text({
      message: QUESTIONS[flag] ?? flag,
      output,
      ...(proposed === undefined ? {} : { placeholder: proposed, defaultValue: proposed }),
      validate: (value) => {
        if ((value ?? "") === "") return proposed === undefined ? "required" : undefined;
        return flag === "module" ? explainPluginId(value!)?.help : undefined;
      },
    });
    if (isCancel(answer)) return undefined;
    answers[flag] = answer;
  }
  return { ...given, ...answers, kind };
}

const QUESTIONS: { readonly [flag: string]: string | undefined } = {
  name: "Name",
  module: "Plugin id (such as github.com/you/name)",
  description: "What does it do?",
  license: "License",
  repository: "Repository",
};

/** Asks for the host of a short plugin key; undefined when cancelled. */
export async function askHost(key: string): Promise<string | undefined> {
  const answer = await text({
    message: `What is the host of ${key}?`,
    output,
    placeholder: "github.com",
    defaultValue: "github.com",
  });
  return isCancel(answer) ? undefined : answer;
}
