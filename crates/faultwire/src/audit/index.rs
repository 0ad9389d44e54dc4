//! The index, which makes queries of a large log fast. It is derived from the log and can be
//! deleted at any time. Query results are always read from the log itself.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params, params_from_iter};
use serde::de::IgnoredAny;

use crate::audit::chain::Chain;
use crate::audit::check::Wrong;
use crate::audit::error::within;
use crate::audit::filter::Filter;
use crate::audit::hash::Hash;
use crate::audit::lines::Line;
use crate::audit::read::Summary;
use crate::audit::reader::{Extent, Reader};
use crate::audit::segment::{self, INDEX, LIVE};
use crate::audit::segments;
use crate::audit::storage::{Disk, open_regular, open_to_update};
use crate::audit::verify::Finding;

/// An index that is up to date.
pub struct Index {
    dir: PathBuf,
    database: Connection,
}

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The log cannot be read.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The log does not hold.
    #[error("{0}")]
    Broken(Box<Finding>),
    /// A record changed after it was indexed.
    #[error("{}: record {seq} was changed", .path.display())]
    Changed {
        /// The segment.
        path: PathBuf,
        /// The record.
        seq: u64,
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

/// A change to the tables needs a new number; older indexes are rebuilt.
const VERSION: i64 = 2;

/// Derived data needs no syncs, and can be read with mmap.
const SETTINGS: &str = "
    PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA mmap_size = 1073741824;";

const TABLES: &str = "
    CREATE TABLE record (
        seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, kind TEXT NOT NULL, code TEXT, client TEXT,
        tool TEXT, origin TEXT, outcome TEXT, incident TEXT,
        segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
        hash BLOB NOT NULL
    );
    CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        segment INTEGER NOT NULL, next INTEGER NOT NULL, last INTEGER NOT NULL, hash TEXT NOT NULL,
        log TEXT NOT NULL, chain TEXT NOT NULL
    );
    CREATE TABLE segment (number INTEGER PRIMARY KEY, touched TEXT NOT NULL);";

const INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS by_code ON record (code, seq);
    CREATE INDEX IF NOT EXISTS by_client ON record (client, seq);
    CREATE INDEX IF NOT EXISTS by_tool ON record (tool, seq);
    CREATE INDEX IF NOT EXISTS by_incident ON record (incident, seq);";

impl Index {
    /// Opens the index of a log and updates it. An index that does not match the log is rebuilt. If
    /// no file can be written, the index is kept in memory. `progress` gets the number of bytes
    /// that were read.
    pub fn open(dir: &Path, progress: &mut dyn FnMut(u64)) -> Result<Self, IndexError> {
        let path = dir.join(INDEX);
        let mut last = None;
        let mut busy = false;
        for place in [IndexLocation::Kept, IndexLocation::Fresh, IndexLocation::Memory] {
            if busy && matches!(place, IndexLocation::Fresh) {
                continue;
            }
            let opened = place.open(&path).map_err(database_error(dir));
            let updated = opened.and_then(|database| {
                let mut index = Self { dir: dir.to_owned(), database };
                index.update(progress).map(|()| index)
            });
            match updated {
                // The kept index may be wrong even if the log is not.
                Err(error @ IndexError::Broken(_)) if matches!(place, IndexLocation::Kept) => {
                    last = Some(error);
                }
                // Another process is using the file, so it is not replaced.
                Err(error) if error.is_busy() && !matches!(place, IndexLocation::Memory) => {
                    busy = true;
                }
                Err(error @ IndexError::Database { .. }) => last = Some(error),
                other => return other,
            }
        }
        let never = || database_error(dir)(rusqlite::Error::InvalidQuery);
        Err(last.unwrap_or_else(never))
    }

    /// How many records match, counted up to `most`.
    pub fn count(&self, filter: &Filter, most: u64) -> Result<u64, IndexError> {
        let (condition, values) = filter.sql();
        let query =
            format!("SELECT count(*) FROM (SELECT 1 FROM record WHERE {condition} LIMIT {most})");
        let counted =
            self.database.query_row(&query, params_from_iter(values), |row| row.get::<_, i64>(0));
        counted.map(i64::cast_unsigned).map_err(database_error(&self.dir))
    }

