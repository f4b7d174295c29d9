/**
 * README's first steps, typed into a shell in a pseudo-terminal line by line, with reviews answered by keys.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { hasPty, KEY, typed, waftProgram } from "./waft.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PROMPT = "newcomer> ";

/** Lines of the page's section, without their comments. */
function commandsOfReadme(): string[] {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const section = readme.slice(readme.indexOf("## A project with plugins"));
  const block = /```sh\n([^]*?)```/.exec(section)![1];
  return block.trim().split("\n").map((line) => line.replace(/\s+#.*$/, ""));
}

Deno.test({
  name: `a newcomer types what README tells${
    hasPty() ? "" : " (ignored: python3 with pty is needed for a pseudo-terminal)"
  }`,
  ignore: !hasPty(),
  async fn() {
    const home = mkdtempSync(join(tmpdir(), "waft-readme-"));
    try {
      cpSync(join(ROOT, "examples"), join(home, "examples"), { recursive: true });
      mkdirSync(join(home, "bin"));
      writeFileSync(join(home, "bin", "waft"), waftProgram(), { mode: 0o755 });
      writeFileSync(join(home, "prompt.sh"), `PS1='${PROMPT}'\n`);
      const lines = commandsOfReadme();
      assert.deepEqual(lines.map((line) => line.split(" ").slice(0, 2).join(" ")), [
        "mkdir visits",
        "waft init",
        "cp -r",
        "waft add",
        "waft run",
        "waft run",
        "waft status",
      ]);
      const all = KEY.up.repeat(3) + KEY.enter;
      const reviews: [string, string][] = [
        ["Allow plugins.waft.example/log?", all],
        ["directory of this machine", KEY.enter],
        ["Allow plugins.waft.example/http?", all],
        ["Allow plugins.waft.example/kv?", all],
        ["directory of this machine", KEY.enter],
      ];
      const steps = lines.flatMap((line): [string, string][] => {
        const type: [string, string] = [PROMPT, line + KEY.enter];
        return line.startsWith("waft add") ? [type, ...reviews] : [type];
      });
      const { code, out } = await typed(["sh"], [...steps, [PROMPT, "exit" + KEY.enter]], home, home, {
        PATH: `${join(home, "bin")}:${process.env.PATH}`,
        ENV: join(home, "prompt.sh"),
        // Nothing listens there: locked plugins need no network, and plugins from paths never do.
        WAFT_REGISTRY: "http://127.0.0.1:1",
      });
      assert.equal(code, 0, out);
      const answers = out.replaceAll("\r", "").split(PROMPT);
      assert.match(answers.at(-4)!, /"message":"visited/, out);
      assert.match(answers.at(-4)!, /\n1\n/, out);
      assert.match(answers.at(-3)!, /\n2\n/, out);
      assert.match(answers.at(-2)!, /up to date\s+3 plugins, 0 need review/, out);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  },
});
