//! From a failure to its answer: fault → audit → envelope.

use std::sync::atomic::Ordering;

use faultwire_contract::{
    Caller, Condition, Fault, Meta, Outcome, Report, ResultOptions, Session, Stamp, Surface,
};
use serde_json::{Value, json};

use super::call::Call;
use super::tools::Standing;
use super::{Boundary, Failed};
use crate::audit::{self, AuditFailed, Digest, Entry, Receipt, Ticket};
use crate::edge;
use crate::json::error::{Error, ErrorKind};
use crate::own_codes;

/// A failure on its way to disk. Its answer is sent afterwards.
#[must_use = "only its answer tells the client"]
pub struct Pending {
    ticket: Option<Ticket>,
    answer: Answer,
}

/// What the client gets.
pub struct Answer {
    fault: Fault,
    surface: Surface,
    profile: faultwire_contract::Profile,
    options: ResultOptions,
    number: Option<i64>,
    is_recorded: bool,
}

/// In which form an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The result of a tool.
    Result,
    /// The same in the modern era.
    ModernResult,
    /// A JSON-RPC error.
    Error,
    /// An HTTP response.
    Http,
}

impl Form {
    /// The form of that name.
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "result" => Self::Result,
            "modern" => Self::ModernResult,
            "error" => Self::Error,
            "http" => Self::Http,
            _ => {
                let help = "use one of result, modern, error, http";
                return Err(Error::new(ErrorKind::Input, "unknown form", help).at(name));
            }
        })
    }

    /// The surface of its envelope.
    #[must_use]
    pub fn surface(self) -> Surface {
        match self {
            Self::Http => Surface::Http,
            Self::Result | Self::ModernResult | Self::Error => Surface::Mcp,
        }
    }
}

impl Failed {
    /// The answer, once it is on disk. It blocks until then.
    #[must_use]
    pub fn answer(self, boundary: &Boundary, call: &Call, standing: &Standing) -> Answer {
        self.pending(boundary, call, standing, Surface::Mcp).wait()
    }

    /// Has the failure recorded; the answer comes when it is on disk.
    pub fn pending(
        self,
        boundary: &Boundary,
        call: &Call,
        standing: &Standing,
        surface: Surface,
    ) -> Pending {
        let Self { mut report, number, mut upstream_code, blocks } = self;
        boundary.tools.after_failure(call, &report.code, standing);
        let undeclared = boundary.is_undeclared(call, &report.code);
        if undeclared {
            boundary.undeclared.fetch_add(1, Ordering::Relaxed);
            if boundary.settings.strict {
                let tool = call.tool.as_deref().unwrap_or_default();
                let what = format!("{tool} answered {}, which it does not declare", report.code);
                upstream_code = Some(Value::from(std::mem::take(&mut report.code)));
                report = boundary.seen(Condition::Internal, what).report;
            }
        }
        boundary.add_facts(call, &mut report);
        let params = call.params();
        let caller = Caller::new(boundary.settings.masks).sent_raw(params.as_deref());
        let fault = boundary.accepted(report, &edge::stamp(boundary.contract()), &caller);
        let fault = fault.with_blocks(blocks, &caller);
        let tool = call.tool.as_deref().and_then(|tool| boundary.tools.get(tool));
        let has_output_schema = tool.is_some_and(|tool| tool.has_output_schema());
        let answer = Answer {
            surface,
            profile: boundary.profile,
            options: ResultOptions { has_output_schema, modern: false },
            number,
            fault,
            is_recorded: boundary.log.is_some(),
        };
        let ticket = boundary.log.as_ref().map(|log| {
            let fault = &answer.fault;
            let facts = audit::Call {
                request: call.request.clone(),
                client: call.client.clone(),
                arguments: call.arguments().map(|arguments| log.fingerprint(&arguments)),
                upstream_code,
                undeclared,
                elapsed_ms: fault.public().meta.elapsed_ms,
                envelope: Some(Digest::of(&answer.envelope())),
                ..audit::Call::default()
            };
            log.submit(Entry::fault(fault, &facts))
        });
        Pending { ticket, answer }
    }
}

impl Pending {
    /// Waits for the disk.
    #[must_use]
    pub fn wait(self) -> Answer {
        match self.ticket {
            None => self.answer,
            Some(ticket) => self.answer.settled(ticket.wait()),
        }
    }

    /// Calls this function with the answer when the record is on disk, on the thread that wrote
    /// it, or here if nothing has to be written. It must be quick, and must not append to the log.
    pub fn then(self, callback: impl FnOnce(Answer) + Send + 'static) {
        let Self { ticket, answer } = self;
        match ticket {
            None => callback(answer),
            Some(ticket) => ticket.then(move |receipt| callback(answer.settled(receipt))),
        }
    }
}

impl Answer {
    /// If the failure could not be recorded, the answer is the code for that (K10).
    fn settled(mut self, receipt: Result<Receipt, AuditFailed>) -> Self {
        if let Err(why) = receipt {
            self.is_recorded = false;
            let stamp = Stamp { show_stack: false, ..edge::moment() };
            if let Ok(fault) = why.instead_of(&self.fault, &stamp) {
                self.fault = fault;
            }
        }
        self
    }

