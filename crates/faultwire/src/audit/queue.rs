//! Group commit. A caller writes itself if no thread is writing, so a single caller needs no second
//! thread. Records that arrive meanwhile form the next batch, which the log's own thread writes to
//! disk with one sync.

mod disk;

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, JoinHandle};

use crate::audit::batch::{Batch, Fate, remember};
use crate::audit::error::AuditFailed;
use crate::audit::key::Key;
use crate::audit::log::Receipt;
use crate::audit::options::Options;
use crate::audit::record::Entry;
use crate::audit::storage::Storage;
use crate::audit::writer::Writer;
use disk::guarded;

/// What all clones of a log and its own thread share.
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    /// There is something for the log's own thread to do.
    work: Condvar,
    /// The queue has space again, or there is no writer any more.
    change: Condvar,
    /// The writer; a thread locks it while it writes. None once it failed or was closed.
    writer: Mutex<Option<Writer>>,
    /// Held until the log is closed.
    lock: Mutex<Option<Lock>>,
    /// How many records are surely on disk.
    durable: AtomicU64,
    storage: Arc<dyn Storage>,
    options: Arc<Options>,
    key: Arc<Key>,
    log: String,
}

/// Keeps other writers away.
type Lock = Box<dyn Send + Sync>;

thread_local! {
    /// The log for which this thread is bringing a batch to disk, by its address. It must not wait
    /// for itself.
    static WRITING: Cell<usize> = const { Cell::new(0) };
}

/// What waits to be written.
#[derive(Default)]
struct Queue {
    entries: Vec<Entry>,
    bytes: usize,
    batch: Arc<Batch>,
    writes: Writes,
    thread: Option<JoinHandle<()>>,
    /// Threads and futures that wait for a change or for space in the queue.
    waiting: usize,
    wakers: Vec<Waker>,
    closed: bool,
    /// Whether the writing thread must close the log when it is done.
    closes_itself: bool,
    failed: Option<FailedWrite>,
}

/// Who is writing.
#[derive(Default, PartialEq, Eq)]
enum Writes {
    #[default]
    Idle,
    /// A caller that waits.
    Caller,
    /// The log's own thread.
    Thread,
}

/// Since when nothing is recorded, and why.
struct FailedWrite {
    why: AuditFailed,
    since_ms: i64,
    tried_ms: i64,
    missed: u64,
}

/// Records on their way to disk.
struct Taken {
    entries: Vec<Entry>,
    batch: Arc<Batch>,
    /// Futures that waited for the space that is now free.
    wakers: Vec<Waker>,
}

/// The position of an entry: its batch, and its index in it.
pub(crate) struct BatchPosition {
    pub batch: Arc<Batch>,
    index: u64,
}

/// What happened to an entry.
pub(crate) enum Admission {
    /// It is in the queue.
    Queued(BatchPosition),
    /// The queue is full.
    Full(Entry),
    /// It will not be recorded.
    Refused(Fate),
}

impl BatchPosition {
    /// For an entry that got none.
    pub fn nowhere() -> Self {
        Self { batch: Arc::default(), index: 0 }
    }

    pub fn receipt(&self, fate: Fate) -> Result<Receipt, AuditFailed> {
        match fate {
            Fate::Durable(first) => Ok(Receipt { seq: Some(first + self.index) }),
            Fate::Missed => Ok(Receipt { seq: None }),
            Fate::Failed(why) => Err(why),
        }
    }
}

