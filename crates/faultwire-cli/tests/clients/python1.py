"""The official Python client, 1.x: runs a plan and prints what it got as JSON.

The plan (argv[1]) is {"command": [...], "calls": [[tool, arguments], ...]}, or has a "url" in
place of the command.
"""

import asyncio
import json
import sys

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


def plain(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def connection(plan):
    if "url" in plan:
        return streamablehttp_client(plan["url"], headers=plan.get("headers"))
    command, *arguments = plan["command"]
    server = StdioServerParameters(command=command, args=arguments, env=plan.get("env"))
    return stdio_client(server)


async def main(plan):
    got = {"results": []}
    async with connection(plan) as (read, write, *_), ClientSession(read, write) as session:
        started = await session.initialize()
        got["era"] = started.protocolVersion
        got["tools"] = [plain(tool) for tool in (await session.list_tools()).tools]
        for tool, given in plan["calls"]:
            try:
                got["results"].append(plain(await session.call_tool(tool, given)))
            except McpError as error:
                got["results"].append({"raised": plain(error.error)})
    print(json.dumps(got))



def innermost(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


plan = json.loads(sys.argv[1])
try:
    asyncio.run(main(plan))
except Exception as error:
    # Only who expects that wants to read of it.
    if not plan.get("may_fail"):
        raise
    print(json.dumps({"failed": innermost(error)}))
