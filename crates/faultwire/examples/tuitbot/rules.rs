//! The operator's rules, in a file that is read at each call, and what was posted, in a database.

use std::io::ErrorKind;
use std::path::Path;

use faultwire::Failure;
use faultwire::tuitbot as errors;
use rusqlite::{Connection, TransactionBehavior};
use serde::Deserialize;

faultwire::codes! {
    /// What deciding may end in.
    pub Deciding of errors {
        DbError, PolicyDeniedBlocked, PolicyDeniedHardRule, PolicyDeniedRateLimited,
        PolicyDeniedUserRule, PolicyError,
    }
}

const MOST_MENTIONS: usize = 5; // Nobody can switch this off.

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Tools that are forbidden.
    blocked: Vec<String>,
    /// Tools that a person has to approve.
    pub approve: Vec<String>,
    /// Words that the user does not want to see.
    words: Vec<String>,
    /// How many tweets there may be in an hour.
    hourly: Option<usize>,
}

impl Rules {
    /// The rules of a file; none without one.
    pub fn read(path: &Path) -> Result<Self, Failure<Deciding>> {
        let rules = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            text => text.and_then(|text| Ok(serde_json::from_slice(&text)?)),
        };
        Ok(rules.map_err(|error| errors::policy_error().cause(&error))?)
    }

    pub fn allow(&self, tool: &str, texts: &[String]) -> Result<(), Failure<Deciding>> {
        let names = |list: &[String]| list.iter().any(|name| name == tool);
        let text = texts.join("\n").to_lowercase();
        Err(if text.matches('@').count() > MOST_MENTIONS {
            errors::policy_denied_hard_rule().policy_decision("denied").into()
        } else if names(&self.blocked) {
            errors::policy_denied_blocked().policy_decision("denied").into()
        } else if names(&self.approve) {
            errors::policy_denied_blocked().policy_decision("routed_to_approval").into()
        } else if self.words.iter().any(|word| text.contains(&word.to_lowercase())) {
            errors::policy_denied_user_rule().policy_decision("denied").into()
        } else {
            return Ok(());
        })
    }

    /// Records what will be posted, unless it exceeds the hourly limit.
    pub fn reserve(&self, posts: &Path, texts: &[String]) -> Result<(), Failure<Deciding>> {
        match self.write_down(posts, texts) {
            Ok(true) => Ok(()),
            Ok(false) => Err(errors::policy_denied_rate_limited().policy_decision("denied").into()),
            Err(error) => Err(errors::db_error().cause(&error).into()),
        }
    }

    fn write_down(&self, posts: &Path, texts: &[String]) -> rusqlite::Result<bool> {
        let mut posts = Connection::open(posts)?;
        posts.execute("CREATE TABLE IF NOT EXISTS tweets (text TEXT, at INTEGER)", ())?;
        let all = posts.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let count = "SELECT count(*) FROM tweets WHERE at > unixepoch() - 3600";
        let count = all.query_row(count, (), |row| row.get::<_, u32>(0))? as usize;
        if self.hourly.is_some_and(|most| count + texts.len() > most) {
            return Ok(false);
        }
        for text in texts {
            all.execute("INSERT INTO tweets VALUES (?, unixepoch())", (text,))?;
        }
        all.commit().map(|()| true)
    }
}
