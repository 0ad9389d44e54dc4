//! Budgets: so many calls in a period of the calendar, counted in a file, so that they survive a
//! restart.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use std::time::Duration;
use std::{fmt, io};

use faultwire::audit::{Access, Disk, Storage};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::edge;

/// So many calls in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// How many.
    pub calls: u64,
    /// In which period.
    pub period: Period,
}

/// A period of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// From one full minute to the next.
    Minute,
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
}

impl Period {
    fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => 86_400,
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = match self.period {
            Period::Minute => "minute",
            Period::Hour => "hour",
            Period::Day => "day",
        };
        write!(f, "{} calls a {period}", self.calls)
    }
}

/// What was spent, of all clients.
pub(crate) struct Budgets {
    file: Option<PathBuf>,
    spent: Mutex<BTreeMap<String, Spent>>,
    changed: AtomicBool,
}

/// What a client spent in the period that began then.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Spent {
    since: u64,
    calls: u64,
}

impl Budgets {
    /// With what was spent before, if the file tells.
    pub(crate) fn open(file: Option<PathBuf>) -> Self {
        let read = |file: &PathBuf| match contents(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(io::Error::other),
        };
        let spent = file.as_ref().and_then(|file| {
            read(file).unwrap_or_else(|error| {
                tracing::warn!(%error, "the file of budgets cannot be read; starting with full budgets");
                None
            })
        });
        let spent = Mutex::new(spent.unwrap_or_default());
        Self { file, spent, changed: AtomicBool::new(false) }
    }

    /// Spends a call. If there is none left, how long until there is.
    pub(crate) fn spend(&self, client: &str, allowance: Allowance) -> Option<Duration> {
        self.spend_at(client, allowance, edge::unix_ms())
    }

    fn spend_at(&self, client: &str, allowance: Allowance, now_ms: u64) -> Option<Duration> {
        let length = allowance.period.seconds();
        let since = now_ms / 1000 / length * length;
        let mut all = self.spent();
        let spent = all.entry(client.to_owned()).or_default();
        if spent.since != since {
            *spent = Spent { since, calls: 0 };
        }
        if spent.calls >= allowance.calls {
            let end_ms = (since + length) * 1000;
            return Some(Duration::from_millis(end_ms.saturating_sub(now_ms).max(1)));
        }
        spent.calls += 1;
        self.changed.store(true, Ordering::Relaxed);
        // A few are written down at once, so that not even a crash gives them back; of many, a
        // hundredth at most is only in memory, and that for a second.
        let at_once = spent.calls.is_multiple_of(allowance.calls.div_ceil(100));
        drop(all);
        if at_once && let Err(error) = self.save() {
            tracing::error!(%error, "the budgets cannot be saved");
        }
        None
    }

    /// Writes down what was spent since the last time: whole or not at all.
    pub(crate) fn save(&self) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| self.changed.swap(false, Ordering::Relaxed))
        else {
            return Ok(());
        };
        // Written with the lock held, so that nothing older overwrites it.
        let spent = self.spent();
        let text = serde_json::to_string_pretty(&*spent).map_err(io::Error::other)?;
        let (disk, name) = place(file)?;
        let new = format!("{name}.new");
        disk.create(&new, Access::Owner)?.write(text.as_bytes())?;
        disk.rename(&new, &name)
    }

    fn spent(&self) -> MutexGuard<'_, BTreeMap<String, Spent>> {
        self.spent.lock()
    }
}

/// The file as one of a directory in which no link is followed: it lies beside the audit log.
fn place(file: &Path) -> io::Result<(Disk, String)> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::other("its name is not UTF-8"))?;
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    Ok((Disk::new(dir.unwrap_or(Path::new("."))), name.to_owned()))
}

fn contents(file: &Path) -> io::Result<Vec<u8>> {
    let (disk, name) = place(file)?;
    let mut text = Vec::new();
    disk.read(&name)?.read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn x5_no_link_beside_the_budgets_is_followed() {
        let dir = std::env::temp_dir().join(format!("faultwire-budgets-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (file, victim) = (dir.join("budgets"), dir.join("victim"));
        fs::write(&victim, "precious").unwrap();
        for name in ["budgets", "budgets.new"] {
            std::os::unix::fs::symlink(&victim, dir.join(name)).unwrap();
            let budgets = Budgets::open(Some(file.clone()));
            let one = Allowance { calls: 9, period: Period::Minute };
            assert_eq!(budgets.spend_at("a", one, 59_000), None);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
            assert!(fs::symlink_metadata(&file).unwrap().is_file());
            assert!(fs::read_to_string(&file).unwrap().contains("\"calls\": 1"));
            fs::remove_file(&file).unwrap();
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_budget_lasts_for_its_period() {
        let budgets = Budgets::open(None);
        let two = Allowance { calls: 2, period: Period::Minute };
        let at = |ms| budgets.spend_at("a", two, ms);
        assert_eq!((at(59_000), at(59_500)), (None, None));
        assert_eq!(at(59_600), Some(Duration::from_millis(400)));
        assert_eq!(budgets.spend_at("b", two, 59_600), None, "others have their own");
        assert_eq!((at(60_000), at(60_001)), (None, None));
        assert_eq!(at(60_002), Some(Duration::from_millis(59_998)));
    }
}
