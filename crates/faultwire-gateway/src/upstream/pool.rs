//! Servers of one command: some are started before anybody needs them, so that a session does not
//! have to wait until its server is up.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;

use crate::directories::Directories;
use crate::launch::Launch;
use crate::upstream::process::{self, StartedServer};
use parking_lot::{Mutex, MutexGuard};

/// The servers of a command that are not in use yet.
pub(crate) struct Pool {
    launch: Mutex<Launch>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    spare: Vec<StartedServer>,
    /// Being started now.
    starting: usize,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(launch: Launch) -> Self {
        Self { launch: Mutex::new(launch), state: Mutex::default() }
    }

    /// From now on servers are started without these variables. Those that were started with one of
    /// them and are not in use end.
    pub(crate) fn withhold(&self, withheld: &BTreeSet<OsString>) {
        let mut launch = self.launch.lock();
        if launch.withheld == *withheld {
            return;
        }
        launch.withheld.clone_from(withheld);
        drop(launch);
        drop(std::mem::take(&mut self.state().spare));
    }

    /// The directories that the command names.
    pub(crate) fn directories(&self) -> Directories {
        Directories::of(&self.launch.lock())
    }

    fn start(&self) -> io::Result<StartedServer> {
        let launch = self.launch.lock().clone();
        process::start(&launch)
    }

    /// A server that runs: one that was started before, or a new one.
    pub(crate) fn take(&self) -> io::Result<StartedServer> {
        loop {
            let Some(spare) = self.state().spare.pop() else { break };
            if spare.process.is_running() {
                return Ok(spare);
            }
        }
        self.start()
    }

    /// Starts servers until there are so many to spare. A command that cannot be started is told
    /// to the session that needs it.
    pub(crate) fn fill(&self, most: usize) {
        let running = |spare: &StartedServer| spare.process.is_running();
        let (spare, ended): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.state().spare).into_iter().partition(running);
        drop(ended);
        self.state().spare.extend(spare);
        loop {
            let mut state = self.state();
            if state.closed || state.spare.len() + state.starting >= most {
                return;
            }
            state.starting += 1;
            drop(state);
            let started = self.start();
            let mut state = self.state();
            state.starting -= 1;
            match started {
                Ok(started) if !state.closed => state.spare.push(started),
                // It ends with being dropped.
                Ok(started) => {
                    drop(state);
                    return drop(started);
                }
                Err(_) => return,
            }
        }
    }

    /// Ends the spare servers, and starts no more.
    pub(crate) fn close(&self) {
        let spare = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.spare)
        };
        drop(spare);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(script: &str) -> Pool {
        Pool::new(["sh", "-c", script].map(OsString::from).to_vec().into())
    }

    #[test]
    fn what_was_started_before_is_taken_first() {
        let pool = pool("cat");
        pool.fill(2);
        let ids: Vec<_> = pool.state().spare.iter().map(|spare| spare.process.id()).collect();
        assert_eq!(ids.len(), 2);
        let taken = [pool.take().unwrap(), pool.take().unwrap(), pool.take().unwrap()];
        let others: Vec<_> = taken.iter().map(|taken| taken.process.id()).collect();
        assert_eq!(others[..2], [ids[1], ids[0]]);
        assert!(!ids.contains(&others[2]));
    }

    #[test]
    fn who_has_ended_meanwhile_is_of_no_use() {
        let pool = pool("exit 0");
        pool.fill(1);
        let before = pool.state().spare[0].process.id();
        while pool.state().spare[0].process.is_running() {
            std::thread::yield_now();
        }
        assert_ne!(pool.take().unwrap().process.id(), before);
    }

    #[test]
    fn nobody_stays_when_it_is_closed() {
        let pool = pool("cat");
        pool.fill(1);
        let id = pool.state().spare[0].process.id();
        pool.close();
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
        pool.fill(1);
        assert!(pool.state().spare.is_empty());
    }
}
