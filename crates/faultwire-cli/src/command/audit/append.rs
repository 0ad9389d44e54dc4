//! `audit append`: the log for other languages. A fault in, and, once it is on disk, the answer out.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use faultwire::audit::{AuditFailed, Call, Digest, Entry, Key, Log, Options, Receipt, Ticket};
use faultwire_contract::{Contract, Fault, Profile, Report, Surface};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Done;
use crate::args::audit::AppendArgs;
use crate::edge::Line;
use crate::problem::Problem;
use crate::{edge, resolve};

/// The longest line with a fault.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

pub fn run(args: &AppendArgs) -> Result<Done, Problem> {
    let contract = resolve::contract(&args.contract.contract)?;
    let log = Log::open(args.place.to_write(), options(args)?)?;
    let tally = match args.in_flight {
        1 => one_by_one(&contract, &log),
        many => together(&contract, &log, many.into()),
    };
    let closed = log.close();
    let tally = tally?;
    if tally.refused > 0 {
        let what = format!("{} lines were refused; all others are recorded", tally.refused);
        return Err(Problem::bad("stdin", what, "fix the refused lines and send them again"));
    }
    Ok(if tally.unrecorded == 0 && closed.is_ok() { Done::Fine } else { Done::Findings })
}

/// Counts of what went wrong.
#[derive(Default)]
struct Tally {
    /// Lines that are not faults.
    refused: u64,
    /// Faults that could not be recorded.
    unrecorded: u64,
}

/// Each answer is printed before the next fault is read.
fn one_by_one(contract: &Arc<Contract>, log: &Log) -> Result<Tally, Problem> {
    let mut tally = Tally::default();
    edge::lines(LONGEST_LINE, |number, line| match Prepared::read(number, line, contract, log) {
        Ok(None) => Ok(()),
        Ok(Some(prepared)) => {
            let receipt = log.append(prepared.entry);
            tally.print(prepared.answer, receipt, contract)
        }
        Err(problem) => tally.refuse(&problem),
    })?;
    Ok(tally)
}

/// Faults are read while others are being written to disk.
fn together(contract: &Arc<Contract>, log: &Log, in_flight: usize) -> Result<Tally, Problem> {
    let (sender, receiver) = sync_channel::<Result<(Answer, Ticket), Problem>>(in_flight);
    thread::scope(|scope| {
        let printer = scope.spawn(move || {
            let mut tally = Tally::default();
            for item in receiver {
                match item {
                    Ok((answer, ticket)) => tally.print(answer, ticket.wait(), contract)?,
                    Err(problem) => tally.refuse(&problem)?,
                }
            }
            Ok(tally)
        });
        let read = edge::lines(LONGEST_LINE, |number, line| {
            let item = match Prepared::read(number, line, contract, log) {
                Ok(None) => return Ok(()),
                Ok(Some(prepared)) => Ok((prepared.answer, log.submit(prepared.entry))),
                Err(problem) => Err(problem),
            };
            // The printer has ended, and its result says why.
            let closed = |_| Problem::Output(io::ErrorKind::BrokenPipe.into());
            sender.send(item).map_err(closed)
        });
        drop(sender);
        let panicked = || Err(Problem::Output(io::Error::other("the printing thread panicked")));
        let printed = printer.join().unwrap_or_else(|_| panicked());
        printed.and_then(|tally| read.map(|()| tally))
    })
}

fn options(args: &AppendArgs) -> Result<Options, Problem> {
    let key = args.key.as_ref().map(|path| {
        let text = edge::file(path)?;
        let key = Key::parse(&text).map_err(|e| {
            let help = "name a file with one signing key, such as an audit-log.key";
            Problem::bad(&path.display().to_string(), e.to_string(), help)
        })?;
        Ok::<_, Problem>(Arc::new(key))
    });
    Ok(Options {
        holder: format!("process {} (faultwire audit append)", std::process::id()),
        segment_bytes: args.segment_bytes,
        checkpoint_every: args.checkpoint_every,
        fail_open: args.fail_open,
        key: key.transpose()?,
        ..Options::default()
    })
}

