//! A disk that fails and a machine that loses its power. What is not synced may vanish, tear at
//! sectors or be reordered; a failed sync drops what it should have kept, and does so for good.
//! A test can hold the log's own thread, so that the same steps always lead to the same operations.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::Duration;

use faultwire::audit::{Access, LockError, Storage, Tail};

/// What goes wrong, and at which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub at: u64,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The operation fails; half of a write was done.
    Eio,
    /// The same, and it takes a while.
    SlowEio,
    /// It takes a while.
    Slow,
    /// There is no space; half of a write was done.
    Enospc,
    /// The power fails just before it.
    KillBefore,
    /// The power fails just after it.
    KillAfter,
}

#[derive(Clone)]
pub struct Sim(Arc<Machine>);

#[derive(Default)]
struct Machine {
    world: Mutex<World>,
    /// A thread arrived at the gate, or the gate was opened.
    gate: Condvar,
}

#[derive(Default)]
struct World {
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    name_changes: Vec<NameChange>,
    files: Vec<File>,
    operations: u64,
    log: Vec<String>,
    trouble: Option<Trouble>,
    off: bool,
    /// What a failed sync keeps nevertheless, as for a loss of power.
    kept_by_failed_sync: u64,
    /// Every thread but this one waits before its next operation.
    held_for: Option<ThreadId>,
    /// Whether one does.
    waits: bool,
}

#[derive(Clone)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
}

#[derive(Clone, Default)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
}

const SECTOR: usize = 512;

impl Sim {
    pub fn new(trouble: Option<Trouble>) -> Self {
        Self::of(World { trouble, ..World::default() })
    }

    fn of(world: World) -> Self {
        Self(Arc::new(Machine { world: Mutex::new(world), gate: Condvar::new() }))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap()
    }

    /// A failed sync keeps what a loss of power with this seed would keep, and drops the rest.
    pub fn failed_syncs_keep(&self, seed: u64) {
        self.world().kept_by_failed_sync = seed;
    }

    /// From now on every other thread stops before its next operation.
    pub fn hold(&self) {
        let mut world = self.world();
        (world.held_for, world.waits) = (Some(thread::current().id()), false);
    }

    /// Returns once another thread has stopped.
    pub fn wait_for_held(&self) {
        let patience = Duration::from_mins(1);
        let (_world, late) =
            self.0.gate.wait_timeout_while(self.world(), patience, |w| !w.waits).unwrap();
        assert!(!late.timed_out(), "no other thread came to write");
    }

    /// Lets the others go on.
    pub fn release(&self) {
        self.world().held_for = None;
        self.0.gate.notify_all();
    }

    /// From now on this goes wrong.
    pub fn trouble(&self, trouble: Trouble) {
        self.world().trouble = Some(trouble);
    }

    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// What was done, an operation each.
    pub fn log(&self) -> Vec<String> {
        self.world().log.clone()
    }

    /// The same disk in the same machine, after the process ended.
    pub fn restarted(&self) -> Self {
        let world = self.world();
        let copy = World {
            names: world.names.clone(),
            durable_names: world.durable_names.clone(),
            name_changes: world.name_changes.clone(),
            files: world.files.clone(),
            kept_by_failed_sync: world.kept_by_failed_sync,
            ..World::default()
        };
        Self::of(copy)
    }

    /// The disk after the machine lost its power. Seed 0 keeps nothing that was not synced, seed
    /// 1 keeps all of it, seed 2 all but that files got other names, the others keep some.
    pub fn after_power_loss(&self, seed: u64) -> Self {
        let world = self.world();
        let mut dice = Dice(seed);
        let mut names = world.durable_names.clone();
        for change in &world.name_changes {
            let renames = matches!(change, NameChange::Rename(..));
            if dice.keeps() && !(seed == 2 && renames) {
                change.apply(&mut names);
            }
        }
        let files: Vec<File> =
            world.files.iter().map(|file| file.after_power_loss(&mut dice)).collect();
        let after = World { durable_names: names.clone(), names, files, ..World::default() };
        Self::of(after)
    }

