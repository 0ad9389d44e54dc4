//! The names of MCP: the methods that clients ask for, and the members of the objects that the
//! protocol defines. Other names are extensions of a server or client.

use crate::fold::fold;

/// The methods of both eras that a client sends as requests.
pub const REQUESTS: [&str; 22] = [
    "tools/call",
    "tools/list",
    "initialize",
    "ping",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "tasks/update",
    "roots/list",
    "messages/listen",
];

/// The notifications of both eras that a client sends.
pub const NOTIFICATIONS: [&str; 8] = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "notifications/elicitation/complete",
    "notifications/message",
    "notifications/subscriptions/acknowledged",
];

/// An object that the protocol defines.
pub(crate) struct Object {
    /// What an error calls it.
    pub label: &'static str,
    /// Its members, and the kinds of their values.
    pub members: &'static [(&'static str, &'static Object)],
}

impl Object {
    /// The kind of a member's value. If the name only folds to one of the protocol's names, that
    /// name.
    pub fn inner(&self, name: &str) -> Result<&'static Self, &'static str> {
        for (known, inner) in self.members {
            if *known == name {
                return Ok(inner);
            }
        }
        match self.like(name) {
            Some(like) => Err(like),
            None => Ok(self.other()),
        }
    }

    /// The kind of an undefined member's value: its content is as open as arguments, and its label
    /// is that of the object.
    fn other(&self) -> &'static Self {
        if std::ptr::eq(self, &raw const ARGUMENTS) { &ARGUMENTS } else { &OPEN }
    }

    /// The name of the protocol that another name folds to.
    fn like(&self, name: &str) -> Option<&'static str> {
        if self.members.is_empty() {
            return None;
        }
        let mut known = self.members.iter().map(|(known, _)| *known);
        if name.bytes().all(|b| b.is_ascii_graphic()) {
            return known.find(|known| known.eq_ignore_ascii_case(name));
        }
        let folded = fold(name);
        let folded = folded.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        known.find(|known| fold(known) == folded)
    }
}

/// An object whose members the protocol does not define.
pub(crate) static OPEN: Object = Object { label: "an object", members: &[] };

/// A JSON-RPC message.
pub(crate) static MESSAGE: Object = Object {
    label: "the message",
    members: &[
        ("jsonrpc", &OPEN),
        ("id", &OPEN),
        ("method", &OPEN),
        ("params", &PARAMS),
        ("result", &ANSWER),
        ("error", &ERROR),
    ],
};

/// A message with a method that the protocol does not define: only `_meta` of its params is
/// defined.
pub(crate) static FOREIGN_MESSAGE: Object = Object {
    label: "the message",
    members: &[
        ("jsonrpc", &OPEN),
        ("id", &OPEN),
        ("method", &OPEN),
        ("params", &FOREIGN_PARAMS),
        ("result", &ANSWER),
        ("error", &ERROR),
    ],
};

static FOREIGN_PARAMS: Object = Object { label: "params", members: &[("_meta", &META)] };

/// The params of all methods that a client sends.
pub(crate) static PARAMS: Object = Object {
    label: "params",
    members: &[
        ("name", &OPEN),
        ("arguments", &ARGUMENTS),
        ("_meta", &META),
        ("uri", &OPEN),
        ("cursor", &OPEN),
        ("task", &TASK),
        ("taskId", &OPEN),
        ("requestId", &OPEN),
        ("reason", &OPEN),
        ("protocolVersion", &OPEN),
        ("capabilities", &CAPABILITIES),
        ("clientInfo", &IMPLEMENTATION),
        ("level", &OPEN),
        ("ref", &REFERENCE),
        ("argument", &ARGUMENT),
        ("context", &CONTEXT),
        ("progressToken", &OPEN),
        ("progress", &OPEN),
        ("total", &OPEN),
        ("message", &OPEN),
        ("requestState", &OPEN),
        ("inputResponses", &OPEN),
        ("notifications", &OPEN),
    ],
};

/// What a tool or prompt is given.
static ARGUMENTS: Object = Object { label: "arguments", members: &[] };

static META: Object = Object {
    label: "_meta",
    members: &[
        ("progressToken", &OPEN),
        ("io.modelcontextprotocol/protocolVersion", &OPEN),
        ("io.modelcontextprotocol/clientCapabilities", &CAPABILITIES),
        ("io.modelcontextprotocol/clientInfo", &IMPLEMENTATION),
        ("io.modelcontextprotocol/logLevel", &OPEN),
        ("io.modelcontextprotocol/subscriptionId", &OPEN),
        ("io.modelcontextprotocol/related-task", &RELATED_TASK),
        ("traceparent", &OPEN),
        ("tracestate", &OPEN),
        ("baggage", &OPEN),
    ],
};

static RELATED_TASK: Object = Object { label: "related-task", members: &[("taskId", &OPEN)] };

static TASK: Object = Object {
    label: "task",
    members: &[("ttl", &OPEN), ("taskId", &OPEN), ("pollInterval", &OPEN)],
};

static CAPABILITIES: Object = Object {
    label: "capabilities",
    members: &[
        ("roots", &OPEN),
        ("sampling", &OPEN),
        ("elicitation", &OPEN),
        ("tasks", &OPEN),
        ("experimental", &OPEN),
        ("extensions", &OPEN),
    ],
};

static IMPLEMENTATION: Object = Object {
    label: "clientInfo",
    members: &[("name", &OPEN), ("version", &OPEN), ("title", &OPEN)],
};

static REFERENCE: Object =
    Object { label: "ref", members: &[("type", &OPEN), ("name", &OPEN), ("uri", &OPEN)] };

static ARGUMENT: Object =
    Object { label: "argument", members: &[("name", &OPEN), ("value", &OPEN)] };

static CONTEXT: Object = Object { label: "context", members: &[("arguments", &ARGUMENTS)] };

/// What a client answers to a request of the server.
static ANSWER: Object = Object {
    label: "result",
    members: &[
        ("_meta", &META),
        ("action", &OPEN),
        ("content", &OPEN),
        ("role", &OPEN),
        ("model", &OPEN),
        ("stopReason", &OPEN),
        ("roots", &ROOT),
        ("task", &TASK),
        ("taskId", &OPEN),
    ],
};

static ROOT: Object = Object { label: "a root", members: &[("uri", &OPEN), ("name", &OPEN)] };

static ERROR: Object =
    Object { label: "error", members: &[("code", &OPEN), ("message", &OPEN), ("data", &OPEN)] };

/// Members of a server's result that are judged before it passes.
pub(crate) const RESULT: [&str; 10] = [
    "content",
    "isError",
    "structuredContent",
    "_meta",
    "resultType",
    "tools",
    "nextCursor",
    "resources",
    "resourceTemplates",
    "prompts",
];

/// Members of a content block that are judged before it passes.
pub(crate) const BLOCK: [&str; 2] = ["type", "text"];
