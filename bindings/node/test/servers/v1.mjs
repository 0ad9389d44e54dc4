import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { withContract } from "faultwire";
import { z } from "zod";

import { options, tools } from "./tools.mjs";

const server = new McpServer({ name: "v1", version: "1.0.0" });
if (process.env.BARE !== "1") withContract(server, options);
for (const [name, [handler, output, input]] of Object.entries(tools(z))) {
  const config = { description: name, inputSchema: input ?? {}, ...(output ? { outputSchema: output } : {}) };
  server.registerTool(name, config, (args, extra) => {
    const progressToken = extra._meta?.progressToken;
    const notify = (progress) =>
      extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress } });
    return handler(args, { signal: extra.signal, notify });
  });
}
await server.connect(new StdioServerTransport());
