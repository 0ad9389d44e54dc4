//! The index: what makes questions to a large log quick. It is derived from the log, can be
//! deleted at any time, and never answers by itself: what it finds is read from the log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::audit::error::within;
use crate::audit::filter::Filter;
use crate::audit::hash::Hash;
use crate::audit::lines::{Lines, Shape};
use crate::audit::read::Summary;
use crate::audit::segment::{self, INDEX, LIVE};
use crate::audit::segments;
use crate::audit::storage::Disk;

/// An index that is up to date.
pub struct Index {
    dir: PathBuf,
    database: Connection,
    skipped: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The log cannot be read.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The index cannot be used.
    #[error("{}: {error}", .path.display())]
    Database {
        /// The index.
        path: PathBuf,
        /// What is wrong.
        #[source]
        error: rusqlite::Error,
    },
}

impl IndexError {
    fn is_busy(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
        let Self::Database { error, .. } = self else { return false };
        matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
    }
}

/// A change to the tables is a new number, and older indexes are built anew.
const VERSION: i64 = 1;

/// What is derived needs no syncs, and is read where it lies.
const SETTINGS: &str = "
    PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA mmap_size = 1073741824;";

const TABLES: &str = "
    CREATE TABLE record (
        seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, kind TEXT NOT NULL, code TEXT, client TEXT,
        tool TEXT, origin TEXT, outcome TEXT, incident TEXT,
        segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL
    );
    CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        segment INTEGER NOT NULL, next INTEGER NOT NULL, last INTEGER NOT NULL, hash TEXT NOT NULL
    );
    CREATE TABLE segment (number INTEGER PRIMARY KEY, touched INTEGER NOT NULL);";

const INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS by_code ON record (code, seq);
    CREATE INDEX IF NOT EXISTS by_client ON record (client, seq);
    CREATE INDEX IF NOT EXISTS by_tool ON record (tool, seq);
    CREATE INDEX IF NOT EXISTS by_incident ON record (incident, seq);";

impl Index {
    /// Opens the index of a log and brings it up to date; one that does not fit the log is built
    /// anew. Where no file can be written it is held in memory. `progress` is told how many bytes
    /// of the log were read.
    pub fn open(dir: &Path, progress: &mut dyn FnMut(u64)) -> Result<Self, IndexError> {
        let path = dir.join(INDEX);
        let mut last = None;
        let mut busy = false;
        for place in [Place::Kept, Place::Anew, Place::Memory] {
            if busy && matches!(place, Place::Anew) {
                continue;
            }
            let opened = place.open(&path).map_err(database_error(dir));
            let updated = opened.and_then(|database| {
                let mut index = Self { dir: dir.to_owned(), database, skipped: 0 };
                index.update(progress).map(|()| index)
            });
            match updated {
                // Somebody else is at it: what is theirs is left alone.
                Err(error) if error.is_busy() && !matches!(place, Place::Memory) => busy = true,
                Err(error @ IndexError::Database { .. }) => last = Some(error),
                other => return other,
            }
        }
        let never = || database_error(dir)(rusqlite::Error::InvalidQuery);
        Err(last.unwrap_or_else(never))
    }

    /// How many lines were passed over since they are no records.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many records fit, counted up to `most`.
    pub fn count(&self, filter: &Filter, most: u64) -> Result<u64, IndexError> {
        let (condition, values) = filter.sql();
        let query =
            format!("SELECT count(*) FROM (SELECT 1 FROM record WHERE {condition} LIMIT {most})");
        let counted =
            self.database.query_row(&query, params_from_iter(values), |row| row.get::<_, i64>(0));
        counted.map(i64::cast_unsigned).map_err(database_error(&self.dir))
    }

