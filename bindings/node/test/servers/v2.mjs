import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { withContract } from "faultwire";
import { z } from "zod";

import { options, tools } from "./tools.mjs";

serveStdio(() => {
  const server = new McpServer({ name: "v2", version: "2.0.0" });
  for (const [name, [handler, output, input]] of Object.entries(tools(z))) {
    const config = {
      description: name,
      inputSchema: z.object(input ?? {}),
      ...(output ? { outputSchema: z.object(output) } : {}),
    };
    server.registerTool(name, config, (args, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      const notify = (progress) =>
        mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress } });
      return handler(args, { signal: mcpReq.signal, notify });
    });
  }
  return process.env.BARE === "1" ? server : withContract(server, options);
});
