import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, GetPromptRequestSchema, ListToolsRequestSchema, McpError } from "@modelcontextprotocol/sdk/types.js";
import { withContract } from "faultwire";
import { z } from "zod";

import { options, tools } from "./tools.mjs";

const server = new Server({ name: "v1-low", version: "1.0.0" }, { capabilities: { tools: {}, prompts: {} } });
const table = tools(z);
const schema = (shape) => z.toJSONSchema(z.object(shape ?? {}));
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.entries(table).map(([name, [, output, input]]) => ({
    name,
    inputSchema: schema(input),
    ...(output ? { outputSchema: schema(output) } : {}),
  })),
}));
// Before and after: it must not matter when a handler is registered.
if (process.env.ORDER !== "last") withContract(server, options);
server.setRequestHandler(GetPromptRequestSchema, () => { throw new Error("no such prompt here"); });
server.setRequestHandler(CallToolRequestSchema, (request, extra) => {
  const known = table[request.params.name];
  if (known === undefined) throw new McpError(-32602, `Tool ${request.params.name} not found`);
  const progressToken = extra._meta?.progressToken;
  const notify = (progress) =>
    extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress } });
  return known[0](request.params.arguments ?? {}, { signal: extra.signal, notify });
});
if (process.env.ORDER === "last") withContract(server, options);
await server.connect(new StdioServerTransport());
