/** The access log of `waft serve`. */
import assert from "node:assert/strict";
import { commonLine } from "./serve_log.ts";

const report = {
  method: "GET",
  path: "/a",
  status: 200,
  milliseconds: 1,
  client: "192.0.2.1",
  version: "1.1",
  bytes: 12,
};
const time = new Date("2026-02-03T04:05:06.789Z");

Deno.test("the Common Log Format has client, time, request, status and bytes", () => {
  assert.equal(commonLine(report, time), '192.0.2.1 - - [03/Feb/2026:04:05:06 +0000] "GET /a HTTP/1.1" 200 12');
  assert.match(commonLine({ ...report, client: "", bytes: 0, status: 0 }, time), /^- - - \[.*\] "[^"]*" 0 -$/);
});

Deno.test("a request cannot end its field or its line", () => {
  const line = commonLine({ ...report, path: '/"\\\n\u001b\u00e9' }, time);
  assert.match(line, /"GET \/\\"\\\\\\x0a\\x1b\\xc3\\xa9 HTTP\/1\.1"/);
});
