//! The operator's rules: a file that is read at each call, so that a change takes effect at once.

use std::io::ErrorKind;
use std::path::Path;

use faultwire::Failure;
use faultwire::tuitbot as errors;
use serde::Deserialize;

faultwire::codes! {
    /// What deciding may end in. What was posted before is looked up in a database.
    pub Deciding of errors {
        DbError, PolicyDeniedBlocked, PolicyDeniedHardRule, PolicyDeniedRateLimited,
        PolicyDeniedUserRule, PolicyError,
    }
}

/// Nobody can switch this off.
const MOST_MENTIONS: usize = 5;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Tools that nobody may use.
    blocked: Vec<String>,
    /// Tools that a person has to approve.
    approve: Vec<String>,
    /// Words that the user does not want to see.
    words: Vec<String>,
    /// How many tweets there may be in an hour.
    hourly: Option<usize>,
}

impl Policy {
    /// The rules of a file; none without one.
    pub fn read(path: &Path) -> Result<Self, Failure<Deciding>> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(errors::policy_error().cause(&error).into()),
        };
        Ok(serde_json::from_slice(&text).map_err(|error| errors::policy_error().cause(&error))?)
    }

    /// Whether a person is asked for anything.
    pub fn asks(&self) -> bool {
        !self.approve.is_empty()
    }

    /// How many tweets there may be in an hour.
    pub fn most_an_hour(&self) -> usize {
        self.hourly.unwrap_or(usize::MAX)
    }

    pub fn allows(&self, tool: &str, text: &str) -> Result<(), Failure<Deciding>> {
        let names = |list: &[String]| list.iter().any(|name| name == tool);
        if text.matches('@').count() > MOST_MENTIONS {
            let what = format!("More than {MOST_MENTIONS} mentions are spam");
            let denied = errors::policy_denied_hard_rule().message(what);
            return Err(denied.policy_decision("denied").into());
        }
        if names(&self.blocked) {
            return Err(errors::policy_denied_blocked().policy_decision("denied").into());
        }
        if names(&self.approve) {
            let routed = errors::policy_denied_blocked().message("A person has to approve it");
            return Err(routed.policy_decision("routed_to_approval").into());
        }
        let lower = text.to_lowercase();
        if let Some(word) = self.words.iter().find(|word| lower.contains(&word.to_lowercase())) {
            let denied = errors::policy_denied_user_rule().message(format!("No {word} here"));
            return Err(denied.policy_decision("denied").into());
        }
        Ok(())
    }
}
