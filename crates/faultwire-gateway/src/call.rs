//! An open call. It ends once: as a success, or through the door. Dropped without either, it is
//! a fault of our own, so that silence cannot happen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use faultwire_contract::{Answers, Condition, Outcome};

use crate::door::{Door, Failing};
use crate::request::Story;
use crate::wire;

/// A request of the client that has no answer yet.
#[must_use = "a call that is dropped is answered with a fault of our own"]
pub(crate) struct Call {
    /// The id, as it was written.
    pub id: Box<str>,
    /// The request, as it came.
    pub line: Box<[u8]>,
    pub method: Method,
    pub tool: Option<Box<str>>,
    pub since: Instant,
    /// How long it may take from the last progress on.
    pub span: Option<Duration>,
    pub deadline: Option<Instant>,
    /// What no progress can stretch.
    pub hard: Option<Instant>,
    /// Which try it is, from 1.
    pub attempt: u32,
    pub stage: Stage,
    door: Option<Arc<Door>>,
}

/// Which requests are treated in a way of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Initialize,
    ToolsCall,
    ToolsList { first_page: bool },
    Other(Box<str>),
}

/// How far the request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for the tool list, or for the server to be started again.
    Held,
    /// It stands in the server's input from this byte on.
    Sent { at: u64 },
    /// It failed, and is sent again then.
    Again(Instant),
}

impl Method {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Initialize => wire::INITIALIZE,
            Self::ToolsCall => wire::TOOLS_CALL,
            Self::ToolsList { .. } => wire::TOOLS_LIST,
            Self::Other(name) => name,
        }
    }

    pub(crate) fn answers(&self) -> Answers {
        match self {
            Self::ToolsCall => Answers::ToolCall,
            Self::Other(name) if **name == *"tasks/result" => Answers::ToolCall,
            _ => Answers::Other,
        }
    }
}

impl Call {
    pub(crate) fn new(
        door: &Arc<Door>,
        id: &str,
        line: &[u8],
        method: Method,
        tool: Option<&str>,
        now: Instant,
    ) -> Self {
        let (span, hard) = door.deadline_of(&method, tool);
        Self {
            id: id.into(),
            line: line.into(),
            method,
            tool: tool.map(Into::into),
            since: now,
            span,
            deadline: span.map(|span| now + span.min(hard)),
            hard: span.map(|_| now + hard),
            attempt: 1,
            stage: Stage::Held,
            door: Some(Arc::clone(door)),
        }
    }

    /// It went well, or its answer is on its way already.
    pub(crate) fn end(mut self) {
        self.door = None;
    }

    /// It failed. The door records that, and answers.
    pub(crate) fn fail(mut self, failing: Failing) {
        if let Some(door) = self.door.take() {
            door.fail(&self, failing);
        }
    }

    /// Something was heard of it.
    pub(crate) fn progress(&mut self, now: Instant) {
        if let (Some(span), Some(hard)) = (self.span, self.hard) {
            self.deadline = Some((now + span).min(hard));
        }
    }

    /// How far it surely got, if the server took `written` bytes.
    pub(crate) fn outcome(&self, written: u64) -> Outcome {
        match self.stage {
            Stage::Sent { at } if at < written => Outcome::MaybeExecuted,
            _ => Outcome::NotSent,
        }
    }

    pub(crate) fn story(&self) -> Story {
        Story::of(&self.line)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(door) = self.door.take() {
            let lost = Failing::observed(&door.settings().contract, Condition::Internal);
            door.fail(self, lost.saying("The call was lost inside the gateway"));
        }
    }
}