    /// Calls `each` with the line of every record that fits, the newest first, at most `limit`.
    pub fn find<E: From<IndexError>>(
        &self,
        filter: &Filter,
        limit: Option<u64>,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (condition, values) = filter.sql();
        let limit = limit.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let query = format!(
            "SELECT segment, offset, length FROM record WHERE {condition} ORDER BY seq DESC LIMIT {limit}"
        );
        let failed = |error| E::from(database_error(&self.dir)(error));
        let mut statement = self.database.prepare(&query).map_err(failed)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
        let mut open: Option<(i64, File)> = None;
        while let Some(row) = rows.next().map_err(failed)? {
            let read = || Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
            let (segment, offset, length) = read().map_err(failed)?;
            if open.as_ref().is_none_or(|(number, _)| *number != segment) {
                open = Some((segment, self.segment(segment.cast_unsigned())?.0));
            }
            let Some((_, file)) = &open else { continue };
            let line = line_at(file, offset.cast_unsigned(), length.cast_unsigned());
            each(&line.map_err(self.io_error(LIVE))?)?;
        }
        Ok(())
    }

    fn update(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), IndexError> {
        let present = segments::present(&Disk::new(&self.dir)).map_err(self.io_error(""))?;
        let mut at = self.position()?;
        if let Some(known) = &at
            && (!self.still_there(known) || self.is_touched(&present)?)
        {
            let all = "DELETE FROM record; DELETE FROM state; DELETE FROM segment;";
            self.database.execute_batch(all).map_err(database_error(&self.dir))?;
            at = None;
        }
        let Some(&first) = present.first() else { return Ok(()) };
        let mut at =
            at.unwrap_or(Position { segment: first, next: 0, last: 0, hash: String::new() });
        let failed = database_error(&self.dir);
        self.database.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        loop {
            let live = self.take_segment(&mut at, progress)?;
            let next = present.iter().copied().find(|number| *number > at.segment);
            // What comes while this is done is for the next time.
            let Some(next) = next.filter(|_| !live) else { break };
            at = Position { segment: next, next: 0, last: 0, hash: String::new() };
        }
        self.database
            .execute(
                "INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?)",
                params![
                    at.segment.cast_signed(),
                    at.next.cast_signed(),
                    at.last.cast_signed(),
                    at.hash
                ],
            )
            .and_then(|_| self.database.execute_batch("COMMIT"))
            .and_then(|()| self.database.execute_batch(INDEXES))
            .map_err(database_error(&self.dir))
    }

    /// Takes up the lines of a segment from the position on. Tells whether it is the live one.
    fn take_segment(
        &mut self,
        at: &mut Position,
        progress: &mut dyn FnMut(u64),
    ) -> Result<bool, IndexError> {
        let (mut file, live) = self.segment(at.segment)?;
        let touched = touched(&file);
        file.seek(SeekFrom::Start(at.next)).map_err(self.io_error(LIVE))?;
        let mut lines = Lines::starting_at(file, at.next);
        let mut skipped = 0;
        let insert = "INSERT OR REPLACE INTO record VALUES (?,?,?,?,?,?,?,?,?,?,?,?)";
        let mut insert = self.database.prepare(insert).map_err(database_error(&self.dir))?;
        while let Some(line) = lines.next_line().map_err(self.io_error(LIVE))? {
            match line.shape {
                Shape::Unfinished => break,
                Shape::TooLong => {
                    skipped += 1;
                    continue;
                }
                Shape::Whole => {}
            }
            let length = line.raw.len() as u64;
            (at.last, at.next) = (line.offset, line.offset + length + 1);
            at.hash = Hash::line(line.raw).to_string();
            progress(length + 1);
            let Ok(summary) = Summary::read(line.raw) else {
                skipped += 1;
                continue;
            };
            let ts = summary.ts.parse().map_or(0, Timestamp::as_millisecond);
            insert
                .execute(params![
                    summary.seq.cast_signed(),
                    ts,
                    summary.kind,
                    summary.code(),
                    summary.client(),
                    summary.tool(),
                    summary.origin(),
                    summary.outcome(),
                    summary.incident(),
                    at.segment.cast_signed(),
                    line.offset.cast_signed(),
                    length.cast_signed(),
                ])
                .map_err(database_error(&self.dir))?;
        }
        drop(insert);
        self.skipped += skipped;
        if !live {
            self.database
                .execute(
                    "INSERT OR REPLACE INTO segment VALUES (?, ?)",
                    params![at.segment.cast_signed(), touched],
                )
                .map_err(database_error(&self.dir))?;
        }
        Ok(live)
    }