impl Shared {
    pub fn new(
        writer: Writer,
        storage: Arc<dyn Storage>,
        options: Arc<Options>,
        lock: Lock,
    ) -> Arc<Self> {
        Arc::new(Self {
            durable: AtomicU64::new(writer.records()),
            lock: Mutex::new(Some(lock)),
            key: Arc::clone(writer.key()),
            log: writer.log().to_owned(),
            queue: Mutex::default(),
            work: Condvar::new(),
            change: Condvar::new(),
            writer: Mutex::new(Some(writer)),
            storage,
            options,
        })
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    pub fn log(&self) -> &str {
        &self.log
    }

    pub fn now_ms(&self) -> i64 {
        (self.options.clock)()
    }

    pub fn failure(&self) -> Option<AuditFailed> {
        let queue = self.queue();
        let failed = queue.failed.as_ref().map(|failed| failed.why.clone());
        failed.or_else(|| queue.closed.then(AuditFailed::closed))
    }

    /// Records the entry and returns once it is on disk; the caller's thread writes if no other
    /// thread does.
    pub fn append(self: &Arc<Self>, mut entry: Entry) -> Result<Receipt, AuditFailed> {
        let mut queue = self.queue();
        let place = loop {
            match self.admit(&mut queue, entry) {
                Admission::Queued(place) => break place,
                Admission::Refused(fate) => return BatchPosition::nowhere().receipt(fate),
                Admission::Full(back) => entry = back,
            }
            queue = self.wait_for_change(queue);
        };
        self.write_if_nobody_does(queue);
        place.receipt(place.batch.wait())
    }

    /// Writes the queue to disk on this thread, if no other thread is writing.
    fn write_if_nobody_does(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        if queue.writes == Writes::Idle {
            queue.writes = Writes::Caller;
            let taken = self.take(&mut queue);
            drop(queue);
            self.bring_to_disk(taken);
            self.hand_over();
        }
    }

    /// Puts the entry into the queue for the log's own thread. If the queue is full, the entry is
    /// returned, and the waker is called when there is space.
    pub fn enqueue(self: &Arc<Self>, entry: Entry, waker: Option<&Waker>) -> Admission {
        let mut queue = self.queue();
        let admission = self.admit(&mut queue, entry);
        match &admission {
            Admission::Full(_) => {
                if let Some(waker) = waker {
                    remember(&mut queue.wakers, waker);
                }
            }
            Admission::Queued(_) if queue.writes == Writes::Idle => {
                queue.writes = Writes::Caller;
                drop(queue);
                self.hand_over();
            }
            Admission::Queued(_) | Admission::Refused(_) => {}
        }
        admission
    }

    /// Records several entries and returns once they are on disk, with one sync if they fit.
    pub fn append_all(self: &Arc<Self>, entries: Vec<Entry>) -> Vec<Result<Receipt, AuditFailed>> {
        let mut queue = self.queue();
        let mut full = false;
        // Entries must not overtake one that waits for space.
        let mut admit = |entry| {
            if full {
                return Admission::Full(entry);
            }
            let admission = self.admit(&mut queue, entry);
            full = matches!(admission, Admission::Full(_));
            admission
        };
        let admissions: Vec<_> = entries.into_iter().map(&mut admit).collect();
        let any = admissions.iter().any(|a| matches!(a, Admission::Queued(_)));
        if any {
            self.write_if_nobody_does(queue);
        } else {
            drop(queue);
        }
        let receipt = |admission| match admission {
            Admission::Queued(place) => place.receipt(place.batch.wait()),
            Admission::Refused(fate) => BatchPosition::nowhere().receipt(fate),
            Admission::Full(entry) => self.append(entry),
        };
        admissions.into_iter().map(receipt).collect()
    }

    /// Waits for everything in the queue, signs, and lets go of the files and the lock. A waker
    /// may drop the last handle while a batch is written: then the writing thread closes the log
    /// when it is done.
    pub fn close(&self) -> Result<(), AuditFailed> {
        let mut queue = self.queue();
        queue.closed = true;
        self.tell_change(&queue);
        if WRITING.get() == self.address() {
            queue.closes_itself = true;
            return Ok(());
        }
        while queue.writes != Writes::Idle {
            queue = self.wait_for_change(queue);
        }
        let failed = queue.failed.as_ref().map(|failed| failed.why.clone());
        let thread = queue.thread.take();
        drop(queue);
        self.work.notify_all();
        if let Some(thread) = thread {
            // A panic in the thread was already caught and reported.
            let _ = thread.join();
        }
        let sealed = self.finish();
        match failed {
            Some(why) if !self.options.fail_open => Err(why),
            _ => sealed,
        }
    }

    /// Signs, and lets go of the files and the lock. The second time there is nothing left to do.
    fn finish(&self) -> Result<(), AuditFailed> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = self.queue().failed.is_some();
        if lock.is_some() && failed && self.options.fail_open {
            self.confess();
        }
        let sealed = guarded(|| self.writer().take().map_or(Ok(()), |mut writer| writer.seal()));
        *lock = None;
        if let Err(why) = &sealed {
            self.shout(why);
        }
        sealed
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, queue: &mut Queue, entry: Entry) -> Admission {
        if queue.closed {
            return Admission::Refused(Fate::Failed(AuditFailed::closed()));
        }
        if let Some(failed) = &mut queue.failed {
            if !self.options.fail_open {
                return Admission::Refused(Fate::Failed(failed.why.clone()));
            }
            let now = (self.options.clock)();
            let waited = u128::try_from(now.saturating_sub(failed.tried_ms)).unwrap_or(0);
            if queue.writes != Writes::Idle || waited < self.options.retry_after.as_millis() {
                failed.missed += 1;
                return Admission::Refused(Fate::Missed);
            }
            failed.tried_ms = now;
        }
        if !queue.entries.is_empty() && queue.bytes + entry.len() > self.options.queue_bytes {
            return Admission::Full(entry);
        }
        let index = queue.entries.len() as u64;
        queue.bytes += entry.len();
        queue.entries.push(entry);
        Admission::Queued(BatchPosition { batch: Arc::clone(&queue.batch), index })
    }