    /// Counts an operation, and lets it go wrong if it is its turn.
    fn operation(&self, what: &str) -> Result<Turn, io::Error> {
        let mut world = self.world();
        while world.held_for.is_some_and(|only| only != thread::current().id()) {
            world.waits = true;
            self.0.gate.notify_all();
            world = self.0.gate.wait(world).unwrap();
        }
        if world.off {
            return Err(io::Error::other("the machine is off"));
        }
        world.operations += 1;
        world.log.push(what.to_owned());
        let trouble = world.trouble.filter(|t| t.at == world.operations);
        match trouble.map(|t| t.kind) {
            None => Ok(Turn::Fine),
            Some(Kind::SlowEio) => {
                drop(world);
                thread::sleep(Duration::from_millis(100));
                Ok(Turn::Fails(5))
            }
            Some(Kind::Slow) => {
                drop(world);
                thread::sleep(Duration::from_millis(100));
                Ok(Turn::Fine)
            }
            Some(Kind::Eio) => Ok(Turn::Fails(5)),
            Some(Kind::Enospc) => Ok(Turn::Fails(28)),
            Some(Kind::KillBefore) => {
                world.off = true;
                Err(io::Error::other("the machine is off"))
            }
            Some(Kind::KillAfter) => Ok(Turn::LastOne),
        }
    }

    fn done(&self, turn: &Turn) -> io::Result<()> {
        match turn {
            Turn::Fine => Ok(()),
            Turn::Fails(code) => Err(io::Error::from_raw_os_error(*code)),
            Turn::LastOne => {
                self.world().off = true;
                Err(io::Error::other("the machine is off"))
            }
        }
    }
}

enum Turn {
    Fine,
    Fails(i32),
    LastOne,
}

impl Turn {
    fn happens(&self) -> bool {
        !matches!(self, Self::Fails(_))
    }
}

struct Dice(u64);

impl Dice {
    fn keeps(&mut self) -> bool {
        match self.0 {
            0 => false,
            1 | 2 => true,
            _ => {
                // xorshift: good enough to choose sectors.
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                self.0 & 1 == 1
            }
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            // If the change before it is lost, it takes the place of what had the name.
            Self::Create(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, data) => {
                if bytes.len() < at + data.len() {
                    bytes.resize(at + data.len(), 0);
                }
                bytes[*at..at + data.len()].copy_from_slice(data);
            }
            Self::Cut(len) => bytes.truncate(*len),
        }
    }

    /// The parts of a change that reach the disk one by one.
    fn parts(&self) -> Vec<Change> {
        let Self::Write(at, data) = self else { return vec![self.clone()] };
        let mut parts = Vec::new();
        let (mut at, mut rest) = (*at, &data[..]);
        while !rest.is_empty() {
            let room = SECTOR - at % SECTOR;
            let (part, left) = rest.split_at(room.min(rest.len()));
            parts.push(Self::Write(at, part.to_vec()));
            at += part.len();
            rest = left;
        }
        parts
    }
}

impl File {
    fn after_power_loss(&self, dice: &mut Dice) -> File {
        let mut bytes = self.durable.clone();
        for part in self.changes.iter().flat_map(Change::parts) {
            if dice.keeps() {
                part.apply(&mut bytes);
            }
        }
        File { now: bytes.clone(), durable: bytes, changes: Vec::new() }
    }
}

