/**
 * Program of tests/component/serve_memory_test.ts: serves requests of its own with a component. In: the name of a
 * component's file, and the flag --expose-gc. Out: a line of JSON, the bytes that each request left behind which young
 * collections did not free, in several rounds. Invariant: no other collection of old objects happens in a round.
 */
import { readFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import process from "node:process";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import { ComponentServer } from "../../component/http/server.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { allRequests } from "./http_requests.ts";

const CONNECTIONS = 16;
const REQUESTS = 1600;
const ROUNDS = 3;

const { gc } = globalThis as unknown as { gc(options: { readonly type: "major" | "minor" }): void };

/** Makes requests over a connection, one after the other. */
function askRepeatedly(port: number, count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = "GET /abc HTTP/1.1\r\nhost: x\r\n\r\n";
    let left = count;
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(request));
    socket.on("data", (part) => {
      answer += part.toString("latin1");
      // The body comes with the length, or in a chunk.
      if (!/\r\n\r\n(?:\/abc|4\r\n\/abc\r\n0\r\n\r\n)$/.test(answer)) return;
      answer = "";
      if (--left > 0) socket.write(request);
      else socket.end();
    });
    socket.on("error", reject);
    socket.on("close", () => left === 0 ? resolve() : reject(new Error(`no answer, but ${JSON.stringify(answer)}`)));
  });
}

const component = compileComponent(NewEngine({ interruptible: true }), readFileSync(process.argv[2], "utf8"));
const wasi = new ComponentWasi({ waitInEventLoop: true });
const pool = component.pool({ size: CONNECTIONS, imports: { ...wasi.imports, ...httpInterfaces(wasi) } });
const server = new ComponentServer({
  routes: allRequests({
    pool,
    preview1: wasi.preview1,
    limits: { concurrent: CONNECTIONS, waiting: CONNECTIONS },
    context: () => ({ deadline: 600_000 }),
  }),
  onRequest: ({ error }) => {
    if (error !== undefined) throw error;
  },
});
const { port } = await server.listen({ host: "127.0.0.1", port: 0 }) as AddressInfo;
const load = () => Promise.all(Array.from({ length: CONNECTIONS }, () => askRepeatedly(port, REQUESTS / CONNECTIONS)));
// Code of JavaScript is optimized in the first requests.
for (let round = 0; round < ROUNDS; round++) await load();
const left: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  gc({ type: "major" });
  const before = process.memoryUsage().heapUsed;
  await load();
  // An object is promoted by the second collection that it survives.
  for (let k = 0; k < 3; k++) gc({ type: "minor" });
  left.push((process.memoryUsage().heapUsed - before) / REQUESTS);
}
await server.stop();
pool.close();
wasi.close();
console.log(JSON.stringify(left));
