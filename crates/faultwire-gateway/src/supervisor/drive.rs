//! The two ways to watch: on a thread, and as a task.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use tokio::sync::mpsc::UnboundedReceiver;

use super::Supervisor;
use crate::connection::Event;
use crate::edge;

impl Supervisor {
    /// Watches on this thread until the session is over. Nothing is open then.
    pub(crate) fn watch(&mut self, events: &Receiver<Event>) {
        while self.is_watching() {
            let wait = self.due().map(|due| due.saturating_duration_since(edge::now()));
            let event = match wait {
                Some(wait) => events.recv_timeout(wait),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(event) => self.on_event(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.on_tick();
        }
        self.close();
    }

    /// The same as a task.
    pub(crate) async fn watch_as_task(&mut self, mut events: UnboundedReceiver<Event>) {
        while self.is_watching() {
            let event = match self.due() {
                None => events.recv().await,
                Some(due) => tokio::select! {
                    event = events.recv() => event,
                    () = tokio::time::sleep_until(due.into()) => Some(Event::Sooner),
                },
            };
            let Some(event) = event else { break };
            self.on_event(event);
            self.on_tick();
        }
        self.close();
    }
}