impl Storage for Sim {
    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &str) -> Result<Box<dyn Send + Sync>, LockError> {
        Ok(Box::new(()))
    }

    fn holder(&self) -> Option<String> {
        None
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.world().names.keys().cloned().collect())
    }

    fn read_from(&self, name: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let world = self.world();
        let file = *world.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = Cursor::new(world.files[file].now.clone());
        bytes.set_position(offset);
        Ok(Box::new(bytes))
    }

    fn append(&self, name: &str, _: Access) -> io::Result<Box<dyn Tail>> {
        let turn = self.operation(&format!("open {name}"))?;
        let mut world = self.world();
        let file = match world.names.get(name) {
            Some(file) => *file,
            None if !turn.happens() => 0,
            None => {
                world.files.push(File::default());
                let file = world.files.len() - 1;
                world.names.insert(name.to_owned(), file);
                world.name_changes.push(NameChange::Create(name.to_owned(), file));
                file
            }
        };
        drop(world);
        self.done(&turn)?;
        Ok(Box::new(SimTail { sim: self.clone(), file, name: name.to_owned() }))
    }

    fn create(&self, name: &str, _: Access) -> io::Result<Box<dyn Tail>> {
        let turn = self.operation(&format!("create {name}"))?;
        let mut world = self.world();
        if turn.happens() {
            world.files.push(File::default());
            let file = world.files.len() - 1;
            world.names.insert(name.to_owned(), file);
            world.name_changes.push(NameChange::Create(name.to_owned(), file));
        }
        let file = world.names.get(name).copied().unwrap_or(0);
        drop(world);
        self.done(&turn)?;
        Ok(Box::new(SimTail { sim: self.clone(), file, name: name.to_owned() }))
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let turn = self.operation(&format!("overwrite {name}"))?;
        let mut world = self.world();
        let file = *world.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        let written = if turn.happens() { bytes } else { &bytes[..bytes.len() / 2] };
        let change = Change::Write(usize::try_from(offset).unwrap(), written.to_vec());
        let file = &mut world.files[file];
        change.apply(&mut file.now);
        file.changes.push(change);
        drop(world);
        self.done(&turn)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let turn = self.operation(&format!("rename {from}"))?;
        if turn.happens() {
            let change = NameChange::Rename(from.to_owned(), to.to_owned());
            let mut world = self.world();
            change.apply(&mut world.names);
            world.name_changes.push(change);
        }
        self.done(&turn)
    }

    fn sync_names(&self) -> io::Result<()> {
        let turn = self.operation("sync names")?;
        let mut world = self.world();
        if turn.happens() {
            world.durable_names = world.names.clone();
            world.name_changes.clear();
        }
        drop(world);
        self.done(&turn)
    }

    fn place(&self) -> &Path {
        Path::new("/sim")
    }
}

struct SimTail {
    sim: Sim,
    file: usize,
    name: String,
}

impl Tail for SimTail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let turn = self.sim.operation(&format!("write {}", self.name))?;
        let mut world = self.sim.world();
        let file = &mut world.files[self.file];
        let written = if turn.happens() { bytes } else { &bytes[..bytes.len() / 2] };
        let change = Change::Write(file.now.len(), written.to_vec());
        change.apply(&mut file.now);
        file.changes.push(change);
        drop(world);
        self.sim.done(&turn)
    }

    fn sync(&mut self) -> io::Result<()> {
        let turn = self.sim.operation(&format!("sync {}", self.name))?;
        let mut world = self.sim.world();
        let mut dice = Dice(world.kept_by_failed_sync);
        let file = &mut world.files[self.file];
        let changes = std::mem::take(&mut file.changes);
        for part in changes.iter().flat_map(Change::parts) {
            if turn.happens() || dice.keeps() {
                part.apply(&mut file.durable);
            }
        }
        drop(world);
        self.sim.done(&turn)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let turn = self.sim.operation(&format!("cut {}", self.name))?;
        if turn.happens() {
            let change = Change::Cut(usize::try_from(len).unwrap());
            let mut world = self.sim.world();
            let file = &mut world.files[self.file];
            change.apply(&mut file.now);
            file.changes.push(change);
        }
        self.sim.done(&turn)
    }

    fn is_in_place(&self, len: u64) -> io::Result<bool> {
        let world = self.sim.world();
        let named = world.names.get(&self.name) == Some(&self.file);
        Ok(named && world.files[self.file].now.len() as u64 == len)
    }
}
