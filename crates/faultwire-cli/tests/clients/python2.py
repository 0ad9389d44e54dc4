"""The official Python client, 2.x, which finds out by itself which era a server speaks."""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


def plain(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(plan):
    if "url" in plan:
        server = plan["url"]
    else:
        command, *arguments = plan["command"]
        server = StdioServerParameters(command=command, args=arguments, env=plan.get("env"))
    got = {"results": []}
    async with Client(server, mode=plan.get("mode", "auto")) as client:
        got["era"] = str(client.protocol_version)
        got["tools"] = [plain(tool) for tool in (await client.list_tools()).tools]
        for tool, given in plan["calls"]:
            try:
                got["results"].append(plain(await client.call_tool(tool, given)))
            except MCPError as error:
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