    fn take(&self, queue: &mut Queue) -> Taken {
        queue.bytes = 0;
        self.tell_change(queue);
        let wakers = std::mem::take(&mut queue.wakers);
        let entries = std::mem::take(&mut queue.entries);
        queue.entries.reserve(entries.len());
        Taken { entries, batch: std::mem::take(&mut queue.batch), wakers }
    }

    /// Wakes the log's own thread for the next batch.
    fn hand_over(self: &Arc<Self>) {
        let mut queue = self.queue();
        if queue.entries.is_empty() {
            drop(self.rest(queue));
            return;
        }
        if queue.thread.is_none() {
            let shared = Arc::clone(self);
            let spawned = thread::Builder::new().name("audit-log".to_owned());
            queue.thread = spawned.spawn(move || shared.serve()).ok();
        }
        if queue.thread.is_some() {
            queue.writes = Writes::Thread;
            self.work.notify_one();
            return;
        }
        // Without a thread, the caller writes until the queue is empty.
        while !queue.entries.is_empty() {
            let taken = self.take(&mut queue);
            drop(queue);
            self.bring_to_disk(taken);
            queue = self.queue();
        }
        drop(self.rest(queue));
    }

    /// Stops writing, since nothing is left to write.
    fn rest<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        if queue.closes_itself {
            drop(queue);
            // The alarm has already reported an error.
            let _ = self.finish();
            queue = self.queue();
        }
        queue.writes = Writes::Idle;
        self.tell_change(&queue);
        queue
    }

    fn wait_for_change<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        queue.waiting += 1;
        queue = self.change.wait(queue).unwrap_or_else(PoisonError::into_inner);
        queue.waiting -= 1;
        queue
    }

    /// Notifying costs a system call even if no thread waits.
    fn tell_change(&self, queue: &Queue) {
        if queue.waiting > 0 {
            self.change.notify_all();
        }
    }

    /// The log's own thread.
    fn serve(&self) {
        let mut queue = self.queue();
        loop {
            if queue.writes != Writes::Thread {
                if queue.closed && queue.writes == Writes::Idle {
                    return;
                }
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            } else if queue.entries.is_empty() {
                queue = self.rest(queue);
            } else {
                let taken = self.take(&mut queue);
                drop(queue);
                self.bring_to_disk(taken);
                queue = self.queue();
            }
        }
    }
}
