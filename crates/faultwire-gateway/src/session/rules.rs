//! Sessions that have to be begun first, and that lock (K12): the contract has the rules, the
//! client how its session stands.

use faultwire_contract::{Condition, Outcome, Safety, SessionCall, SessionRules};
use serde_json::Value;

use super::Session;
use super::inbound::Request;
use crate::call::{Call, ClientContext};
use crate::failing::CallFailure;

impl Session {
    /// What is against a call as the client's session stands.
    pub(super) fn rules_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let client = request.call.client()?;
        let rules = self.rules(client)?;
        let arguments = request.arguments.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
        let workspace_root = client.session().workspace_root.clone();
        let call = SessionCall {
            tool: request.call.tool()?,
            arguments: arguments.as_ref(),
            read_only: request.tool.is_some_and(|tool| tool.facts.safety == Safety::ReadOnly),
            workspace_root: workspace_root.as_deref(),
        };
        let condition = rules.judge(*client.standing(), &call).err()?;
        let message = match condition {
            Condition::NotReady => format!("There is no session; call {} first", rules.begin),
            _ => "The session is locked after a failure; end it or begin a new one".to_owned(),
        };
        let mut failure = CallFailure::observed(client.contract(), condition);
        if condition == Condition::NotReady {
            // What comes before a session belongs to none.
            let session = &mut failure.report.session;
            (session.id, session.workspace_root) = (Some(String::new()), Some(String::new()));
        }
        Some(failure.saying(message).outcome(Outcome::NotSent))
    }

    /// A call of a tool succeeded.
    pub(super) fn note_success(&self, call: &Call) {
        let (Some(client), Some(tool)) = (call.client(), call.tool()) else { return };
        if let Some(rules) = self.rules(client) {
            let mut standing = client.standing();
            *standing = rules.after_success(*standing, tool);
        }
    }

    /// A call failed.
    pub(crate) fn note_failure(&self, call: &Call, code: &str) {
        let Some(client) = call.client() else { return };
        if let (Some(rules), Some(code)) = (self.rules(client), client.contract().code(code)) {
            let mut standing = client.standing();
            *standing = rules.after_failure(*standing, code);
        }
    }

    /// The rules, where the server has such sessions.
    fn rules<'c>(&self, client: &'c ClientContext) -> Option<&'c SessionRules> {
        let rules = client.settings.contract.session.as_ref()?;
        self.tools.get(&rules.begin).is_some().then_some(rules)
    }
}
