//! What was posted, in a database.

use std::path::Path;

use faultwire::Failure;
use faultwire::tuitbot as errors;
use rusqlite::Connection;

use crate::policy::Deciding;

pub struct Posts(Connection);

impl Posts {
    pub fn open(path: &Path) -> Result<Self, Failure<Deciding>> {
        let table = "CREATE TABLE IF NOT EXISTS posts (id TEXT, text TEXT, at INTEGER)";
        let opened = Connection::open(path).and_then(|posts| {
            posts.execute(table, ())?;
            Ok(Self(posts))
        });
        opened.map_err(|e| failed(&e))
    }

    pub fn add(&self, id: &str, text: &str) -> Result<(), Failure<Deciding>> {
        let insert = "INSERT INTO posts VALUES (?, ?, unixepoch())";
        self.0.execute(insert, (id, text)).map(|_| ()).map_err(|e| failed(&e))
    }

    pub fn of_the_last_hour(&self) -> Result<usize, Failure<Deciding>> {
        let count = "SELECT count(*) FROM posts WHERE at > unixepoch() - 3600";
        let count = self.0.query_row(count, (), |row| row.get::<_, u32>(0));
        count.map(|count| count as usize).map_err(|e| failed(&e))
    }
}

fn failed(error: &rusqlite::Error) -> Failure<Deciding> {
    errors::db_error().cause(error).into()
}
