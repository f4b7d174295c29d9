/**
 * Every creation, renaming and directory of the project manager's operations refused once, as by a full disk: one clear
 * error that names a file of the user, no temporary files, and the same operation succeeds afterwards.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DISK } from "../../project/base/files.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import type { OpsContext } from "../../project/packages/context.ts";
import { Credentials } from "../../project/packages/credentials.ts";
import { RefusingFiles } from "./dying_files.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { codecDefinition, KV, kvDefinition } from "./sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "./temp_project.ts";

type Operation = (context: OpsContext, project: TempProject) => Promise<unknown>;

const add: Operation = (context, project) =>
  addPlugins(context, { root: project.root, directory: project.root, specs: [KV], decider: ALLOW_ALL });
const login: Operation = ({ paths, files }) =>
  new Credentials(paths, files).keep("https://a.example", "token_0123456789abcdef");

/** The files of the project and of the machine. */
function filesOf(project: TempProject): Map<string, string> {
  const names = (readdirSync(project.home, { recursive: true }) as string[])
    .filter((name) => statSync(join(project.home, name)).isFile());
  return new Map(names.map((name) => [name, readFileSync(join(project.home, name), "latin1")]));
}

/** Refuses each step of an operation in turn; returns the number of refusals that the operation reported. */
async function refuseEach(
  operation: Operation,
  old: Operation | undefined,
): Promise<{ steps: number; errors: number }> {
  const fake = new FakeRegistry();
  await fake.publish([codecDefinition()]);
  await fake.publish([kvDefinition()]);
  let errors = 0;
  for (let count = 1;; count++) {
    const project = new TempProject();
    await old?.(await project.context(fake), project);
    const files = new RefusingFiles(count);
    const before = filesOf(project);
    let error: unknown;
    try {
      await operation(await project.context(fake, { files }), project);
    } catch (thrown) {
      error = thrown;
    }
    const after = filesOf(project);
    if (error !== undefined) {
      errors++;
      const { code, path } = error as { code?: unknown; path?: unknown };
      assert.deepEqual([code, /\.tmp$/.test(String(path))], ["ENOSPC", false], `step ${count}: ${error}`);
    }
    await operation(await project.context(fake, { files: DISK }), project);
    const final = filesOf(project);
    for (const [name, content] of after) {
      assert(content === before.get(name) || content === final.get(name), `step ${count}: ${name} is left over`);
    }
    for (const name of before.keys()) assert(after.has(name), `step ${count}: ${name} is lost`);
    project.remove();
    if (files.steps < count) return { steps: count - 1, errors };
  }
}

Deno.test("waft add: every refused step is reported or has a fallback, and leaves no temporary files", async () => {
  const { steps, errors } = await refuseEach(add, undefined);
  assert(steps >= 15 && errors >= 10, `${steps} steps, ${errors} errors`);
});

Deno.test("credentials: a refused step keeps the old tokens", async () => {
  const { steps, errors } = await refuseEach(
    login,
    ({ paths }) => new Credentials(paths, DISK).keep("https://b.example", "token_of_before_012345"),
  );
  assert.deepEqual({ steps, errors }, { steps: 3, errors: 3 });
});
