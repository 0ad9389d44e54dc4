import { ProtocolError, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { withContract } from "faultwire";
import { z } from "zod";

import { options, tools } from "./tools.mjs";

const table = tools(z);
const schema = (shape) => z.toJSONSchema(z.object(shape ?? {}));

serveStdio(() => {
  const server = new Server({ name: "v2-low", version: "2.0.0" }, { capabilities: { tools: {}, prompts: {} } });
  withContract(server, options);
  server.setRequestHandler("prompts/get", () => { throw new Error("no such prompt here"); });
  server.setRequestHandler("tools/list", () => ({
    tools: Object.entries(table).map(([name, [, output, input]]) => ({
      name,
      inputSchema: schema(input),
      ...(output ? { outputSchema: schema(output) } : {}),
    })),
  }));
  server.setRequestHandler("tools/call", (request, { mcpReq }) => {
    const known = table[request.params.name];
    if (known === undefined) throw new ProtocolError(-32602, `Tool ${request.params.name} not found`);
    const progressToken = mcpReq._meta?.progressToken;
    const notify = (progress) =>
      mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress } });
    return known[0](request.params.arguments ?? {}, { signal: mcpReq.signal, notify });
  });
  return server;
});