    /// What failed.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Whether there is a record of it.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// The envelope's bytes.
    #[must_use]
    pub fn envelope(&self) -> Vec<u8> {
        self.fault.envelope(self.surface, self.profile)
    }

    /// The whole result of a tool; `modern` is the era that has `resultType`.
    #[must_use]
    pub fn result(&self, modern: bool) -> Vec<u8> {
        let options = ResultOptions { modern, ..self.options };
        self.fault.call_tool_result(self.profile, options)
    }

    /// What is sent, as JSON: `{"answer":…,"code":…,"incident":…,"recorded":…}`. An HTTP response has
    /// `status` and `headers`, too, and its body as a text.
    #[must_use]
    pub fn in_form(&self, form: Form) -> String {
        let answer = match form {
            Form::Result => text(self.result(false)),
            Form::ModernResult => text(self.result(true)),
            Form::Error => self.error().to_string(),
            Form::Http => json!(text(self.envelope())).to_string(),
        };
        let public = self.fault.public();
        let rest = json!({ "code": public.code, "incident": public.incident,
                           "recorded": self.is_recorded });
        let mut out = format!(r#"{{"answer":{answer},{}"#, &rest.to_string()[1..]);
        if form == Form::Http {
            out.pop();
            let head = json!({ "status": self.fault.status(), "headers": self.headers() });
            out.push(',');
            out.push_str(&head.to_string()[1..]);
        }
        out
    }

    /// The headers of an HTTP response.
    fn headers(&self) -> Value {
        let mut headers =
            json!({ "content-type": self.fault.contract().content_type(Surface::Http) });
        if let Some(delay) = self.fault.retry_after() {
            headers["retry-after"] = delay.as_millis().div_ceil(1000).to_string().into();
        }
        if self.fault.status() == 401 {
            headers["www-authenticate"] = "Bearer".into();
        }
        headers
    }

    /// The JSON-RPC error of any other request: `code`, `message`, and the envelope as `data`.
    #[must_use]
    pub fn error(&self) -> Value {
        let public = self.fault.public();
        let seen = public.condition.unwrap_or(Condition::Internal);
        let number = self.number.unwrap_or_else(|| seen.rpc_code());
        let data: Value = serde_json::from_slice(&self.envelope()).unwrap_or_default();
        json!({ "code": number, "message": public.message, "data": data })
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

impl Boundary {
    fn is_undeclared(&self, call: &Call, code: &str) -> bool {
        let declared = call.tool.as_ref().and_then(|tool| self.settings.codes.get(tool));
        declared.is_some_and(|codes| !codes.contains(code) && !self.answers_itself(code))
    }

    /// Whether the boundary itself may answer with this code, for any tool.
    fn answers_itself(&self, code: &str) -> bool {
        own_codes::of(&self.contract).contains(code)
    }

    /// What the boundary knows and the handler did not say.
    fn add_facts(&self, call: &Call, report: &mut Report) {
        report.tool = report.tool.take().or_else(|| call.tool.clone());
        report.method.get_or_insert_with(|| call.method().to_owned());
        report.trace = report.trace.take().or_else(|| call.trace.clone());
        let tool = call.tool.as_deref().and_then(|tool| self.tools.get(tool));
        // Only tools have effects.
        let is_safe = !call.is_tool() || tool.is_some_and(|tool| tool.repeatable);
        report.repeatable.get_or_insert(is_safe);
        report.outcome =
            report.outcome.or(Some(Outcome::MaybeExecuted).filter(|_| report.condition.is_none()));
        let Session { id, client, role, workspace_root, phase, plan_hash } =
            self.settings.session.clone();
        let (told, session) = (call.session.clone(), &mut report.session);
        for (said, told, known) in [
            (&mut session.id, told.id, id),
            (&mut session.client, told.client.or_else(|| call.client.clone()), client),
            (&mut session.role, told.role, role),
            (&mut session.workspace_root, told.workspace_root, workspace_root),
            (&mut session.phase, told.phase, phase),
            (&mut session.plan_hash, told.plan_hash, plan_hash),
        ] {
            *said = said.take().or(told).or(known);
        }
        let Meta { tool_version, mode, approval_mode, .. } = self.settings.meta.clone();
        let meta = &mut report.meta;
        meta.tool_version = meta.tool_version.take().or(tool_version);
        meta.mode = meta.mode.take().or(mode);
        meta.approval_mode = meta.approval_mode.or(approval_mode);
        meta.elapsed_ms = meta.elapsed_ms.or(call.elapsed_ms);
    }

    /// The fault; one that the contract refuses is a fault of the server itself.
    fn accepted(&self, report: Box<Report>, stamp: &Stamp, caller: &Caller<'_>) -> Fault {
        let session = report.session.clone();
        Fault::for_caller(&self.contract, report, stamp, caller).unwrap_or_else(|refused| {
            let condition = Condition::Internal;
            let report = Report {
                condition: Some(condition),
                message: Some(refused.to_string()),
                session,
                ..Report::new(&self.contract.code_for(condition, None).id)
            };
            match Fault::new(&self.contract, report, stamp) {
                Ok(fault) => fault,
                Err(_) => unreachable!("a code of the contract and nothing else is accepted"),
            }
        })
    }
}
