//! What a session wants done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::call::{Comparison, OpenCall};
use crate::client_sink::ClientSink;
use crate::failing::CallFailure;
use crate::last_output::LastOutput;
use crate::tools::{KnownTools, ListedTool};

/// Where a line would stand in the server's input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpstreamSlot {
    /// At which byte.
    pub at: u64,
    /// How much more the server's input takes.
    pub free: usize,
    /// When the line came.
    pub now: Instant,
}

/// What becomes of a line of the client.
#[expect(clippy::large_enum_variant, reason = "it is looked at where it is returned")]
pub(crate) enum ClientVerdict {
    /// It goes to the server, its own bytes.
    Pass,
    /// It goes no further. What there is to say about it is among the effects.
    Drop,
    /// This goes to the server in its place.
    Instead(Vec<u8>),
    /// It is no call, and is answered as far as it can be.
    Refuse(Refusal),
}

/// The answer to something that is no call.
pub(crate) struct Refusal {
    pub id: Option<String>,
    /// The number of the JSON-RPC error.
    pub number: i64,
    pub failure: CallFailure,
}

/// What becomes of a line of the server.
pub(crate) enum ServerVerdict {
    /// It goes to the client, its own bytes.
    Pass,
    /// It goes no further.
    Drop,
    /// It may be the beginning of a message.
    Unfinished,
    /// It answers this call, which has left the table. Its tool, if it is listed.
    Reply(OpenCall, Option<Arc<ListedTool>>),
    /// It answers the handshake of a server that was started again.
    Opened,
    /// It answers our own question for the tool list.
    Listed,
    /// It answers something else that the gateway asked.
    OwnReply,
    /// This has to be made before the line is looked at again.
    Later(Comparison),
}

/// What a session wants done, in this order.
pub(crate) enum Effect {
    /// These bytes go to the server.
    SendUpstream(Vec<u8>),
    /// This line goes to the client, here or to where all of its messages go.
    Tell(Option<Arc<dyn ClientSink>>, Vec<u8>),
    /// A call failed. Of several that failed of one cause, one counts for the breaker.
    Fail { call: OpenCall, failure: CallFailure, counts: bool },
    /// A call failed that the server may have got: it is taken back, if that is still possible, else
    /// the server is told why it is not waited for.
    Recall { call: OpenCall, failure: CallFailure, tell: Option<&'static str>, counts: bool },
    /// Something is recorded that is no failure of a call.
    Event(&'static str, Value),
    /// The tool list is known, or changed: these are all tools.
    ToolsListed(KnownTools),
    /// What waits may go now: see [`Session::on_release`](super::Session::on_release).
    Release,
    /// A deadline was set that comes before all others.
    Sooner,
    /// The server is to be started.
    Start,
    /// The server is to be killed.
    Kill,
    /// Nothing is open any more, and nothing will be.
    Close,
}

/// How a run of the server ended.
pub(crate) struct Exit {
    /// In words: "exited with status 1".
    pub how: String,
    /// Whether that is how a server ends that wants to.
    pub is_in_order: bool,
    /// How long it ran.
    pub lasted: Duration,
    /// Which run it was.
    pub run: u64,
    /// Whether the session ends anyway.
    pub is_wanted: bool,
    /// What it printed last, if it has answered nothing.
    pub output: Option<Arc<LastOutput>>,
}