    /// Calls `each` with the line of every matching record, the newest first, at most `limit`.
    pub fn find<E: From<IndexError>>(
        &self,
        filter: &Filter,
        limit: Option<u64>,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (condition, values) = filter.sql();
        let limit = limit.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let query = format!(
            "SELECT segment, offset, length, seq, hash FROM record WHERE {condition} ORDER BY seq DESC LIMIT {limit}"
        );
        let failed = |error| E::from(database_error(&self.dir)(error));
        let mut statement = self.database.prepare(&query).map_err(failed)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
        let mut open: Option<(i64, File)> = None;
        while let Some(row) = rows.next().map_err(failed)? {
            let read = || Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
            let (segment, offset, length) = read().map_err(failed)?;
            if open.as_ref().is_none_or(|(number, _)| *number != segment) {
                open = Some((segment, self.segment(segment.cast_unsigned())?));
            }
            let Some((_, file)) = &open else { continue };
            let line = line_at(file, offset.cast_unsigned(), length.cast_unsigned());
            let line = line.map_err(self.io_error(LIVE))?;
            let known = || Ok((row.get::<_, i64>(3)?, row.get::<_, [u8; 32]>(4)?));
            let (seq, hash) = known().map_err(failed)?;
            let (seq, name) = (seq.cast_unsigned(), segment::full(segment.cast_unsigned()));
            if Hash::line(&line).0 != hash {
                return Err(IndexError::Changed { path: within(&self.dir, &name), seq }.into());
            }
            each(&line)?;
        }
        Ok(())
    }

    fn update(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), IndexError> {
        let disk = Disk::new(&self.dir);
        let extent = Extent::of(&disk).map_err(IndexError::Broken)?;
        let mut at = self.position()?;
        if let Some(known) = &at
            && (!self.still_there(known) || self.is_touched(&extent.present)?)
        {
            let all = "DELETE FROM record; DELETE FROM state; DELETE FROM segment;";
            self.database.execute_batch(all).map_err(database_error(&self.dir))?;
            at = None;
        }
        if extent.present.is_empty() {
            return Ok(());
        }
        let from = at.as_ref().map_or(0, |at| at.segment);
        let mut last = Last::default();
        let mut reader = None;
        let failed = database_error(&self.dir);
        self.database.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        for number in extent.present.iter().copied().filter(|number| *number >= from) {
            let here = match at.take() {
                Some(known) => {
                    last = known.last;
                    Reader::resume(&disk, known.chain, known.segment, known.next)
                }
                None => Reader::after(reader.take(), &disk, number),
            };
            let here = reader.insert(here.map_err(IndexError::Broken)?);
            if self.take_segment(here, &mut last, progress)? {
                break;
            }
        }
        let Some(reader) = reader else { return Ok(()) };
        extent.expect_all(&reader).map_err(IndexError::Broken)?;
        self.keep(&reader, &last)
    }

    /// Ends the transaction, and stores how far the log is indexed.
    fn keep(&self, reader: &Reader<'_>, last: &Last) -> Result<(), IndexError> {
        let chain = reader.chain().map(|chain| (chain.log(), chain.before()));
        let kept = match chain {
            Some((log, before)) => self.database.execute(
                "INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?, ?)",
                params![
                    reader.segment().cast_signed(),
                    reader.offset().cast_signed(),
                    last.offset.cast_signed(),
                    last.hash,
                    log,
                    serde_json::to_string(&before).unwrap_or_default(),
                ],
            ),
            None => Ok(0),
        };
        kept.and_then(|_| self.database.execute_batch("COMMIT"))
            .and_then(|()| self.database.execute_batch(INDEXES))
            .map_err(database_error(&self.dir))
    }

    /// Indexes the lines of a segment from the reader's position on. Returns whether it is the live
    /// one.
    fn take_segment(
        &self,
        reader: &mut Reader<'_>,
        last: &mut Last,
        progress: &mut dyn FnMut(u64),
    ) -> Result<bool, IndexError> {
        let failed = || database_error(&self.dir);
        let segment = reader.segment();
        let touched = touched(&self.segment(segment)?);
        let insert = "INSERT OR REPLACE INTO record VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)";
        let mut insert = self.database.prepare(insert).map_err(failed())?;
        let live = reader.read_segment(|line| {
            let length = line.raw.len() as u64;
            let hash = Hash::line(line.raw);
            *last = Last { offset: line.offset, hash: hash.to_string() };
            progress(length + 1);
            // A record of a type that is not known is passed over.
            let Ok(summary) = Summary::read(line.raw) else { return self.expect_json(line) };
            let ts = summary.ts.parse().map_or(0, Timestamp::as_millisecond);
            let inserted = insert.execute(params![
                summary.seq.cast_signed(),
                ts,
                summary.kind,
                summary.code(),
                summary.client(),
                summary.tool(),
                summary.origin(),
                summary.outcome(),
                summary.incident(),
                segment.cast_signed(),
                line.offset.cast_signed(),
                length.cast_signed(),
                hash.0,
            ]);
            inserted.map(drop).map_err(failed())
        });
        let live = live.map_err(IndexError::Broken)??;
        drop(insert);
        if !live {
            let known = params![segment.cast_signed(), touched];
            let inserted =
                self.database.execute("INSERT OR REPLACE INTO segment VALUES (?, ?)", known);
            inserted.map_err(failed())?;
        }
        Ok(live)
    }

