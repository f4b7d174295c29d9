/**
 * Installs a version and kills its own process (kill -9) at the step with the given number; prints the steps when it is allowed to finish.
 * In: a JSON argument with paths, base, keys, target, step. Used by version_test.ts.
 */
import process from "node:process";
import { installVersion } from "../../project/ops/version.ts";
import type { MachinePaths } from "../../project/paths.ts";
import type { ReleaseKeys } from "../../project/release_index.ts";
import { contextFor } from "./release_fixture.ts";

const { paths, base, keys, target, step } = JSON.parse(process.argv[2]!) as {
  paths: MachinePaths;
  base: string;
  keys: ReleaseKeys;
  target: string;
  step: number;
};
let count = 0;
await installVersion(
  contextFor(paths, { base, keys }, {
    step: () => {
      if (count++ === step) process.kill(process.pid, "SIGKILL");
    },
  }),
  target,
);
console.log(count);