/// What a line contains: a fault, or a fault with facts about the call.
struct Given {
    fault: Report,
    call: GivenCall,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'a> {
    #[serde(borrow)]
    fault: &'a RawValue,
    #[serde(default)]
    call: GivenCall,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GivenCall {
    request: Option<Box<RawValue>>,
    client: Option<String>,
    /// Hashed with the log's key; never written.
    arguments: Option<Value>,
    upstream_code: Option<Value>,
    elapsed_ms: Option<u64>,
    attempt: Option<u32>,
}

impl Given {
    fn read(line: &[u8]) -> Result<Self, serde_json::Error> {
        let keys: Value = serde_json::from_slice(line)?;
        if keys.get("fault").is_none() {
            let fault = serde_json::from_slice(line)?;
            return Ok(Self { fault, call: GivenCall::default() });
        }
        let wrapped: Wrapped<'_> = serde_json::from_slice(line)?;
        let fault = serde_json::from_str(wrapped.fault.get())?;
        Ok(Self { fault, call: wrapped.call })
    }
}

impl GivenCall {
    fn into_call(self, log: &Log, envelope: &[u8]) -> Call {
        Call {
            request: self.request.map(|id| exact_id(id.get())),
            client: self.client,
            arguments: self.arguments.as_ref().map(|arguments| log.fingerprint(arguments)),
            upstream_code: self.upstream_code,
            undeclared: false,
            elapsed_ms: self.elapsed_ms,
            attempt: self.attempt,
            envelope: Some(Digest::of(envelope)),
            peer: None,
            refusals: None,
        }
    }
}

/// An id as it was sent: a number that would lose digits becomes a string.
fn exact_id(raw: &str) -> Value {
    let value: Value = serde_json::from_str(raw).unwrap_or(Value::Null);
    let written = value.to_string();
    if value.is_number() && written != raw { raw.into() } else { value }
}

/// A fault that is ready to be recorded, and what to answer when it is.
struct Prepared {
    entry: Entry,
    answer: Answer,
}

impl Prepared {
    /// Reads a line; a blank one has no fault.
    fn read(
        number: usize,
        line: Line,
        contract: &Arc<Contract>,
        log: &Log,
    ) -> Result<Option<Self>, Problem> {
        let place = format!("stdin, line {number}");
        let help = r#"write a fault as {"code":"…"}, or {"fault":{…},"call":{…}}"#;
        let Line::Whole(line) = line else {
            let what = format!("the line is longer than {LONGEST_LINE} bytes");
            return Err(Problem::bad(&place, what, help));
        };
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let given = Given::read(&line).map_err(|e| {
            // The JSON parser does not know the line's number.
            let what = e.to_string().replace(" at line 1 column ", " at column ");
            Problem::bad(&place, what, help)
        })?;
        let fault = Fault::new(contract, given.fault, &edge::stamp(contract)).map_err(|e| {
            let help = format!("`faultwire contract show {}` lists its codes", contract.name);
            Problem::bad(&place, e.to_string(), help)
        })?;
        let envelope = fault.envelope(Surface::Mcp, Profile::default());
        let entry = Entry::fault(&fault, &given.call.into_call(log, &envelope));
        Ok(Some(Self { entry, answer: Answer { fault, envelope } }))
    }
}

struct Answer {
    fault: Fault,
    envelope: Vec<u8>,
}

impl Tally {
    /// Prints the answer to a fault, now that its record is on disk or cannot be.
    fn print(
        &mut self,
        answer: Answer,
        receipt: Result<Receipt, AuditFailed>,
        contract: &Contract,
    ) -> Result<(), Problem> {
        let Answer { fault, envelope } = answer;
        let (seq, envelope) = match receipt {
            Ok(receipt) => (receipt.seq, envelope),
            Err(failed) => {
                let instead = failed.instead_of(&fault, &edge::stamp(contract));
                let instead = instead.unwrap_or_else(|_| fault.clone());
                (None, instead.envelope(Surface::Mcp, Profile::default()))
            }
        };
        self.unrecorded += u64::from(seq.is_none());
        let envelope: Value = serde_json::from_slice(&envelope).unwrap_or(Value::Null);
        let incident = fault.public().incident.as_deref();
        let answer = json!({ "seq": seq, "incident": incident, "envelope": envelope });
        edge::print(format!("{answer}\n").as_bytes())
    }

    /// Answers a line that is not a fault, so that each line has its answer.
    fn refuse(&mut self, problem: &Problem) -> Result<(), Problem> {
        self.refused += 1;
        edge::complain(&problem.for_people());
        let why = problem.to_string();
        let answer = json!({ "seq": null, "incident": null, "envelope": null, "error": why });
        edge::print(format!("{answer}\n").as_bytes())
    }
}
