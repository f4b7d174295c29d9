/**
 * A load of HTTP requests. In: a port of the loopback interface, and the numbers of requests and connections. Out:
 * times. Invariant: each request is answered with 201, as tests/component/fixtures/http.wat answers.
 */
import { Agent, request } from "node:http";

/** Milliseconds per request, of `count` requests over `connections` connections; each must be answered with 201. */
export async function load(port: number, count: number, connections: number): Promise<{ each: number; p99: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const times: number[] = [];
  let left = count;
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const begun = performance.now();
      const sent = request({ host: "127.0.0.1", port, path: "/abc", agent }, (message) => {
        if (message.statusCode !== 201) reject(new Error(`Status ${message.statusCode} on port ${port}`));
        message.resume();
        message.on("end", () => {
          times.push(performance.now() - begun);
          resolve();
        });
      });
      sent.on("error", reject);
      sent.end();
    });
  const worker = async () => {
    while (left-- > 0) await one();
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: connections }, worker));
  const each = (performance.now() - begun) / count;
  agent.destroy();
  times.sort((x, y) => x - y);
  return { each, p99: times[Math.floor(times.length * 0.99)] };
}
