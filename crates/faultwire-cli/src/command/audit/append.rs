//! `audit append`: the log for other languages. A fault in, and what to answer out, once it is on
//! disk.

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
use crate::{chosen, edge};

/// A line with a fault is never longer.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

pub fn run(args: &AppendArgs) -> Result<Done, Problem> {
    let contract = chosen::contract(&args.contract.contract)?;
    let log = Log::open(args.place.dir(), options(args)?)?;
    let recorded = match args.in_flight {
        1 => one_by_one(&contract, &log),
        many => together(&contract, &log, many.into()),
    };
    let closed = log.close();
    Ok(if recorded? && closed.is_ok() { Done::Fine } else { Done::Findings })
}

/// Each answer is printed before the next fault is read. Tells whether all are recorded.
fn one_by_one(contract: &Arc<Contract>, log: &Log) -> Result<bool, Problem> {
    let mut all_recorded = true;
    edge::lines(LONGEST_LINE, |number, line| {
        let Some(given) = Given::read(number, line)? else { return Ok(()) };
        let prepared = given.prepare(number, contract, log)?;
        let receipt = log.append(prepared.entry);
        all_recorded &= print_answer(prepared.answer, receipt, contract)?;
        Ok(())
    })?;
    Ok(all_recorded)
}

/// Faults are read while others are on their way to disk. Tells whether all are recorded.
fn together(contract: &Arc<Contract>, log: &Log, in_flight: usize) -> Result<bool, Problem> {
    let (sender, receiver) = sync_channel::<(Answer, Ticket)>(in_flight);
    thread::scope(|scope| {
        let printer = scope.spawn(move || {
            let mut all_recorded = true;
            for (answer, ticket) in receiver {
                all_recorded &= print_answer(answer, ticket.wait(), contract)?;
            }
            Ok(all_recorded)
        });
        let read = edge::lines(LONGEST_LINE, |number, line| {
            let Some(given) = Given::read(number, line)? else { return Ok(()) };
            let prepared = given.prepare(number, contract, log)?;
            let ticket = log.submit(prepared.entry);
            // Nobody takes the answers any more: the printer knows why.
            let sent = sender.send((prepared.answer, ticket));
            sent.map_err(|_| Problem::Output(io::ErrorKind::BrokenPipe.into()))
        });
        drop(sender);
        let printed = printer.join().unwrap_or(Ok(false));
        printed.and_then(|all_recorded| read.map(|()| all_recorded))
    })
}

fn options(args: &AppendArgs) -> Result<Options, Problem> {
    let key = args.key.as_ref().map(|path| {
        let text = edge::file(path)?;
        let key = Key::parse(&text).map_err(|e| {
            let help = "a signing key is the one line of an audit-log.key";
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

/// What a line holds: a fault, or a fault with what is known of the call.
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
    request: Option<Value>,
    client: Option<String>,
    /// Hashed with the log's key, and written nowhere.
    arguments: Option<Value>,
    upstream_code: Option<Value>,
    elapsed_ms: Option<u64>,
    attempt: Option<u32>,
}

impl Given {
    fn read(number: usize, line: Line) -> Result<Option<Self>, Problem> {
        let place = format!("stdin, line {number}");
        let help = r#"write a fault as {"code":"…"}, or {"fault":{…},"call":{…}}"#;
        let Line::Whole(line) = line else {
            return Err(Problem::bad(&place, "the line is too long", help));
        };
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let bad = |e: serde_json::Error| Problem::bad(&place, e.to_string(), help);
        let keys: Value = serde_json::from_slice(&line).map_err(bad)?;
        if keys.get("fault").is_none() {
            let fault = serde_json::from_slice(&line).map_err(bad)?;
            return Ok(Some(Self { fault, call: GivenCall::default() }));
        }
        let wrapped: Wrapped<'_> = serde_json::from_slice(&line).map_err(bad)?;
        let fault = serde_json::from_str(wrapped.fault.get()).map_err(bad)?;
        Ok(Some(Self { fault, call: wrapped.call }))
    }

    fn prepare(
        self,
        number: usize,
        contract: &Arc<Contract>,
        log: &Log,
    ) -> Result<Prepared, Problem> {
        let fault = Fault::new(contract, self.fault, &edge::stamp(contract)).map_err(|e| {
            let help = format!("`faultwire contract show {}` lists its codes", contract.name);
            Problem::bad(&format!("stdin, line {number}"), e.to_string(), help)
        })?;
        let envelope = fault.envelope(Surface::Mcp, Profile::default());
        let call = Call {
            request: self.call.request,
            client: self.call.client,
            arguments: self.call.arguments.as_ref().map(|arguments| log.fingerprint(arguments)),
            upstream_code: self.call.upstream_code,
            elapsed_ms: self.call.elapsed_ms,
            attempt: self.call.attempt,
            envelope: Some(Digest::of(&envelope)),
        };
        let entry = Entry::fault(&fault, &call);
        Ok(Prepared { entry, answer: Answer { fault, envelope } })
    }
}

/// A fault that is ready to be recorded, and what to answer when it is.
struct Prepared {
    entry: Entry,
    answer: Answer,
}

struct Answer {
    fault: Fault,
    envelope: Vec<u8>,
}

/// Prints an answer once its record is on disk. Tells whether it is.
fn print_answer(
    answer: Answer,
    receipt: Result<Receipt, AuditFailed>,
    contract: &Contract,
) -> Result<bool, Problem> {
    let Answer { fault, envelope } = answer;
    let (seq, envelope) = match receipt {
        Ok(receipt) => (receipt.seq, envelope),
        Err(failed) => {
            let instead =
                failed.instead_of(&fault, &edge::stamp(contract)).unwrap_or(fault.clone());
            (None, instead.envelope(Surface::Mcp, Profile::default()))
        }
    };
    let envelope: Value = serde_json::from_slice(&envelope).unwrap_or(Value::Null);
    let incident = fault.public().incident.as_deref();
    let answer = json!({ "seq": seq, "incident": incident, "envelope": envelope });
    edge::print(format!("{answer}\n").as_bytes())?;
    Ok(seq.is_some())
}
