"""The official Python client, 1.x: runs a plan and prints what it got as JSON.

The plan (argv[1]) is {"command": [...], "calls": [[tool, arguments], ...]}.
"""

import asyncio
import json
import sys

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client


def plain(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(plan):
    command, *arguments = plan["command"]
    server = StdioServerParameters(command=command, args=arguments, env=plan.get("env"))
    got = {"results": []}
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        started = await session.initialize()
        got["era"] = started.protocolVersion
        got["tools"] = [plain(tool) for tool in (await session.list_tools()).tools]
        for tool, given in plan["calls"]:
            try:
                got["results"].append(plain(await session.call_tool(tool, given)))
            except McpError as error:
                got["results"].append({"raised": plain(error.error)})
    print(json.dumps(got))


asyncio.run(main(json.loads(sys.argv[1])))