    fn position(&self) -> Result<Option<Position>, IndexError> {
        let query = "SELECT segment, next, last, hash FROM state";
        let read = self.database.query_row(query, [], |row| {
            let number = |i| row.get::<_, i64>(i).map(i64::cast_unsigned);
            Ok(Position {
                segment: number(0)?,
                next: number(1)?,
                last: number(2)?,
                hash: row.get(3)?,
            })
        });
        read.optional().map_err(database_error(&self.dir))
    }

    /// Whether a full segment was changed or taken away since it was taken up.
    fn is_touched(&self, present: &[u64]) -> Result<bool, IndexError> {
        let failed = || database_error(&self.dir);
        let mut known =
            self.database.prepare("SELECT number, touched FROM segment").map_err(failed())?;
        let mut rows = known.query([]).map_err(failed())?;
        while let Some(row) = rows.next().map_err(failed())? {
            let read = || Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            let (number, then) = read().map_err(failed())?;
            let there = present.contains(&number.cast_unsigned());
            if !there || touched(&self.segment(number.cast_unsigned())?.0) != then {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the line that was taken up last is still where it was.
    fn still_there(&self, at: &Position) -> bool {
        if at.next == 0 {
            return true;
        }
        let Ok((file, _)) = self.segment(at.segment) else { return false };
        let length = at.next.saturating_sub(at.last + 1);
        let line = line_at(&file, at.last, length);
        line.is_ok_and(|line| Hash::line(&line).to_string() == at.hash)
    }

    /// The segment's file, and whether it is the live one. It may get its other name between two
    /// looks.
    fn segment(&self, number: u64) -> Result<(File, bool), IndexError> {
        let disk = Disk::new(&self.dir);
        for _ in 0..8 {
            match File::open(self.dir.join(segment::full(number))) {
                Ok(file) => return Ok((file, false)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(self.io_error(&segment::full(number))(e)),
            }
            let file = File::open(self.dir.join(LIVE)).map_err(self.io_error(LIVE))?;
            let live = segments::live_number(&disk).map_err(self.io_error(LIVE))?;
            if live.is_none_or(|live| live == number) {
                return Ok((file, true));
            }
        }
        Err(self.io_error(&segment::full(number))(io::ErrorKind::NotFound.into()))
    }

    fn io_error(&self, name: &str) -> impl FnOnce(io::Error) -> IndexError + use<> {
        let path = within(&self.dir, name);
        move |error| IndexError::Io { path, error }
    }
}

/// When the file was last written to.
fn touched(file: &File) -> i64 {
    let modified = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn line_at(mut file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(length).read_to_end(&mut line)?;
    Ok(line)
}

/// How far the log was taken up: the segment, where its next line begins, where its last one
/// does, and that one's hash.
struct Position {
    segment: u64,
    next: u64,
    last: u64,
    hash: String,
}

/// Where an index is: the next is tried when one cannot be used.
enum Place {
    Kept,
    Anew,
    Memory,
}

impl Place {
    /// Opens it, with the tables in it.
    fn open(&self, path: &Path) -> Result<Connection, rusqlite::Error> {
        let database = match self {
            Self::Kept => Connection::open(path)?,
            Self::Anew => {
                let _ = std::fs::remove_file(path);
                Connection::open(path)?
            }
            Self::Memory => Connection::open_in_memory()?,
        };
        database.busy_timeout(Duration::from_secs(3))?;
        database.execute_batch(SETTINGS)?;
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let tables = "SELECT count(*) FROM sqlite_master";
        let tables: i64 = database.query_row(tables, [], |row| row.get(0))?;
        match (version, tables) {
            (VERSION, _) => Ok(database),
            (0, 0) => {
                let begin = format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION};");
                database.execute_batch(&(begin + "COMMIT;"))?;
                Ok(database)
            }
            // Another version, or somebody else's.
            _ => Err(rusqlite::Error::InvalidQuery),
        }
    }
}

fn database_error(dir: &Path) -> impl FnOnce(rusqlite::Error) -> IndexError + use<> {
    let path = dir.join(INDEX);
    move |error| IndexError::Database { path, error }
}
