//! Sessions that must be begun and can lock (K12), if the contract has rules for them and the
//! server has the tool that begins one.

use std::sync::PoisonError;

use faultwire_contract::{Condition, Outcome, SessionCall, SessionRules, SessionState};
use rmcp::ServerHandler;
use rmcp::model::Tool;

use crate::boundary::Boundary;
use crate::boundary::answer::{Asked, FailedCall};
use crate::typed::TypedCode;
use crate::watch::observed;

/// The state of a session.
#[derive(Default)]
pub(super) struct Standing {
    state: SessionState,
    /// How many were begun.
    begun: u64,
}

impl<C: TypedCode, H: ServerHandler> Boundary<C, H> {
    /// Why the session's state does not allow a call, if it does not.
    pub(super) fn out_of_turn(&self, asked: &Asked, tool: &Tool) -> Option<FailedCall> {
        let rules = self.rules()?;
        let hints = tool.annotations.as_ref();
        let root = self.known_session().workspace_root;
        let call = SessionCall {
            tool: &tool.name,
            arguments: asked.arguments.as_ref(),
            read_only: hints.is_some_and(|hints| hints.read_only_hint == Some(true)),
            workspace_root: root.as_deref(),
        };
        let condition = rules.judge(self.standing(|standing| standing.state), &call).err()?;
        let message = match condition {
            Condition::NotReady => format!("There is no session; call {} first", rules.begin),
            _ => "The session is locked after a failure; end it or begin a new one".to_owned(),
        };
        let mut report = observed::<C>(condition, &message);
        report.outcome = Some(Outcome::NotSent);
        Some(report.into())
    }

    /// A call went well.
    pub(super) fn turn_over(&self, asked: &Asked) {
        if let (Some(rules), Some(tool)) = (self.rules(), &asked.tool) {
            self.standing(|standing| {
                standing.state = rules.after_success(standing.state, tool);
                standing.begun += u64::from(*tool == rules.begin);
            });
        }
    }

    /// A call failed with this code. One of a session that is over locks no other.
    pub(super) fn turn_lost(&self, asked: &Asked, code: &str) {
        if let (Some(rules), Some(code)) = (self.rules(), C::contract().code(code)) {
            self.standing(|standing| {
                if asked.turn == standing.begun {
                    standing.state = rules.after_failure(standing.state, code);
                }
            });
        }
    }

    /// How many sessions were begun.
    pub(super) fn turn(&self) -> u64 {
        self.standing(|standing| standing.begun)
    }

    fn rules(&self) -> Option<&'static SessionRules> {
        let rules = C::contract().session.as_ref()?;
        self.inner.get_tool(&rules.begin).is_some().then_some(rules)
    }

    fn standing<T>(&self, look: impl FnOnce(&mut Standing) -> T) -> T {
        look(&mut self.standing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
