/** Which route answers a request, by host and path. */
import assert from "node:assert/strict";
import { RouteTable } from "./routes.ts";

Deno.test("the most specific host decides, then the longest path by segments", () => {
  const table = new RouteTable([
    { path: "/", target: "rest" },
    { path: "/v1", target: "v1" },
    { path: "/v1/users/", target: "users" },
    { host: "*.example.com", path: "/", target: "some" },
    { host: "*.eu.example.com", path: "/", target: "europe" },
    { host: "Api.example.com", path: "/a", target: "api" },
  ]);
  const cases: [string, string, string | undefined][] = [
    ["", "/", "rest"],
    ["", "*", "rest"],
    ["other.org", "/v1", "v1"],
    ["other.org", "/v1/", "v1"],
    ["other.org", "/v1x", "rest"],
    ["other.org", "/v1/users", "users"],
    ["other.org", "/v1/users/7", "users"],
    ["other.org", "/v1/usersx", "v1"],
    ["other.org", "/%761", "rest"],
    ["other.org", "/v1/../v2", "v1"],
    ["example.com", "/", "rest"],
    ["A.EXAMPLE.com", "/", "some"],
    ["a.b.example.com", "/", "some"],
    ["a.eu.example.com", "/", "europe"],
    ["api.example.com", "/a/b", "api"],
    ["api.example.com", "/b", undefined],
    ["*.example.com", "/", "some"],
  ];
  for (const [host, path, target] of cases) assert.equal(table.find(host, path), target, `${host}${path}`);
  assert.equal(new RouteTable([{ path: "/a", target: 1 }]).find("x", "/b"), undefined);
});
