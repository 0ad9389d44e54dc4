//! Sessions that have to be begun first, and that lock (K12), where the contract has rules for them
//! and the server the tool that begins one.

use std::sync::PoisonError;

use faultwire_contract::{Code, Condition, Outcome, SessionCall, SessionRules, SessionState};
use rmcp::ServerHandler;
use rmcp::model::Tool;

use crate::boundary::Boundary;
use crate::boundary::answer::{Asked, Failed};
use crate::typed::TypedCode;
use crate::watch::observed;

impl<C: TypedCode, H: ServerHandler> Boundary<C, H> {
    /// What is against a call as the session stands, if something is.
    pub(super) fn out_of_turn(&self, asked: &Asked, tool: &Tool) -> Option<Failed> {
        let rules = self.rules()?;
        let hints = tool.annotations.as_ref();
        let root = self.known_session().workspace_root;
        let call = SessionCall {
            tool: &tool.name,
            arguments: asked.arguments.as_ref(),
            read_only: hints.is_some_and(|hints| hints.read_only_hint == Some(true)),
            workspace_root: root.as_deref(),
        };
        let condition = rules.judge(self.standing(|standing| *standing), &call).err()?;
        let message = match condition {
            Condition::NotReady => format!("No session was begun; call {} first", rules.begin),
            _ => "The session is locked after a failure; end it, or begin anew".to_owned(),
        };
        let mut report = observed::<C>(condition, &message);
        report.outcome = Some(Outcome::NotSent);
        Some(report.into())
    }

    /// A call went well.
    pub(super) fn turn_over(&self, asked: &Asked) {
        if let (Some(rules), Some(tool)) = (self.rules(), &asked.tool) {
            self.standing(|standing| *standing = rules.after_success(*standing, tool));
        }
    }

    /// A call failed with this code.
    pub(super) fn turn_lost(&self, code: &Code) {
        if let Some(rules) = self.rules() {
            self.standing(|standing| *standing = rules.after_failure(*standing, code));
        }
    }

    fn rules(&self) -> Option<&'static SessionRules> {
        let rules = C::contract().session.as_ref()?;
        self.inner.get_tool(&rules.begin).is_some().then_some(rules)
    }

    fn standing<T>(&self, look: impl FnOnce(&mut SessionState) -> T) -> T {
        look(&mut self.standing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
