//! A client on the other side of stdin and stdout.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::ops::Range;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use faultwire::audit::Log;
use faultwire_contract::prepare;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::call::{ClientContext, RequestContext, session_of};
use crate::client_sink::{ClientSink, Stream};
use crate::connection::{Connection, Ends, Event, EventSender, Verdict};
use crate::edge;
use crate::frame::{Frame, Frames, LINES_TOGETHER};
use crate::launch::Launch;
use crate::responder::FaultResponder;
use crate::session::UpstreamSlot;
use crate::settings::Settings;
use crate::supervisor::{Source, Supervisor};
use crate::upstream::pool::Pool;
use crate::wire::salvage_id;

/// How long the last answers may take when the session is over.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// The client's side.
pub struct Streams {
    /// What the client sends.
    pub input: File,
    /// What the client hears.
    pub output: File,
}

/// Why a server cannot be wrapped.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// The server cannot be started.
    #[error("cannot start {command:?}: {error}")]
    Start {
        /// The program.
        command: OsString,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Something that the system must give us.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Runs a server behind the contract until its client or the operator ends the session.
pub fn wrap(
    settings: Settings,
    log: &Log,
    launch: Launch,
    streams: Streams,
) -> Result<(), WrapError> {
    let command = launch.command.first().cloned().unwrap_or_default();
    let (events, heard) = channel();
    let events = EventSender::Thread(events);
    let (queue, items) = channel();
    let settings = Arc::new(settings);
    let responder = Arc::new(FaultResponder::new(log.clone(), queue));
    let broken = events.clone();
    let sink: Arc<dyn ClientSink> = Arc::new(Stream::new(streams.output, move || {
        broken.send(Event::ClientGone);
    }));
    let session = session_of(&settings);
    let client = ClientContext::new(
        Arc::clone(&responder) as Arc<_>,
        Arc::clone(&settings),
        Arc::clone(&sink),
        session,
    );
    let pool = Arc::new(Pool::new(launch));
    let source = Source::Command(Arc::clone(&pool));
    let connection = Arc::new(Connection::new(Ends {
        responder: Arc::clone(&responder),
        settings,
        sink,
        events: events.clone(),
        breaker: None,
        tasks: None,
        is_remote: false,
        directories: source.directories(),
    }));
    let mut supervisor = Supervisor::new(Arc::clone(&connection), source);
    let started = pool.take().and_then(|started| supervisor.begin(Some(started)));
    let started = started.map_err(|error| WrapError::Start { command, error });
    if let Err(WrapError::Start { error, .. }) = &started {
        // Without a client, nothing is to be answered.
        if streams.input.is_terminal() {
            return started;
        }
        supervisor.cannot_start(error);
    }
    let (made, to_record) = channel();
    spawn("responder", &events, {
        let responder = Arc::clone(&responder);
        move || responder.serve(&items, &made)
    })?;
    let (settled, to_answer) = channel();
    spawn("recorder", &events, {
        let responder = Arc::clone(&responder);
        // Writing to the client must not keep the next ones from the disk.
        move || responder.record_made(&to_record, |answers| drop(settled.send(answers)))
    })?;
    let (done, answered) = channel();
    spawn("answers", &events, {
        let responder = Arc::clone(&responder);
        move || {
            for answers in &to_answer {
                responder.deliver(&answers);
            }
            let _ = done.send(());
        }
    })?;
    spawn("writer", &events, {
        let connection = Arc::clone(&connection);
        move || connection.writer.serve()
    })?;
    // The first failure need not wait for its rules.
    let contract = Arc::clone(connection.contract());
    spawn("prepare", &events, move || prepare(&contract))?;
    hear_signals(&events)?;
    spawn("client", &events, {
        let connection = Arc::clone(&connection);
        move || {
            listen(&connection, &client, streams.input);
            connection.events.send(Event::ClientDone);
        }
    })?;
    supervisor.watch(&heard);
    connection.writer.end();
    // A reply that is being looked at has left the table of calls, and is not handed over yet.
    responder.wait_for_bursts(LAST_ANSWERS);
    responder.close();
    // A client that reads nothing any more is not waited for.
    let _ = answered.recv_timeout(LAST_ANSWERS);
    started
}

fn hear_signals(events: &EventSender) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let heard = events.clone();
    spawn("signals", events, move || {
        for _ in signals.forever() {
            heard.send(Event::Signal);
        }
    })
}

