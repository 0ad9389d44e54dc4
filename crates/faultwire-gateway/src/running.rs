//! A server that runs: its link, and the threads that look after it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::door::Door;
use crate::guard::breaker::Breaker;
use crate::guard::tasks::Tasks;
use crate::link::Link;
use crate::outlet::Outlet;
use crate::settings::Settings;
use crate::supervisor::{Event, Source, Supervisor};

/// A server that runs until it is told to end, and is started again when it ends before.
pub(crate) struct Running {
    pub link: Arc<Link>,
    events: Sender<Event>,
}

impl Running {
    #[expect(clippy::too_many_arguments, reason = "each is a part of its own")]
    /// Starts it. `on_over` is called when it has ended for good.
    pub(crate) fn start(
        door: &Arc<Door>,
        settings: &Arc<Settings>,
        outlet: Arc<dyn Outlet>,
        source: Source,
        breaker: &Arc<Breaker>,
        tasks: &Arc<Tasks>,
        alive: &Arc<AtomicUsize>,
        on_over: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (events, heard) = channel();
        let link = Arc::new(Link::new(
            Arc::clone(door),
            Arc::clone(settings),
            outlet,
            events.clone(),
            Some(Arc::clone(breaker)),
            Some(Arc::clone(tasks)),
        ));
        let mut supervisor = Supervisor::new(Arc::clone(&link), source, heard);
        supervisor.start()?;
        spawn("inlet", &events, {
            let link = Arc::clone(&link);
            move || link.inlet.serve()
        })?;
        let watched = Arc::clone(&link);
        let counted = Counted::new(alive);
        thread::Builder::new().name("supervisor".to_owned()).spawn(move || {
            let watch = AssertUnwindSafe(|| supervisor.watch());
            if catch_unwind(watch).is_err() {
                tracing::error!("whoever watches a server failed; the server ends");
            }
            drop(supervisor);
            watched.inlet.end();
            drop(counted);
            on_over();
        })?;
        Ok(Self { link, events })
    }

    /// Ends it as soon as the open calls are answered.
    pub(crate) fn end(&self) {
        let _ = self.events.send(Event::ClientDone);
    }

    /// Ends it; no new calls are taken, and open ones have their time.
    pub(crate) fn drain(&self) {
        let _ = self.events.send(Event::Signal);
    }
}

/// One more server that has not ended yet.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(alive))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A thread that a session needs. If it panics, the session cannot go on.
pub(crate) fn spawn(
    name: &'static str,
    events: &Sender<Event>,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let events = events.clone();
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            let _ = events.send(Event::Panicked(name));
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(guarded).map(drop)
}