    fn expect_json(&self, line: &Line<'_>) -> Result<(), IndexError> {
        let Err(why) = serde_json::from_slice::<IgnoredAny>(line.raw) else { return Ok(()) };
        let (path, number) = (self.dir.clone(), Some(line.number));
        let why = Wrong::Json(why.to_string());
        Err(IndexError::Broken(Box::new(Finding { path, line: number, good: 0, why })))
    }

    fn position(&self) -> Result<Option<Position>, IndexError> {
        let query = "SELECT segment, next, last, hash, log, chain FROM state";
        let read = self.database.query_row(query, [], |row| {
            let number = |i| row.get::<_, i64>(i).map(i64::cast_unsigned);
            let before: String = row.get(5)?;
            let before = serde_json::from_str(&before).ok();
            let chain = before.and_then(|b| Chain::restore(&row.get::<_, String>(4).ok()?, &b));
            Ok(Position {
                segment: number(0)?,
                next: number(1)?,
                last: Last { offset: number(2)?, hash: row.get(3)? },
                chain: chain.ok_or(rusqlite::Error::InvalidQuery)?,
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
            let read = || Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
            let (number, then) = read().map_err(failed())?;
            let there = present.contains(&number.cast_unsigned());
            if !there || touched(&self.segment(number.cast_unsigned())?) != then {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the last indexed line is still at its place.
    fn still_there(&self, at: &Position) -> bool {
        if at.next == 0 {
            return true;
        }
        let Ok(file) = self.segment(at.segment) else { return false };
        let length = at.next.saturating_sub(at.last.offset + 1);
        let line = line_at(&file, at.last.offset, length);
        line.is_ok_and(|line| Hash::line(&line).to_string() == at.last.hash)
    }

    /// The segment's file. It may get its other name between two looks.
    fn segment(&self, number: u64) -> Result<File, IndexError> {
        let disk = Disk::new(&self.dir);
        let live = || segments::live_number(&disk).map_err(self.io_error(LIVE));
        let full = segment::full(number);
        for _ in 0..8 {
            let is_live = live()? == Some(number);
            let name = if is_live { LIVE } else { &full };
            match open_regular(&self.dir.join(name)) {
                Ok(file) if !is_live || live()? == Some(number) => return Ok(file),
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(self.io_error(name)(e));
                }
                _ => {}
            }
        }
        // A live segment without a first line has no number yet.
        open_regular(&self.dir.join(LIVE)).map_err(self.io_error(&full))
    }

    fn io_error(&self, name: &str) -> impl FnOnce(io::Error) -> IndexError + use<> {
        let path = within(&self.dir, name);
        move |error| IndexError::Io { path, error }
    }
}

/// A fingerprint that changes if the file is written or replaced.
#[cfg(unix)]
fn touched(file: &File) -> String {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = file.metadata() else { return String::new() };
    let (modified, changed) = (found.mtime_nsec(), found.ctime_nsec());
    let times = format!("{}.{modified}-{}.{changed}", found.mtime(), found.ctime());
    format!("{}-{}-{times}", found.ino(), found.len())
}

#[cfg(not(unix))]
fn touched(file: &File) -> String {
    let Ok(found) = file.metadata() else { return String::new() };
    format!("{}-{:?}", found.len(), found.modified().ok())
}

fn line_at(mut file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(length).read_to_end(&mut line)?;
    Ok(line)
}

/// How far the log is indexed: the segment, the offset of its next line, its last line, and the
/// chain after that.
struct Position {
    segment: u64,
    next: u64,
    last: Last,
    chain: Chain,
}

/// The last indexed line: its offset and its hash.
#[derive(Default)]
struct Last {
    offset: u64,
    hash: String,
}

/// Where an index is: the next is tried when one cannot be used.
enum IndexLocation {
    Kept,
    Fresh,
    Memory,
}

impl IndexLocation {
    /// Opens it, with the tables in it.
    fn open(&self, path: &Path) -> Result<Connection, rusqlite::Error> {
        let database = match self {
            Self::Kept => connect(path)?,
            Self::Fresh => {
                let _ = fs::remove_file(path);
                connect(path)?
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
            // Another version, or another program's file.
            _ => Err(rusqlite::Error::InvalidQuery),
        }
    }
}

/// Opens the database, readable only by its owner, and only if it is a regular file. SQLite itself
/// looks for journals beside it, which never belong to this program, because its own are in memory.
fn connect(path: &Path) -> Result<Connection, rusqlite::Error> {
    let failed = |_| rusqlite::Error::InvalidPath(path.to_owned());
    for suffix in ["-journal", "-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        match fs::remove_file(&beside) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
    }
    drop(open_to_update(path, true).map_err(failed)?);
    // Links that lead to the directory are the user's own.
    let real = fs::canonicalize(path).map_err(failed)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(real, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)
}

fn database_error(dir: &Path) -> impl FnOnce(rusqlite::Error) -> IndexError + use<> {
    let path = dir.join(INDEX);
    move |error| IndexError::Database { path, error }
}