/// The thread that listens to the client.
fn listen(connection: &Connection, client: &Arc<ClientContext>, mut input: File) {
    let mut frames = Frames::new(connection.settings().limits.line_bytes);
    let mut overlong_told = false;
    loop {
        connection.responder.wait_for_room();
        match frames.fill(&mut input) {
            Ok(0) => break,
            Ok(_) => take_apart(connection, client.plainly(), &mut frames, &mut overlong_told),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(&input.as_fd(), PollFlags::IN)], None);
            }
            Err(_) => break,
        }
    }
    if !frames.rest().trim_ascii().is_empty() {
        let mut last = frames.rest().to_vec();
        last.push(b'\n');
        let mut pipe = connection.writer.lock();
        let slot = UpstreamSlot { at: pipe.position(), free: pipe.free(), now: edge::now() };
        match connection.on_client(client.plainly(), &last, slot) {
            Verdict::Pass => connection.writer.send(&mut pipe, &last),
            Verdict::Instead(other) => connection.writer.send(&mut pipe, &other),
            Verdict::Drop | Verdict::Unfinished | Verdict::Later(_) => {}
        }
    }
}

/// Everything that is whole goes to the server in as few writes as can be.
fn take_apart(
    connection: &Connection,
    context: RequestContext<'_>,
    frames: &mut Frames,
    overlong_told: &mut bool,
) {
    let _together = connection.responder.burst();
    let now = edge::now();
    let mut pipe = connection.writer.lock();
    let mut run: Range<usize> = 0..0;
    let mut passed = 0usize;
    while let Some(frame) = frames.next_frame() {
        let verdict = match &frame {
            Frame::Line(line) => {
                let slot = UpstreamSlot {
                    at: pipe.position() + run.len() as u64,
                    free: pipe.free().saturating_sub(run.len()),
                    now,
                };
                connection.on_client(context, frames.bytes(line), slot)
            }
            Frame::Overlong(head) => {
                *overlong_told = salvage_id(head).is_some();
                if *overlong_told {
                    connection.on_overlong_client(context, head)
                } else {
                    Verdict::Drop
                }
            }
            Frame::OverlongEnd(_) if *overlong_told => Verdict::Drop,
            Frame::OverlongEnd(tail) => connection.on_overlong_client(context, tail),
        };
        match (verdict, frame) {
            (Verdict::Pass, Frame::Line(line)) if line.start == run.end => {
                run.end = line.end;
                passed += 1;
                if passed.is_multiple_of(LINES_TOGETHER) {
                    connection.writer.send(&mut pipe, frames.bytes(&run));
                    run = line.end..line.end;
                }
            }
            (Verdict::Pass, Frame::Line(line)) => {
                connection.writer.send(&mut pipe, frames.bytes(&run));
                run = line;
            }
            (Verdict::Instead(other), _) => {
                connection.writer.send(&mut pipe, frames.bytes(&run));
                run = 0..0;
                connection.writer.send(&mut pipe, &other);
            }
            (Verdict::Pass | Verdict::Drop | Verdict::Unfinished | Verdict::Later(_), _) => {}
        }
    }
    connection.writer.send(&mut pipe, frames.bytes(&run));
}

/// A thread that the session needs. If it panics, the session cannot go on.
fn spawn(
    name: &'static str,
    events: &EventSender,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let events = events.clone();
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            events.send(Event::Panicked(name));
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(guarded).map(drop)
}
