//! What was posted, in a database.

use std::path::Path;

use faultwire::Failure;
use faultwire::tuitbot as errors;
use rusqlite::{Connection, TransactionBehavior};

use crate::policy::Deciding;

pub struct Posts(Connection);

impl Posts {
    pub fn open(path: &Path) -> Result<Self, Failure<Deciding>> {
        let table = "CREATE TABLE IF NOT EXISTS tweets (text TEXT, at INTEGER)";
        let opened = Connection::open(path).and_then(|posts| {
            posts.execute(table, ())?;
            Ok(Self(posts))
        });
        opened.map_err(|e| failed(&e))
    }

    /// Writes down what is about to be posted, unless there would be more than that in an hour.
    /// Nothing that is out can fail to be written down any more.
    pub fn reserve(&mut self, texts: &[String], most: usize) -> Result<(), Failure<Deciding>> {
        let mut reserve = || {
            let all = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let count = "SELECT count(*) FROM tweets WHERE at > unixepoch() - 3600";
            let count = all.query_row(count, (), |row| row.get::<_, u32>(0))? as usize;
            for text in texts {
                all.execute("INSERT INTO tweets VALUES (?, unixepoch())", (text,))?;
            }
            let fits = count + texts.len() <= most;
            if fits { all.commit().map(|()| fits) } else { Ok(fits) }
        };
        match reserve() {
            Ok(true) => Ok(()),
            Ok(false) => {
                let what = format!("More than {most} tweets in an hour are not wanted");
                let denied = errors::policy_denied_rate_limited().message(what);
                Err(denied.policy_decision("denied").into())
            }
            Err(error) => Err(failed(&error)),
        }
    }
}

fn failed(error: &rusqlite::Error) -> Failure<Deciding> {
    errors::db_error().cause(error).into()
}
