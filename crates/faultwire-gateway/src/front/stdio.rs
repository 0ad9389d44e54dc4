//! A client on the other side of stdin and stdout.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use faultwire::audit::Log;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::door::Door;
use crate::edge;
use crate::frame::{Frame, Frames};
use crate::link::{Link, Verdict};
use crate::outlet::{Outlet, Stream};
use crate::party::{Asker, Party, session_of};
use crate::pipeline::Place;
use crate::running::spawn;
use crate::settings::Settings;
use crate::supervisor::{Event, Source, Supervisor};
use crate::upstream::pool::Pool;
use crate::upstream::process::Launch;
use crate::wire::salvage_id;

/// So many lines are passed on together, even if more are there: the other side can begin with
/// them meanwhile.
pub(crate) const LINES_TOGETHER: usize = 16;

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
    let (queue, errands) = channel();
    let settings = Arc::new(settings);
    let door = Arc::new(Door::new(log.clone(), queue));
    let broken = events.clone();
    let client: Arc<dyn Outlet> = Arc::new(Stream::new(streams.output, move || {
        let _ = broken.send(Event::ClientGone);
    }));
    let session = session_of(&settings);
    let party = Party::new(Arc::clone(&door), Arc::clone(&settings), Arc::clone(&client), session);
    let link = Arc::new(Link::new(Arc::clone(&door), settings, client, events.clone(), None, None));
    let source = Source::Command(Arc::new(Pool::new(launch)));
    let mut supervisor = Supervisor::new(Arc::clone(&link), source, heard);
    let started = supervisor.start().map_err(|error| WrapError::Start { command, error });
    if let Err(WrapError::Start { error, .. }) = &started {
        // Without a client, nothing is to be answered.
        if streams.input.is_terminal() {
            return started;
        }
        supervisor.cannot_start(error, None);
    }
    let (made, to_record) = channel();
    spawn("door", &events, {
        let door = Arc::clone(&door);
        move || door.serve(&errands, &made)
    })?;
    let (settled, to_answer) = channel();
    spawn("recorder", &events, {
        let door = Arc::clone(&door);
        // Writing to the client must not keep the next ones from the disk.
        move || door.record_made(&to_record, |answers| drop(settled.send(answers)))
    })?;
    let (done, answered) = channel();
    spawn("answers", &events, {
        let door = Arc::clone(&door);
        move || {
            for answers in &to_answer {
                door.deliver(&answers);
            }
            let _ = done.send(());
        }
    })?;
    spawn("inlet", &events, {
        let link = Arc::clone(&link);
        move || link.inlet.serve()
    })?;
    hear_signals(&events)?;
    spawn("client", &events, {
        let link = Arc::clone(&link);
        move || {
            listen(&link, &party, streams.input);
            let _ = link.events.send(Event::ClientDone);
        }
    })?;
    supervisor.watch();
    link.inlet.end();
    // A reply that is being looked at has left the table of calls, and is not handed over yet.
    door.wait_for_bursts(LAST_ANSWERS);
    door.close();
    // A client that reads nothing any more is not waited for.
    let _ = answered.recv_timeout(LAST_ANSWERS);
    started
}

fn hear_signals(events: &Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let heard = events.clone();
    spawn("signals", events, move || {
        for _ in signals.forever() {
            if heard.send(Event::Signal).is_err() {
                return;
            }
        }
    })
}

/// The thread that listens to the client.
fn listen(link: &Link, party: &Arc<Party>, mut input: File) {
    let mut frames = Frames::new(link.settings().limits.line_bytes);
    let mut overlong_told = false;
    loop {
        link.door.wait_for_room();
        match frames.fill(&mut input) {
            Ok(0) => break,
            Ok(_) => take_apart(link, party.plainly(), &mut frames, &mut overlong_told),
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
        let mut pipe = link.inlet.lock();
        let place = Place { at: pipe.position(), room: pipe.room(), now: edge::now() };
        match link.hear_client(party.plainly(), &last, place) {
            Verdict::Pass => link.inlet.send(&mut pipe, &last),
            Verdict::Instead(other) => link.inlet.send(&mut pipe, &other),
            Verdict::Drop | Verdict::Unfinished => {}
        }
    }
}

/// Everything that is whole goes to the server in as few writes as can be.
fn take_apart(link: &Link, asker: Asker<'_>, frames: &mut Frames, overlong_told: &mut bool) {
    let _together = link.door.burst();
    let now = edge::now();
    let mut pipe = link.inlet.lock();
    let mut run: Range<usize> = 0..0;
    let mut passed = 0usize;
    while let Some(frame) = frames.next_frame() {
        let verdict = match &frame {
            Frame::Line(line) => {
                let place = Place {
                    at: pipe.position() + run.len() as u64,
                    room: pipe.room().saturating_sub(run.len()),
                    now,
                };
                link.hear_client(asker, frames.bytes(line), place)
            }
            Frame::Overlong(head) => {
                *overlong_told = salvage_id(head).is_some();
                if *overlong_told { link.overlong_of_client(asker, head) } else { Verdict::Drop }
            }
            Frame::OverlongEnd(_) if *overlong_told => Verdict::Drop,
            Frame::OverlongEnd(tail) => link.overlong_of_client(asker, tail),
        };
        match (verdict, frame) {
            (Verdict::Pass, Frame::Line(line)) if line.start == run.end => {
                run.end = line.end;
                passed += 1;
                if passed.is_multiple_of(LINES_TOGETHER) {
                    link.inlet.send(&mut pipe, frames.bytes(&run));
                    run = line.end..line.end;
                }
            }
            (Verdict::Pass, Frame::Line(line)) => {
                link.inlet.send(&mut pipe, frames.bytes(&run));
                run = line;
            }
            (Verdict::Instead(other), _) => {
                link.inlet.send(&mut pipe, frames.bytes(&run));
                run = 0..0;
                link.inlet.send(&mut pipe, &other);
            }
            (Verdict::Pass | Verdict::Drop | Verdict::Unfinished, _) => {}
        }
    }
    link.inlet.send(&mut pipe, frames.bytes(&run));
}
