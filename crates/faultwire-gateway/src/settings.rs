//! What an operator can set. Every limit has a default that suits an unknown server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use faultwire::output::Output;
use faultwire_contract::{Contract, Masks, Meta, Profile, Session, SoftFailures};

use crate::method::Method;
use crate::wire;

/// How a server is wrapped.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, set by name")]
pub struct Settings {
    /// Under which contract.
    pub contract: Arc<Contract>,
    /// In which of its profiles.
    pub profile: Profile,
    /// How long answers may take.
    pub deadlines: Deadlines,
    /// What happens to arguments that do not fit the tool's schema.
    pub arguments: Arguments,
    /// What happens to results that do not match the tool's `outputSchema`.
    pub output: Output,
    /// What becomes of failures that the server calls a success.
    pub soft_failures: SoftFailures,
    /// How much is taken.
    pub limits: Limits,
    /// Whether calls are sent again.
    pub retry: Retry,
    /// How a server that ended is started again.
    pub restart: Restart,
    /// How long open calls may go on when the client or the operator ends the session.
    pub drain: Duration,
    /// Whether a call that the client took back is answered. The protocol lets a server stay
    /// silent; an answer tells apart a call that was settled from one that was lost.
    pub answer_cancelled: bool,
    /// Whether the thread that listens to a server stays awake for a moment after
    /// an answer, if that pays.
    pub busy_poll: bool,
    /// Whether failures of `tools/call` are results that a model sees, and not JSON-RPC errors.
    pub failures_as_results: bool,
    /// Whether the contract's switch for stacks is on.
    pub show_stack: bool,
    /// What is masked before clients see it, beside what the contract masks (U2).
    pub masks: Masks,
    /// Facts of the session that only the operator knows: role and workspace.
    pub session: Session,
    /// Facts of the calls that only the operator knows: tool version and modes.
    pub meta: Meta,
}

/// How long answers may take.
#[derive(Clone, Debug)]
pub struct Deadlines {
    /// A request without a rule of its own. Progress restarts it.
    pub default: Duration,
    /// The most that progress can stretch it to.
    pub hard: Duration,
    /// The first request of a session: a server may have to be installed before it answers.
    pub start: Duration,
    /// Tools with a deadline of their own.
    pub tools: HashMap<String, Duration>,
    /// Methods whose answer is meant to stay out for as long as it likes.
    pub unbounded: Vec<String>,
}

/// What happens to arguments that do not fit the tool's schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arguments {
    /// They are not looked at.
    Off,
    /// They are sent, and the operator is told.
    Warn,
    /// They are refused.
    #[default]
    Enforce,
}

/// How much is taken.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest line, from either side.
    pub line_bytes: usize,
    /// The deepest message from the server.
    pub depth: usize,
    /// Calls that are open at once.
    pub in_flight: usize,
    /// What may wait for a server that does not read.
    pub backlog_bytes: usize,
}

/// Whether calls are sent again.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How often one call is sent again; 0 is never.
    pub times: u32,
    /// How many retries may be saved up. Every call earns a fifth of one.
    pub budget: u32,
}

/// How a server that ended is started again.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// How often in a row without serving a request.
    pub limit: u32,
    /// The wait before the second try.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Settings {
    /// The defaults under a contract.
    #[must_use]
    pub fn new(contract: Arc<Contract>) -> Self {
        Self {
            contract,
            profile: Profile::default(),
            deadlines: Deadlines::default(),
            arguments: Arguments::default(),
            output: Output::default(),
            soft_failures: SoftFailures::default(),
            limits: Limits::default(),
            retry: Retry::default(),
            restart: Restart::default(),
            drain: Duration::from_secs(10),
            answer_cancelled: true,
            busy_poll: true,
            failures_as_results: true,
            show_stack: false,
            masks: Masks::REMOTE,
            session: Session::default(),
            meta: Meta::default(),
        }
    }
}

impl Deadlines {
    /// How long an answer may take, and how long with progress.
    pub(crate) fn of(&self, method: &Method, tool: Option<&str>) -> (Option<Duration>, Duration) {
        let own = || tool.and_then(|tool| self.tools.get(tool).copied());
        let starts = |name: &str| name == wire::DISCOVER;
        let span = match method {
            Method::ToolsCall if self.tools.is_empty() => Some(self.default),
            Method::ToolsCall => Some(own().unwrap_or(self.default)),
            Method::Initialize => Some(self.start.max(self.default)),
            Method::Other(name) if starts(name) => Some(self.start.max(self.default)),
            Method::Other(name) if self.unbounded.iter().any(|m| **m == **name) => None,
            Method::Other(_) | Method::ToolsList { .. } => Some(self.default),
        };
        (span, self.hard.max(span.unwrap_or_default()))
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            default: Duration::from_mins(1),
            hard: Duration::from_mins(10),
            start: Duration::from_mins(1),
            tools: HashMap::new(),
            unbounded: [wire::LISTEN, "tasks/result"].map(str::to_owned).to_vec(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 32 * 1024 * 1024,
            depth: 128,
            in_flight: 1024,
            backlog_bytes: 64 * 1024 * 1024,
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { times: 0, budget: 10 }
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self { limit: 5, base: Duration::from_millis(200), cap: Duration::from_secs(30) }
    }
}
