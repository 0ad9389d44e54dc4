//! Faults to record, directories to record them in, and a look at what is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use faultwire::audit::{
    Alarm, Call, Disk, Entry, Expect, Finding, Options, Storage, Verified, segment, verify,
};
use faultwire::contract::{Condition, Contract, Fault, Report, Stamp, builtin};
use serde_json::Value;

/// A directory of its own, gone when the test is.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("faultwire-audit-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    pub fn verify(&self) -> Result<Verified, Box<Finding>> {
        verify(&Disk::new(&self.0), &Expect::default(), &mut |_| {})
    }

    /// Every record of the log, in order.
    pub fn records(&self) -> Vec<Value> {
        records(&Disk::new(&self.0))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn records(storage: &dyn Storage) -> Vec<Value> {
    let names = storage.names().unwrap();
    let fulls = segment::numbers(&names).into_iter().map(segment::full);
    let mut all = Vec::new();
    for name in fulls.chain([segment::LIVE.to_owned()]) {
        let mut text = String::new();
        storage.read(&name).unwrap().read_to_string(&mut text).unwrap();
        all.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    all
}

/// Nothing is printed, and small enough that everything happens.
pub fn quiet() -> Options {
    Options { alarm: Arc::new(|_: &Alarm| {}), clock: || 1_768_836_730_123, ..Options::default() }
}

pub fn fault(incident: &str) -> Fault {
    static CONTRACT: LazyLock<Arc<Contract>> = LazyLock::new(|| builtin("owlclaw").unwrap());
    let report = Report {
        condition: Some(Condition::Timeout),
        tool: Some("search".to_owned()),
        incident: Some(incident.to_owned()),
        ..Report::new("runtime.timeout")
    };
    Fault::new(&CONTRACT, report, &Stamp::default()).unwrap()
}

pub fn entry(incident: &str) -> Entry {
    Entry::fault(&fault(incident), &Call::default())
}

/// The incidents that a log holds, with their places.
pub fn incidents(records: &[Value]) -> Vec<(u64, String)> {
    let of = |r: &Value| {
        let incident = r.pointer("/fault/incident")?.as_str()?;
        Some((r["seq"].as_u64()?, incident.to_owned()))
    };
    records.iter().filter_map(of).collect()
}
