//! Sessions that have to be begun first, and that lock (K12): the contract has the rules, the
//! party how its session stands.

use faultwire_contract::{Condition, Outcome, Safety, SessionCall, SessionRules};
use serde_json::Value;

use crate::call::Call;
use crate::failing::Failing;
use crate::link::Link;
use crate::party::Party;
use crate::tools::Tool;

impl Link {
    /// What is against a call as the session stands, if something is.
    pub(crate) fn out_of_turn(
        &self,
        party: &Party,
        name: &str,
        tool: Option<&Tool>,
        arguments: Option<&str>,
    ) -> Option<Failing> {
        let rules = self.rules(party)?;
        let arguments: Option<Value> = arguments.and_then(|raw| serde_json::from_str(raw).ok());
        let workspace_root = party.session().workspace_root.clone();
        let call = SessionCall {
            tool: name,
            arguments: arguments.as_ref(),
            read_only: tool.is_some_and(|tool| tool.facts.safety == Safety::ReadOnly),
            workspace_root: workspace_root.as_deref(),
        };
        let condition = rules.judge(*party.standing(), &call).err()?;
        let message = match condition {
            Condition::NotReady => format!("No session was begun; call {} first", rules.begin),
            _ => "The session is locked after a failure; end it, or begin anew".to_owned(),
        };
        let mut failing = Failing::observed(party.contract(), condition);
        if condition == Condition::NotReady {
            // What comes before a session belongs to none.
            let session = &mut failing.report.session;
            (session.id, session.workspace_root) = (Some(String::new()), Some(String::new()));
        }
        Some(failing.saying(message).outcome(Outcome::NotSent))
    }

    /// A call went well.
    pub(crate) fn turn_over(&self, call: &Call) {
        let (Some(party), Some(tool)) = (call.party(), call.tool()) else { return };
        if let Some(rules) = self.rules(party) {
            let mut standing = party.standing();
            *standing = rules.after_success(*standing, tool);
        }
    }

    /// A call failed.
    pub(crate) fn turn_lost(&self, call: &Call, code: &str) {
        let Some(party) = call.party() else { return };
        if let (Some(rules), Some(code)) = (self.rules(party), party.contract().code(code)) {
            let mut standing = party.standing();
            *standing = rules.after_failure(*standing, code);
        }
    }

    /// The rules, where the server has such sessions.
    fn rules<'p>(&self, party: &'p Party) -> Option<&'p SessionRules> {
        let rules = party.settings.contract.session.as_ref()?;
        self.tools().get(&rules.begin).is_some().then_some(rules)
    }
}
